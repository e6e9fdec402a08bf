"""The leader's lease: the time until which no other node can have been elected.

A follower that acknowledges a message promises not to help elect another node for the time that the message names,
counted from when it received it, even if the connection ends (elections.py). The leader counts from when it sent the
message, and a tenth less, so that the rates of the two clocks may differ by that much. Every majority that could elect
another node has a member in common with the majority that promised (Quorum.promised_until).

The promise is as short as possible, because after the leader's death the others wait for its end: one and a half times
the longest time between two acknowledgements. That is short where commands or heartbeats are acknowledged at once, and
grows to the shortest election timeout where disks or lines are slow.
"""

from __future__ import annotations

from sockpqd.cluster import limits
from sockpqd.cluster.raft.peer import Context, Peer
from sockpqd.cluster.raft.quorum import EVER, Quorum
from sockpqd.cluster.wire.messages import Ack


def promised(peer: Peer, ack: Ack) -> None:
    """Leader: note the promise in an acknowledgement of the current term; 0, from an older version, means none."""
    peer.promised_until = max(peer.promised_until, ack.sent + ack.promise_ms / 1000 * limits.LEASE_SHARE)


class Lease:
    """Chooses the length of the promise that messages request. Times in seconds.

    `longest_s`: the longest promise, which must not exceed the shortest election timeout.
    """

    def __init__(self, context: Context, quorum: Quorum, longest_s: float) -> None:
        self._context = context
        self._quorum = quorum
        self._longest_ms = int(longest_s * 1000)
        self._shortest_ms = int(longest_s * 1000 * limits.PROMISE_SHARE_MIN)
        context.promise_ms = self._shortest_ms
        self._oldest_s = 0.0                        # the longest time without an acknowledgement in this window,
        self._oldest_before_s = 0.0                 # and in the one before
        self._window_ends_at = float("-inf")

    def lapsed(self, now: float) -> None:
        """Leader: note that an acknowledgement arrives too late for the lease. `now`: monotonic seconds."""
        age_s = now - self._quorum.acked_sent_at()
        if age_s * 1000 <= self._longest_ms:        # otherwise there was no contact to measure
            self._oldest_s = max(self._oldest_s, age_s)

    def tick(self) -> None:
        """Leader: adapt the promise to how long acknowledgements take."""
        now, sent_at = self._context.now, self._quorum.acked_sent_at()
        age_s = now - sent_at
        if sent_at == EVER or age_s * 1000 > self._longest_ms:
            return                                  # there is nobody to ask, or no contact to measure
        self._oldest_s = max(self._oldest_s, age_s)
        if now >= self._window_ends_at:
            self._window_ends_at = now + limits.PROMISE_WINDOW_S
            self._oldest_before_s, self._oldest_s = self._oldest_s, age_s
        oldest_s = max(self._oldest_s, self._oldest_before_s)
        wanted_ms = int(oldest_s * 1000 * limits.PROMISE_FACTOR / limits.LEASE_SHARE)
        wanted_ms = max(self._shortest_ms, min(wanted_ms, self._longest_ms))
        promise_ms = self._context.promise_ms
        if wanted_ms > promise_ms or wanted_ms < promise_ms * limits.PROMISE_FALL:
            self._context.promise_ms = wanted_ms
