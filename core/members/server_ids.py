"""The server ids that INTERCONNECT reports (spec/cluster 5).

Old clients connect to every server and use the one with the smallest id. So the leader must have the smallest id, and a
node that had a smaller one gets a new one above all others, like a server of the original that returns.
"""

from __future__ import annotations

from collections.abc import Sequence


class ServerIds:
    """The server ids of all members."""

    __slots__ = ("ids", "max_id")

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.max_id = 0         # no greater id was ever assigned

    def lead(self, leader: str, members: Sequence[str]) -> None:
        """Make the id of `leader` the smallest. Without any ids it gets the first one, and the `members` follow.

        A removed leader, which leads until another one is elected, has no id and changes none.
        """
        if not self.ids:
            self.renew(leader)
            for name in members:
                if name != leader:
                    self.renew(name)
        if leader in self.ids:
            for number, name in sorted((number, name) for name, number in self.ids.items()):
                if number < self.ids[leader]:
                    self.renew(name)

    def renew(self, name: str) -> int:
        """Give this node a new id above all others and return it."""
        self.max_id += 1
        self.ids[name] = self.max_id
        return self.max_id

    def forget(self, name: str) -> None:
        """Remove this node, which must be a member."""
        del self.ids[name]
