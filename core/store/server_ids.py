"""The server ids INTERCONNECT tells (spec/cluster 5).

Old clients connect to every server and take the one with the smallest id. So the leader's id must be the smallest, and
a node that was overtaken gets a new one past all others, as the original's returning server did.
"""

from __future__ import annotations

from collections.abc import Sequence


class Servers:
    """The ids of all members."""

    __slots__ = ("ids", "max_id")

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.max_id = 0         # no id beyond this one was ever given

    def lead(self, leader: str, members: Sequence[str]) -> None:
        """`leader` leads: its id becomes the smallest. When there are no ids yet it gets the first, then the `members`.

        A leader that was removed, and leads until another one is elected, has no id and changes none.
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
        """A new id for this node, past all others; returns it."""
        self.max_id += 1
        self.ids[name] = self.max_id
        return self.max_id

    def forget(self, name: str) -> None:
        """This node is no member any more; it must have been one."""
        del self.ids[name]
