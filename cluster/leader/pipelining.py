"""Decides whether to pipeline a second entry.

With fast disks a second entry only cuts the commands into smaller portions. But a leader that spends more time waiting
for its disk and its followers than working can prepare the next entry in that time. That pays only with many commands:
with few clients all commands are in the entry in flight, and a second one would make them take turns at the same disk.

The decision rests on the last measurement: how long the leader was idle, or blocked on its disk, while a single entry
was in flight. A measurement is valid for PIPELINING_S; after that, one entry is sent alone and measured again.
"""

from __future__ import annotations

from sockpqd.cluster import limits
from sockpqd.cluster.leader.proposer import Proposer

NONE = 0                        # no entry has this number


class Pipelining:
    """The measurements of this node while it leads. All times are monotonic seconds."""

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer
        self._entries = 0                       # of the proposer, when it was last looked at
        self._answered = proposer.answered      # as well
        self._measured = NONE                   # the only entry in flight, whose round is measured
        self._waited_s = 0.0                    # while it was
        self._waits_until = float("-inf")

    def sent(self) -> None:
        """Record that the entry proposed in this turn, if any, has been sent to the followers."""
        proposer = self._proposer
        if proposer.entries != self._entries:
            self._entries = proposer.entries
            self._measured = self._entries if proposer.entries_in_flight == 1 else NONE
            self._waited_s = 0.0

    def committed(self, now: float) -> None:
        """Record that a turn that began at `now` has executed the committed entries."""
        answered = self._proposer.answered
        if answered is not None and answered is not self._answered:
            self._answered = answered
            if answered.number == self._measured and self._waited_s >= limits.SLOW_ANSWERS_S:
                self._waits_until = now + limits.PIPELINING_S

    def waited(self, seconds: float) -> None:
        """Record that this node had nothing to do for this long, or waited for its disk."""
        self._waited_s += seconds

    def overlaps(self, now: float) -> bool:
        """Return whether a second entry in flight pays off."""
        return now < self._waits_until
