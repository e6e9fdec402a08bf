"""Commit delay: the next entry waits a moment for the clients that were just answered.

A client that waits for each answer sends its next command right after it. If the next entry were proposed at the moment
the last one was answered, it would carry only the commands of the other clients, which would then miss the entry after
it: two groups taking turns, with twice as many entries of half the size. So when the answers have left, the leader
proposes nothing, and goes on with everything else, until as many commands have arrived as were answered, or a short
time is up. Where this gains nothing (clients that do not wait for answers, a slow network) it is tried less and less
often.

Databases have the same setting; here it is bounded by a share of the time that the last entry took.
"""

from __future__ import annotations

from collections.abc import Callable

from sockpqd.cluster import limits
from sockpqd.cluster.leader.proposer import AnsweredEntry, Proposer


class CommitDelay:
    """Decides how long a proposer waits between two entries. `monotonic()`: seconds."""

    def __init__(self, proposer: Proposer, monotonic: Callable[[], float]) -> None:
        self._proposer = proposer
        self._monotonic = monotonic
        self._answered: AnsweredEntry | None = None     # the last entry that was answered
        self._until: float | None = None        # end of the present delay, None without one
        self._found: int | None = None          # how many commands had come when it began to hold any back
        self._rests = 0                         # entries left to propose without a delay
        self._next_rests = 1                    # entries without a delay after the next one that brings nothing

    def turned(self, now: float) -> None:
        """Record that a turn has ended and its answers have left. `now`: monotonic seconds."""
        answered = self._proposer.answered
        if answered is not self._answered:
            self._begin(answered, now)

    def should_wait(self) -> bool:
        """Return whether the queued operations should wait a little longer before they are proposed."""
        proposer, answered = self._proposer, self._answered
        if answered is None or self._until is None or not proposer.ready:
            return False
        came = proposer.queued - answered.queued
        more_fit = proposer.queued < limits.ENTRY_OPERATIONS_MAX
        if came < answered.operations and more_fit and self._monotonic() < self._until:
            if self._found is None:
                self._found = came
            return True
        self._until = None
        # In vain if all that came were there before, as with a producer that pauses and a worker that does not.
        if 2 * came >= answered.operations and came != self._found:
            self._next_rests = 1
        else:
            self._rests = self._next_rests
            self._next_rests = min(2 * self._next_rests + 1, limits.COMMIT_DELAY_RESTS_MAX)
        return False

    def _begin(self, answered: AnsweredEntry | None, now: float) -> None:
        self._answered = answered
        self._until = self._found = None
        if self._rests:
            self._rests -= 1
        elif answered is not None:
            self._until = now + min(limits.COMMIT_DELAY_SHARE * answered.took_s, limits.COMMIT_DELAY_S_MAX)
