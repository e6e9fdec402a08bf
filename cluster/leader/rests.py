"""Rests between large operations, so that the small ones of other clients do not wait for them.

A large operation occupies the leader, and then the followers, which execute it while the next entries wait for their
acknowledgements. If large operations came back to back, each command of any other client would take as long as one and
a half of them. So after an entry with a large operation the leader proposes no other one for a time in proportion to
its execution time here; small operations are proposed in the meantime. If no other client sends small ones, there are
no rests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from sockpqd.cluster import limits
from sockpqd.cluster.leader.fragments import Queued

_WORK: Final = 3            # places in what is queued
_CLIENT: Final = 7


class Rests:
    """The pauses of large operations. All times are monotonic seconds."""

    def __init__(self, monotonic: Callable[[], float], executed_s: Callable[[], float]) -> None:
        """`executed_s`: how long this node took to execute the last entry."""
        self._monotonic = monotonic
        self._executed_s = executed_s
        self._small_seen_at = float("-inf")
        self._clients: Collection[object] = ()      # that had a large operation in the last entry with one
        self.until = 0.0                # 0: there is no rest

    @property
    def resting(self) -> bool:
        """True if large operations must wait."""
        if not self.until:
            return False
        if self._monotonic() < self.until:
            return True
        self.end()
        return False

    def proposed(self, operations: Iterable[Queued], now: float) -> bool:
        """Record an entry that has a large operation, or is proposed during a rest; returns whether it has one."""
        operations = list(operations)
        large = {queued[_CLIENT] for queued in operations if queued[_WORK] > limits.LARGE_WORK}
        if large:
            self._clients = large
        if any(queued[_CLIENT] is not None and queued[_CLIENT] not in self._clients for queued in operations):
            self._small_seen_at = now
        return bool(large)

    def executed(self, now: float) -> None:
        """Begin a rest after an entry with a large operation has been executed, if one is needed."""
        took_s = self._executed_s()
        if took_s >= limits.REST_FROM_S and now - self._small_seen_at < limits.SMALL_SEEN_S:
            self.until = now + limits.REST_FACTOR * took_s
        else:
            self.end()

    def end(self) -> None:
        """End the rest at once, if there is one."""
        self.until = 0.0
        self._clients = ()
