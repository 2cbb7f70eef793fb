"""What a web task may reach: which requests are understood, which ports and addresses are allowed, and how much."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

Scheme: TypeAlias = Literal["http", "https"]

_METHOD = re.compile(r"[A-Z]{1,20}")
_HOST = re.compile(r"[a-z0-9._:-]{1,253}")
_NAT64 = ip_network("64:ff9b::/96")
"""Addresses in which a network of IPv6 alone writes those of IPv4 (RFC 6052)."""
_OF_THE_CONNECTION = frozenset(
    {"connection", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "upgrade"}
)


class EgressError(Exception):
    """A request that does not get through; `status` is what it is answered with."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """The limits of each trial's way to the web. `allowed` are networks that are reached though they are not public.

    `upstreams` are HTTP proxies (URLs) that this machine itself has to go through: `http` for plain requests, `https`
    for tunnels.
    """

    ports: frozenset[int] = frozenset({80, 443})
    allowed: tuple[str, ...] = ()
    max_connections: int = 64
    """Open at a time; what is beyond this or `max_requests` is cut without an answer."""
    max_requests: int = 10_000
    max_bytes: int = 2 * 1024**3
    """In both directions together."""
    connect_seconds: float = 20.0
    idle_seconds: float = 120.0
    upstreams: Mapping[Scheme, str] = field(default_factory=dict)

    def check_port(self, port: int) -> None:
        """Raise EgressError 403 for a port that is not allowed."""
        if port not in self.ports:
            raise EgressError(403, f"port {port} is not allowed")

    def check_address(self, address: str) -> None:
        """Raise EgressError 403 for an address (numeric) that is neither public nor allowed."""
        if not self.allows(address) and not _is_public(ip_address(address)):
            raise EgressError(403, f"{address} is not a public address")

    def allows(self, address: str) -> bool:
        """Tell whether an address is in one of the networks that are allowed by name."""
        return any(ip_address(address) in ip_network(network) for network in self.allowed)


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """A request as proxies get it. `path` and `headers` are what a server is sent; both empty for a tunnel."""

    method: str
    host: str
    port: int
    path: str = ""
    headers: tuple[str, ...] = ()

    @property
    def is_tunnel(self) -> bool:
        """Whether it asks for a connection to be passed on as it is (CONNECT)."""
        return self.method == "CONNECT"

    @property
    def authority(self) -> str:
        """Host and port as they stand in a request."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_request(head: bytes) -> ProxyRequest:
    """Read a request's head, up to its empty line; EgressError 400 where it is none that proxies get."""
    first, *headers = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    try:
        method, target, version = first.split(" ")
        tunnel = method == "CONNECT"
        url = urlsplit(f"//{target}" if tunnel else target)
        host, port = url.hostname or "", url.port
    except ValueError as error:
        raise EgressError(400, f"not a request: {error}") from error
    known = _METHOD.fullmatch(method) and _HOST.fullmatch(host) and version in ("HTTP/1.0", "HTTP/1.1")
    if not known or (port is None if tunnel else url.scheme != "http"):
        raise EgressError(400, "expected CONNECT host:port or an absolute http:// URL")
    if tunnel:
        return ProxyRequest(method, host, port or 0)
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    # One request a connection, so that each is looked at.
    kept = [line for line in headers if line.partition(":")[0].strip().lower() not in _OF_THE_CONNECTION]
    netloc = url.netloc.rpartition("@")[2]
    return ProxyRequest(method, host, port or 80, path, (f"Host: {netloc}", *kept, "Connection: close"))


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv6Address):
        if ip.sixtofour or ip.teredo:  # out of use, and they lead to an address of IPv4
            return False
        inner = IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else ip.ipv4_mapped
        if inner is not None:
            return _is_public(inner)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved
