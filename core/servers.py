"""The server ids INTERCONNECT tells (CLUSTER.md section 4).

Old clients connect to every server and take the one with the smallest id. So the leader's id must be the smallest, and
a node that was overtaken gets a new one past all others, as the original's returning server did.
"""

from __future__ import annotations

from collections.abc import Sequence


class Servers:
    """The ids of all nodes."""

    __slots__ = ("ids", "max_id")

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.max_id = 0         # no id beyond this one was ever given

    def lead(self, leader: str, members: Sequence[str]) -> None:
        """`leader` leads: its id becomes the smallest. Nodes without an id get one, the first leader the very first."""
        if not self.ids:
            self._renew(leader)
        for name in sorted({*members, leader}.difference(self.ids)):
            self._renew(name)
        for number, name in sorted((number, name) for name, number in self.ids.items()):
            if number < self.ids[leader]:
                self._renew(name)

    def _renew(self, name: str) -> None:
        self.max_id += 1
        self.ids[name] = self.max_id
