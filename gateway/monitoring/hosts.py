"""The host names that an HTTP request may have.

A foreign web site can let its own name resolve to this machine, so that browsers treat us as part of its origin (DNS
rebinding). So a request that names another host is never answered.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from aiohttp import web

STRANGER = "ask by an address, as localhost, or by a name of this node: listen.hosts in its configuration adds names"


class OwnHosts:
    """The names of this node, besides addresses and localhost."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {"localhost", *(_plain(name) for name in names)}

    def asked_by(self, request: web.BaseRequest) -> bool:
        """Return whether the request is for us. One without a host (HTTP/1.0) is not from a browser, and is allowed."""
        return all(self._owns(host) for host in request.headers.getall("Host", []))

    def _owns(self, host: str) -> bool:
        try:
            name = _plain(urlsplit(f"//{host}").hostname or "")
        except ValueError:                  # "[::1"
            return False
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")
