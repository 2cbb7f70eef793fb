"""The proxy's control interface from a worker's side: synchronous, standard library only."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_dataclaw.errors import ProviderError, UsageError
from pytest_dataclaw.model.run import ModelEndpoint
from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.proxy.base import Lease
from pytest_dataclaw.proxy.control import MODEL_NOT_SERVED, lease_request_to_json, traffic_from_json, trial_to_query

if TYPE_CHECKING:
    from pytest_dataclaw.model.run import TrialKey
    from pytest_dataclaw.model.trajectory import Traffic
    from pytest_dataclaw.proxy.base import LeaseRequest, Role
    from pytest_dataclaw.proxy.control import ControlAddress

_TIMEOUT_SECONDS = 60.0
_HEALTH_TIMEOUT_SECONDS = 5.0


class ProxyClient:
    """Opens and closes leases at a running proxy; a connection a call, so it may be used from several threads."""

    def __init__(self, address: ControlAddress) -> None:
        self._address = address

    def open_lease(self, request: LeaseRequest) -> Lease:
        """Grant a lease; UsageError for a model that no upstream serves, naming those that are served."""
        granted = self._call("POST", "/control/leases", lease_request_to_json(request))
        endpoint = ModelEndpoint(f"{self._address.url}/v1", granted["token"], request.model)
        return Lease(granted["lease_id"], endpoint)

    def close_lease(self, lease: Lease) -> Traffic:
        """End a lease and say what went over it; the same answer however often it is called."""
        return traffic_from_json(self._call("DELETE", f"/control/leases/{lease.lease_id}"))

    def usage(self, key: TrialKey, role: Role) -> Usage:
        """Return what a trial has used so far in one role, all its leases together."""
        return Usage(**self._call("GET", f"/control/usage?{trial_to_query(key, role)}"))

    def is_healthy(self) -> bool:
        """Tell whether the proxy answers within five seconds."""
        try:
            self._call("GET", "/control/health", timeout=_HEALTH_TIMEOUT_SECONDS)
        except ProviderError:
            return False
        return True

    def _call(
        self, method: str, path: str, payload: dict[str, Any] | None = None, *, timeout: float = _TIMEOUT_SECONDS
    ) -> dict[str, Any]:
        connection = http.client.HTTPConnection(urlsplit(self._address.url).netloc, timeout=timeout)
        body = json.dumps(payload) if payload is not None else None
        headers = {"Authorization": f"Bearer {self._address.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ProviderError(f"the model proxy at {self._address.url} cannot be reached: {error!r}") from error
        finally:
            connection.close()
        if response.status == http.client.OK:
            return answer
        failure = answer["error"]
        if failure["code"] == MODEL_NOT_SERVED:
            raise UsageError(failure["message"])
        raise ProviderError(f"the model proxy refused {method} {path}: {failure['message']}")
