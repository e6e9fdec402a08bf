"""The client at the other end of a connection: its address, its end, and whether it is a user's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

STATE = "peer"          # its name in the state of a request


class Peer:
    """One client. `address`: the unit that shares places and turns; `gone` becomes True when it has hung up.

    `known`: a request of it was a user's; until then it is a stranger.
    """

    def __init__(
        self, address: str = "", recognise: Callable[[], None] | None = None, cut: Callable[[], None] | None = None,
    ) -> None:
        """`recognise` is called when a request of it was a user's, `cut` to end its connection when memory is short."""
        self.address = address
        self.cut = cut or _nothing
        self.gone = False
        self.known = False
        self._recognise = recognise or _nothing
        self._when_gone: dict[Callable[[], None], None] = {}

    def recognise(self) -> None:
        """Record that one of its requests was a user's."""
        self.known = True
        self._recognise()

    def when_gone(self, call: Callable[[], None]) -> None:
        """Call this once when the client hangs up; at once if it has."""
        if self.gone:
            call()
        else:
            self._when_gone[call] = None

    def forget(self, call: Callable[[], None]) -> None:
        """Stop calling this when the client hangs up."""
        self._when_gone.pop(call, None)

    def leave(self) -> None:
        """Record that the client has hung up."""
        self.gone = True
        self._recognise = self.cut = _nothing       # they refer to a connection
        calls, self._when_gone = self._when_gone, {}
        for call in calls:
            call()


def _nothing() -> None:
    pass


def peer_of(scope: Scope) -> Peer:
    """Return the client that has sent a request; where the server does not report that, one that never leaves."""
    peer = scope.get("state", {}).get(STATE)
    return peer if isinstance(peer, Peer) else Peer()


def share_of(host: str) -> str:
    """Return the unit that shares places and turns: an address, or the /64 of IPv6, as one host has 2^64 addresses."""
    with suppress(ValueError):
        address = ip_address(host.partition("%")[0])
        if isinstance(address, IPv6Address):
            if address.ipv4_mapped:
                return str(address.ipv4_mapped)
            return str(IPv6Address(int(address) >> 64 << 64))
    return host


def is_local(host: str) -> bool:
    """Return whether an address is of this machine."""
    with suppress(ValueError):
        address = ip_address(host.partition("%")[0])
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return (mapped or address).is_loopback
    return not host
