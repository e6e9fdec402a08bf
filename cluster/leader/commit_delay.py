"""When the next entry is proposed: a moment later, if clients are about to come back whose commands belong into it.

A client that waits for each answer sends its next command right after one. If the next entry left in the very moment in
which the last was answered, it would carry the commands of the others only, and these would miss the one after it: two
halves that wait for each other, entries half as large, twice as many of them. So the leader, with everybody answered,
reads on until as many commands are there as were answered and queued, or a short time is over. Where that brings
nothing (clients that do not wait for answers, a slow network) it is tried more and more seldom.

The same is known of databases as a commit delay; here it is bounded by what the last entry took.
"""

from __future__ import annotations

from collections.abc import Callable

from cluster import limits
from cluster.leader.proposer import AnsweredEntry, Proposer


class CommitDelay:
    """Looks at a proposer between its entries. `monotonic()`: seconds."""

    def __init__(self, proposer: Proposer, monotonic: Callable[[], float]) -> None:
        self._proposer = proposer
        self._monotonic = monotonic
        self._answered: AnsweredEntry | None = None  # the entry that was answered last
        self._until: float | None = None        # None: nobody is waited for
        self._rests = 0                         # entries to let pass without a try,
        self._next_rests = 1                    # and after the next try that brings nothing

    def should_wait(self) -> bool:
        """Should what is queued not be proposed yet?"""
        proposer, answered = self._proposer, self._proposer.answered
        if answered is not self._answered:
            self._begin(answered)
        if answered is None or self._until is None or not proposer.ready:
            return False
        came = proposer.queued - answered.queued
        more_fit = proposer.queued < limits.ENTRY_OPERATIONS_MAX
        if came < answered.operations and more_fit and self._monotonic() < self._until:
            return True
        self._until = None
        if 2 * came >= answered.operations:
            self._next_rests = 1
        else:
            self._rests = self._next_rests
            self._next_rests = min(2 * self._next_rests + 1, limits.COMMIT_DELAY_RESTS_MAX)
        return False

    def _begin(self, answered: AnsweredEntry | None) -> None:
        self._answered = answered
        self._until = None
        if self._rests:
            self._rests -= 1
        elif answered is not None:
            self._until = answered.at + min(limits.COMMIT_DELAY_SHARE * answered.took_s, limits.COMMIT_DELAY_S_MAX)
