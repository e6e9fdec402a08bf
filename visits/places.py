"""Connection limits: per node and per address, with some reserve for administrators once all places are taken.

The reserve lets operators in to find out what is wrong: clients on this machine, and administrators, who have to
authenticate right away.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from enum import Enum

from sockpqd.visits.addresses import is_loopback
from sockpqd.visits.limits import FURTHER_PLACES, TRIALS_PER_ADDRESS, PlaceLimits


class Place(Enum):
    """The kind of place a client gets."""

    GOOD = "as long as it wants"
    TRIAL = "if it is an administrator"
    NONE = "there is none"


class Places:
    """Counts the places of one or more doors."""

    def __init__(self, limits: PlaceLimits) -> None:
        self.connections_max = limits.connections_max
        self.per_address_max = limits.connections_per_address_max or max(1, limits.connections_max // 2)
        self._taken = 0
        self._by_address: Counter[str] = Counter()
        self._trials: Counter[str] = Counter()

    def take(self, host: str) -> Place:
        """Assign a place to a new client from this host. Unless the result is NONE, leave() must follow."""
        address = address_of(host)
        if address is not None and self._by_address[address] >= self.per_address_max:
            return Place.NONE
        place = Place.GOOD
        if self._taken >= self.connections_max:
            if self._taken >= self.connections_max + FURTHER_PLACES:
                return Place.NONE
            if address is not None:
                if self._trials[address] >= TRIALS_PER_ADDRESS:
                    return Place.NONE
                place = Place.TRIAL
                self._trials[address] += 1
        self._taken += 1
        if address is not None:
            self._by_address[address] += 1
        return place

    def end_trial(self, host: str) -> None:
        """End a trial for this host: the client is an administrator, or is leaving."""
        address = address_of(host)
        if address is not None:
            _count_down(self._trials, address)

    def leave(self, host: str) -> None:
        """Release the place of a client from this host."""
        self._taken -= 1
        address = address_of(host)
        if address is not None:
            _count_down(self._by_address, address)


def address_of(host: str) -> str | None:
    """Return what counts as one address, None for this machine. For IPv6 it is the /64: one host has 2^64 addresses."""
    if is_loopback(host):
        return None
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))


def _count_down(counts: Counter[str], address: str) -> None:
    counts[address] -= 1
    if not counts[address]:
        del counts[address]
