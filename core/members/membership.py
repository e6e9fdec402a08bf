"""The members of the cluster (spec/cluster 7).

Voters elect leaders and form majorities. A node joins as a learner: it receives the log but has no vote until it has
caught up. The set of voters changes by one node at a time, so that any majority of the old set and any of
the new one have a node in common (Ongaro's thesis, chapter 4); `configuration` numbers these sets.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from sockpqd.core.ops.cluster import Address


class Membership(Struct, frozen=True):
    """The members at one position of the log. Immutable: a change makes a new object, so `is not` detects it."""

    addresses: dict[str, Address] = field(default_factory=dict)     # of voters and learner, by name, in name order
    learner: str | None = None
    configuration: int = 0                                          # rises by one with each change of the voters

    @property
    def voters(self) -> tuple[str, ...]:
        """The names of the voters, sorted."""
        return tuple(name for name in self.addresses if name != self.learner)

    def joined(self, address: Address) -> Membership:
        """Return a copy with a new node at this address as its learner; there must be no other learner."""
        assert self.learner is None
        return Membership(_by_name([*self.addresses.values(), address]), address.name, self.configuration)

    def promoted(self) -> Membership:
        """Return a copy in which the learner is a voter."""
        return Membership(self.addresses, None, self.configuration + 1)

    def without(self, name: str) -> Membership:
        """Return a copy without the member of this name."""
        addresses = {other: address for other, address in self.addresses.items() if other != name}
        if name == self.learner:
            return Membership(addresses, None, self.configuration)
        return Membership(addresses, self.learner, self.configuration + 1)

    def filled(self, addresses: Iterable[Address]) -> Membership:
        """Return a copy with these addresses for members without one; itself if nothing changes."""
        known = dict(self.addresses)
        for new in addresses:
            old = known.get(new.name)
            if old is not None:
                known[new.name] = Address(new.name, old.peer or new.peer, old.client or new.client)
        return self if known == self.addresses else Membership(known, self.learner, self.configuration)


def seeded(names: Iterable[str]) -> Membership:
    """Return the first membership of a cluster: these voters, at unknown addresses."""
    return Membership(_by_name(Address(name) for name in names))


def _by_name(addresses: Iterable[Address]) -> dict[str, Address]:
    return {address.name: address for address in sorted(addresses, key=lambda address: address.name)}
