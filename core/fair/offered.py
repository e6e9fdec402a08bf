"""The groups offered in each level, in order.

A level keeps apart the groups whose jobs no queue can hand out at the moment, so that a choice never looks at them.
"""

from __future__ import annotations

from sortedcontainers import SortedList

from sockpqd.core.fair.levels import GroupAccount
from sockpqd.core.fair.queue_groups import Key


class OfferedGroups:
    """Keys of groups by level: `runnable` ones, and those `blocked` by LIMIT, ITEMLIMIT, RATE or PAUSE."""

    __slots__ = ("blocked", "runnable")

    def __init__(self) -> None:
        self.runnable: dict[int, SortedList] = {}
        self.blocked: dict[int, SortedList] = {}

    def add(self, account: GroupAccount, *, runnable: bool) -> None:
        """Add the group to its level."""
        _add(self._side(runnable), account.level, account.key)

    def remove(self, account: GroupAccount, *, runnable: bool) -> None:
        """Remove the group from its level."""
        _remove(self._side(runnable), account.level, account.key)

    def move(self, account: GroupAccount, *, runnable: bool) -> None:
        """Move the group to the runnable or the blocked list of its level, from the other one."""
        _remove(self._side(not runnable), account.level, account.key)
        _add(self._side(runnable), account.level, account.key)

    def replace(self, account: GroupAccount, before: Key, *, runnable: bool) -> None:
        """Give the group, whose key was `before`, its new place in its level."""
        keys = (self.runnable if runnable else self.blocked)[account.level]
        keys.remove(before)
        keys.add(account.key)

    def has(self, level: int) -> bool:
        """Return whether any group is offered in this level."""
        return level in self.runnable or level in self.blocked

    def count(self, level: int) -> int:
        """Return the number of groups offered in this level."""
        return len(self.runnable.get(level, ())) + len(self.blocked.get(level, ()))

    def levels(self) -> list[int]:
        """Return the levels with an offered group."""
        return [*self.runnable, *[level for level in self.blocked if level not in self.runnable]]

    def _side(self, runnable: bool) -> dict[int, SortedList]:
        return self.runnable if runnable else self.blocked


def _add(levels: dict[int, SortedList], level: int, key: Key) -> None:
    keys = levels.get(level)
    if keys is None:
        keys = levels[level] = SortedList()
    keys.add(key)


def _remove(levels: dict[int, SortedList], level: int, key: Key) -> None:
    """Remove the key, and with its last key the level."""
    keys = levels[level]
    keys.remove(key)
    if not keys:
        del levels[level]
