"""Pace: whether a second entry under way, and a sync beside the loop, are worth what they cost.

With fast disks a second entry only cuts the commands into smaller portions. But where the leader waits longer for its
disk and its followers than it works, it can make the next entry meanwhile; and where a sync takes long, the loop had
better not stand still for it. Both pay with many commands only: a few clients *are* the entry under way, and a second
one would let them take turns at the same disk.

So each is decided by what was measured last: how long the leader had nothing to do, or stood still for its disk, while
an entry was alone under way, and how long a sync in the loop took. What was found holds for PACE_S; then an entry goes
alone, and a sync in the loop, and are measured again.
"""

from __future__ import annotations

from sockpqd.cluster import limits
from sockpqd.cluster.leader.proposer import Proposer

NONE = 0                        # no entry has this number


class Pace:
    """What was measured at this node while it leads. All times are monotonic seconds."""

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer
        self._entries = 0                       # of the proposer, when it was last looked at
        self._answered = proposer.answered      # as well
        self._measured = NONE                   # the entry that is alone under way
        self._waited_s = 0.0                    # while it was
        self._waits_until = float("-inf")
        self._syncs_until = float("-inf")

    def sent(self) -> None:
        """Note that the entry that was proposed in this turn, if there was one, has left for the followers."""
        proposer = self._proposer
        if proposer.entries != self._entries:
            self._entries = proposer.entries
            self._measured = self._entries if proposer.entries_in_flight == 1 else NONE
            self._waited_s = 0.0

    def committed(self, now: float) -> None:
        """Note that a turn, which began at this time, has executed what was committed."""
        answered = self._proposer.answered
        if answered is not None and answered is not self._answered:
            self._answered = answered
            if answered.number == self._measured and self._waited_s >= limits.SLOW_ANSWERS_S:
                self._waits_until = now + limits.PACE_S

    def waited(self, seconds: float) -> None:
        """Note that this node had nothing to do for this long."""
        self._waited_s += seconds

    def synced(self, took_s: float, now: float) -> None:
        """Note that a sync in the loop took this long."""
        self._waited_s += took_s
        if took_s >= limits.SLOW_SYNC_S:
            self._syncs_until = now + limits.PACE_S

    def overlaps(self, now: float) -> bool:
        """Does a second entry pay?"""
        return now < self._waits_until

    def beside_bytes(self, now: float) -> int:
        """From which length on a frame should be synced beside the loop."""
        return limits.SLOW_BACKGROUND_SYNC_BYTES if now < self._syncs_until else limits.BACKGROUND_SYNC_BYTES
