"""The built-in `nop`: answers at once, and wrongly, whatever the task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_dataclaw.proxy.upstreams.base import completion

if TYPE_CHECKING:
    from pytest_dataclaw.proxy.base import LeaseRequest

# Free of digits, of yes and no, and of anything that reads like a refusal: some golds are just that.
ANSWER = "I have read the task and stop here; the work itself is left undone."


class NopUpstream:
    """Answers every request with the same sentence in one turn."""

    async def aclose(self) -> None:
        """Nothing is held."""

    async def complete(self, request: dict[str, Any], lease: LeaseRequest) -> dict[str, Any]:
        """Return the sentence."""
        return completion(request, {"content": ANSWER})
