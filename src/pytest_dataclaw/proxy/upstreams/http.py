"""A real OpenAI-compatible endpoint as upstream.

The provider's reply is read to its end before the agent sees a byte of it: what was cut off is never taken for an
answer, and can be asked for again without the agent noticing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import aiohttp

from pytest_dataclaw.proxy.upstreams.assembly import Assembly, EventDecoder, checked, parse
from pytest_dataclaw.proxy.upstreams.failure import HttpUpstreamError, failure, retry_after_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_dataclaw.proxy.base import LeaseRequest

_DRAIN_SECONDS = 1.0
_FAULTS: tuple[tuple[type[Exception], int, str, str], ...] = (
    (aiohttp.ClientConnectorDNSError, 502, "dns_failed", "the host name cannot be resolved"),
    (aiohttp.ClientSSLError, 502, "tls_failed", "no secure connection"),
    (aiohttp.ConnectionTimeoutError, 504, "connect_timeout", "no connection in time"),
    (aiohttp.ClientConnectorError, 502, "connection_refused", "no connection"),
    (aiohttp.ServerTimeoutError, 504, "timeout", "silent for too long"),
    (aiohttp.ClientPayloadError, 502, "stream_cut", "the reply broke off"),
    (aiohttp.ClientResponseError, 502, "malformed_response", "not an HTTP response"),
    (aiohttp.ClientError, 502, "connection_lost", "the connection was lost"),
)
"""What can go wrong on the way, the first that fits: exception, status, code, sentence."""


class HttpUpstream:
    """Asks an endpoint for completions of one model.

    `base_url` is what `/chat/completions` is appended to, usually ending in `/v1`; `model_id` is the model's name on
    the wire. `stream` tells how the provider is asked, whatever the agent asked for. `connect_timeout` and
    `silence_timeout` (no byte came) are in seconds; how long a reply may take in all is the trial's business.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        model_id: str,
        headers: Mapping[str, str] | None = None,
        stream: bool = True,
        connect_timeout: float = 30.0,
        silence_timeout: float = 600.0,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.model_id = model_id
        self._api_key = api_key
        self._headers = {**(headers or {}), "Authorization": f"Bearer {api_key}"}
        self._stream = stream
        self._timeout = aiohttp.ClientTimeout(total=None, connect=connect_timeout, sock_read=silence_timeout)
        self._session: aiohttp.ClientSession | None = None

    async def complete(self, request: dict[str, Any], lease: LeaseRequest) -> dict[str, Any]:
        """Return the whole reply; HttpUpstreamError where it failed, was cut, or is malformed."""
        try:
            return await self._exchange(self._body(request))
        except HttpUpstreamError as error:
            failed = error
        except aiohttp.ClientError as error:
            failed = self._fault(error)
        raise self._scrubbed(failed)

    async def aclose(self) -> None:
        """Close all connections. Idempotent; to be called on the loop that used them."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _body(self, request: dict[str, Any]) -> dict[str, Any]:
        body = {**request, "model": self.model_id, "stream": self._stream}
        options = body.pop("stream_options", None)
        if self._stream:
            body["stream_options"] = {**(options or {}), "include_usage": True}
        return body

    async def _exchange(self, body: dict[str, Any]) -> dict[str, Any]:
        # A redirect is an error: following it would turn POST into GET, or carry the key elsewhere.
        url = f"{self.base_url}/chat/completions"
        async with self._client().post(url, json=body, headers=self._headers, allow_redirects=False) as response:
            if response.status != 200:
                raise await self._refusal(response)
            is_json = response.content_type == "application/json"
            if response.content_type == "text/event-stream" or (self._stream and not is_json):
                return await _read_stream(response)
            return checked(parse(await response.read()))

    async def _refusal(self, response: aiohttp.ClientResponse) -> HttpUpstreamError:
        text = (await response.read()).decode("utf-8", "replace")
        try:
            payload = json.loads(text)
        except (ValueError, RecursionError):
            payload = " ".join(text.split()) or response.reason
        wait = retry_after_seconds(response.headers)
        error = failure(payload, status=response.status, retry_after=wait)
        if response.status in (301, 302, 303, 307, 308, 404, 405):
            where = f"{error.message} (asked: {self.base_url}/chat/completions; is the base URL right, `/v1` included?)"
            return HttpUpstreamError(error.status, where, error.code, retry_after=wait)
        return error

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),  # how many at once is decided before a request comes here
                timeout=self._timeout,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),  # one trial must not leave its mark on another
            )
        return self._session

    def _fault(self, error: aiohttp.ClientError) -> HttpUpstreamError:
        _, status, code, sentence = next(fault for fault in _FAULTS if isinstance(error, fault[0]))
        return HttpUpstreamError(status, f"{self.base_url}: {sentence}: {str(error) or type(error).__name__}", code)

    def _scrubbed(self, error: HttpUpstreamError) -> HttpUpstreamError:
        """Take the key out of an error: some endpoints repeat the key that they refuse."""
        message, code = (text.replace(self._api_key, "[key]") for text in (error.message, error.code))
        return HttpUpstreamError(error.status, message, code, retry_after=error.retry_after)


async def _read_stream(response: aiohttp.ClientResponse) -> dict[str, Any]:
    decoder, assembly = EventDecoder(), Assembly()
    async for piece in response.content.iter_any():
        if assembly.take(decoder.feed(piece)):
            # The connection can be used again only once the end of the body, which follows at once, was read.
            with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError):
                await asyncio.wait_for(response.read(), _DRAIN_SECONDS)
            break
    else:
        assembly.take(decoder.feed(b"\n\n"))
    return assembly.completion()
