"""Decides for which syncs a node's loop waits, by the time that they take.

Handing a sync to a thread and being woken by it costs two wake-ups, up to 0.3 ms in all. On a fast disk that is more
than the sync takes, so the loop waits for all but the largest frames. Where syncs take some milliseconds, it does not
wait for entries of many commands, since others follow these at once. Where they take even longer it waits for none, as
that would delay reads, heartbeats and other clients.

The decision rests on a moving average, so that one slow sync among fast ones changes little. The loop stops and
resumes waiting at different averages, so that a disk between the two does not cause the decision to flap. Only the sync
after a stall is always left to the thread: a disk may have become slow, and two stalls of the loop in a row could cost
a leader its followers.
"""

from __future__ import annotations

from sockpqd.cluster import limits

SHARE = 1 / 8                   # of the newest sync in the average


class SyncPace:
    """The average time of one disk's syncs. `sluggish`: the loop should not wait for any of them.

    `stalled`: the last one took very long.
    """

    sluggish = False
    stalled = False

    def __init__(self) -> None:
        self._average_s = 0.0

    def took(self, seconds: float) -> None:
        """Record how long a sync took, in the loop or in the thread."""
        self.stalled = seconds >= limits.STALLED_SYNC_S
        # A single stall must not outweigh many syncs.
        self._average_s += (min(seconds, limits.SYNC_COUNTED_S_MAX) - self._average_s) * SHARE
        self.sluggish = self._average_s >= (limits.BRISK_SYNC_S if self.sluggish else limits.SLUGGISH_SYNC_S)

    @property
    def background_bytes(self) -> int:
        """The length of a frame from which its sync goes to the thread."""
        if self.sluggish or self.stalled:
            return 0
        slow = self._average_s >= limits.SLOW_SYNC_S
        return limits.SLOW_BACKGROUND_SYNC_BYTES if slow else limits.BACKGROUND_SYNC_BYTES
