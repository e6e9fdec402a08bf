"""The places for connections: per process and per address, so that no address can take all of them."""

from __future__ import annotations

import ipaddress
from collections import Counter

from sockpq_sqs.door.limits import RESERVED_PLACES
from sockpq_sqs.settings import is_loopback


class Places:
    """Counts the places that are taken. Clients on this machine are not limited by address, and have some more."""

    def __init__(self, connections_max: int, per_address_max: int = 0) -> None:
        self._connections_max = connections_max
        self._per_address_max = per_address_max or max(1, connections_max // 2)
        self._by_address: Counter[str] = Counter()
        self.taken = 0

    def take(self, address: str | None) -> bool:
        """Take a place for a client of this address, None for this machine; returns False if there is none."""
        reserved = RESERVED_PLACES if address is None else 0
        if self.taken >= self._connections_max + reserved or self.crowded(address):
            return False
        self.taken += 1
        if address is not None:
            self._by_address[address] += 1
        return True

    def crowded(self, address: str | None) -> bool:
        """Return whether this address has taken all of its places."""
        return address is not None and self._by_address[address] >= self._per_address_max

    def leave(self, address: str | None) -> None:
        """Release a place that was taken for this address."""
        self.taken -= 1
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]


def address_of(host: str) -> str | None:
    """Return the address to count, None for this machine. For IPv6 it is the /64, as one host has 2^64 addresses."""
    if is_loopback(host):
        return None
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))
