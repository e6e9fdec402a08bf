"""Connection limits: per node and per address, with some reserve for administrators once all slots are taken.

The reserve lets operators in to find out what is wrong: clients on this machine, and administrators, who have to
authenticate right away.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from enum import Enum

from sockpqd.connections.addresses import is_loopback
from sockpqd.connections.limits import RESERVED_SLOTS, TRIALS_PER_ADDRESS, SlotLimits


class SlotKind(Enum):
    """The kind of slot that a client gets."""

    GRANTED = "as long as it wants"
    PROVISIONAL = "if it is an administrator"
    REFUSED = "there is none"


class ConnectionSlots:
    """Counts the slots taken on one or more listeners."""

    def __init__(self, limits: SlotLimits) -> None:
        self.connections_max = limits.connections_max
        self.per_address_max = limits.connections_per_address_max or max(1, limits.connections_max // 2)
        self._taken = 0
        self._by_address: Counter[str] = Counter()
        self._trials: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """The number of slots that are taken."""
        return self._taken

    def take(self, host: str) -> SlotKind:
        """Assign a slot to a new client from this host. Unless the result is REFUSED, leave() must follow."""
        address = address_of(host)
        if address is not None and self._by_address[address] >= self.per_address_max:
            return SlotKind.REFUSED
        slot = SlotKind.GRANTED
        if self._taken >= self.connections_max:
            if self._taken >= self.connections_max + RESERVED_SLOTS:
                return SlotKind.REFUSED
            if address is not None:
                if self._trials[address] >= TRIALS_PER_ADDRESS:
                    return SlotKind.REFUSED
                slot = SlotKind.PROVISIONAL
                self._trials[address] += 1
        self._taken += 1
        if address is not None:
            self._by_address[address] += 1
        return slot

    def end_trial(self, host: str) -> None:
        """End a trial for this host: the client is an administrator, or is leaving."""
        address = address_of(host)
        if address is not None:
            _count_down(self._trials, address)

    def leave(self, host: str) -> None:
        """Release the slot of a client from this host."""
        self._taken -= 1
        address = address_of(host)
        if address is not None:
            _count_down(self._by_address, address)


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


def _count_down(counts: Counter[str], address: str) -> None:
    counts[address] -= 1
    if not counts[address]:
        del counts[address]
