"""The time of a node's next turn when nothing arrives and no operation is proposed.

A turn without a reason costs nearly as much as one with a command, and keeps the processor awake. In regular operation
a leader has only its heartbeats and due jobs to look after, and a follower nothing: a heartbeat wakes it. In any
irregular situation there is a turn every TICK_S, so nothing here needs to know how that will develop.
"""

from __future__ import annotations

from sockpqd.cluster import limits
from sockpqd.cluster.driver import Driver

BEYOND_S = 0.001                # timers count in milliseconds, and the library sends a heartbeat after its time
BEATS_MISSED_MAX = 3            # of this many heartbeats at least one is answered; otherwise something may be wrong
CONTACT_SHARE = 1 / 2           # and so it may after this part of the lease


def next_turn_at(driver: Driver, turned_at: float, now: float) -> float:
    """Return when the next turn is due unless an event comes first. All times are monotonic seconds.

    `turned_at`: when the last turn ended.
    """
    soon = turned_at + limits.TICK_S
    transport = driver.transport
    if driver.capacity.stuck:
        return turned_at + limits.NO_ROOM_RETRY_S
    if driver.inbox or driver.store.busy or transport.unsettled:
        return soon
    beat_s = driver.settings.heartbeat_ms / 1000
    contact_s = min(BEATS_MISSED_MAX * beat_s, CONTACT_SHARE * driver.settings.lease_ms / 1000)
    if not driver.replica.is_leader:
        return max(soon, transport.elections.heard_at + contact_s)
    leadership = driver.leadership
    if not leadership.settled:
        return soon
    at = turned_at + beat_s
    if transport.peers:
        at = min(transport.beat_at + beat_s + BEYOND_S, transport.quorum.acked_sent_at() + contact_s)
    if driver.proposer.rests.until:
        at = min(at, driver.proposer.rests.until)
    due_s = leadership.due_s() if leadership.serving else None
    return max(soon, at if due_s is None else min(at, now + due_s + BEYOND_S))
