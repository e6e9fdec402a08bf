"""The places of connections, of the process and of each address, and which one makes room when all are taken."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Protocol

RESERVED_PLACES = 16        # further ones for clients on this machine: health checks, and operators


class Holder(Protocol):
    """A connection that has a place. `address`: the unit that shares places, None for this machine."""

    address: str | None

    def make_room(self) -> None:
        """End at once, as another connection needs the place."""


class Places:
    """The places that are taken, and by whom.

    Connections that have not shown yet that they are a user's are strangers. When no place is left, the oldest stranger
    of the address that has most of them makes room for a new connection; so every client has a moment to send a
    request, and strangers keep nobody out. Clients on this machine are not limited by address, and have further places,
    which make no room for others.
    """

    def __init__(self, connections_max: int, per_address_max: int) -> None:
        self._connections_max = connections_max
        self._per_address_max = per_address_max
        self._holders: set[Holder] = set()
        self._by_address: Counter[str | None] = Counter()
        self._strangers: defaultdict[str | None, dict[Holder, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._holders)

    def take(self, holder: Holder) -> bool:
        """Take a place for a new connection; returns False if there is none."""
        while not self._has_room(holder.address):
            stranger = self._dispensable(holder.address)
            if stranger is None:
                return False
            self.leave(stranger)
            stranger.make_room()
        self._holders.add(holder)
        self._by_address[holder.address] += 1
        self._strangers[holder.address][holder] = None
        return True

    def recognise(self, holder: Holder) -> None:
        """Record that a connection is a user's."""
        strangers = self._strangers.get(holder.address)
        if strangers is not None:
            strangers.pop(holder, None)
            if not strangers:
                del self._strangers[holder.address]

    def leave(self, holder: Holder) -> None:
        """Give back the place of a connection, if it has one."""
        if holder in self._holders:
            self._holders.discard(holder)
            self.recognise(holder)
            self._by_address[holder.address] -= 1
            if not self._by_address[holder.address]:
                del self._by_address[holder.address]

    def _has_room(self, address: str | None) -> bool:
        if address is None:
            return len(self._holders) < self._connections_max + RESERVED_PLACES
        reserved = min(self._by_address[None], RESERVED_PLACES)
        return len(self._holders) - reserved < self._connections_max and not self._crowded(address)

    def _crowded(self, address: str | None) -> bool:
        return address is not None and self._by_address[address] >= self._per_address_max

    def _dispensable(self, address: str | None) -> Holder | None:
        """Return the stranger that makes room for a client of this address."""
        if self._crowded(address):
            strangers = self._strangers.get(address, {})
        else:
            spared = address is not None and self._by_address[None] <= RESERVED_PLACES
            strangers = max(
                (found for of, found in self._strangers.items() if not (spared and of is None)), key=len, default={})
        return next(iter(strangers), None)
