"""Bounds hidden hand-outs: the answer was lost, and the job is away until its lease ends or it is given back.

Only a GET of unknown outcome can have caused one, or a GET in a session: it is executed again when it is repeated and
the job it was given runs no more, and an attempt that comes late, when the client has had its answer, does the same.
And each used up an id: where the ids that clients saw have no gap there was none. So it is known how many there can
have been in any stretch of time. That is an upper bound (ids may have gaps for other reasons), which is what is needed:
jobs are accused only when there are more of them than could have been hidden.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from msgspec import Struct

from tests.chaos.checker.evidence.jobs import Jobs
from tests.chaos.checker.evidence.moments import MS, NEVER
from tests.chaos.checker.facts import Facts
from tests.chaos.workload.history import Get, Outcome, Record

MANY = 1 << 40              # more than there are


class _Taker(Struct, eq=False):
    """A GET that may have taken up to `times` jobs unseen by any client, from `start_ns` on."""

    get: Get
    start_ns: int
    times: int
    unknown: bool               # it has no answer


class Hidden:
    """Counts the jobs of a queue that may have been taken without any client's knowledge, and when."""

    def __init__(self, jobs: Jobs, facts: Facts) -> None:
        self._facts = facts
        self._takers = [
            _Taker(record.command, record.start_ns, times, record.outcome is Outcome.UNKNOWN)
            for record in jobs.gets
            if isinstance(record.command, Get) and (times := _times(record, facts, jobs.last_ns))
        ]
        self._queues: dict[str, _Queue] = {}
        # The gaps between the ids seen, in order: when the hand-outs in them can have been, and how many up to here.
        self._ids: list[int] = []       # the first of each
        self._from: list[int] = []
        self._until: list[int] = []
        self._sums = [0]
        self._find_gaps(jobs)

    def _find_gaps(self, jobs: Jobs) -> None:
        last_id, last_ns = 0, -NEVER
        for hand_out in jobs.numbered if jobs.rising else ():      # ids in disorder show nothing: one gap, always
            if hand_out.id - last_id > 1:
                self._gap(last_id + 1, last_ns, hand_out.latest_ns, hand_out.id - last_id - 1)
            last_id, last_ns = hand_out.id, hand_out.earliest_ns
        self._gap(last_id + 1, last_ns, NEVER, MANY)

    def _gap(self, first_id: int, from_ns: int, until_ns: int, size: int) -> None:
        self._ids.append(first_id)
        self._from.append(from_ns)
        self._until.append(until_ns)
        self._sums.append(self._sums[-1] + size)

    def count(self, queue: str, after_ns: int, before_ns: int, before_id: int = NEVER) -> int:
        """Return how many jobs of this queue may have been taken between these moments, under ids before this one."""
        known = self._queue(queue)
        taken = known.sums[bisect_left(known.starts, before_ns)]
        if not taken:
            return 0
        after_ns = max(after_ns, known.starts[0])
        first = bisect_left(self._until, after_ns)
        last = min(bisect_left(self._from, before_ns), bisect_left(self._ids, before_id))
        return min(taken, self._sums[last] - self._sums[first]) if first < last else 0

    def held_ns(self, queue: str) -> int:
        """Return the longest time for which such a job of this queue is away; NEVER: perhaps for ever."""
        return self._queue(queue).held_ns

    def dropped(self, queue: str) -> int:
        """Return how many jobs of this queue may have been taken and dropped at the end of the lease (THEN DONE).

        After the last id that was seen only GETs without an answer count: the attempts that come late have ended then.
        """
        known = self._queue(queue)
        return min(known.dropped, self._sums[-2] + known.dropped_last)

    def first_drop_ns(self, queue: str) -> int:
        """Return when the first of them may have been dropped."""
        return self._queue(queue).first_drop_ns

    def all(self) -> int:
        """Return how many there may have been in all queues together."""
        return sum(taker.times for taker in self._takers)

    def _queue(self, name: str) -> _Queue:
        known = self._queues.get(name)
        if known is None:
            takers = [taker for taker in self._takers if not taker.get.queues or name in taker.get.queues]
            known = self._queues[name] = _Queue(takers, self._facts)
        return known


class _Queue:
    """The records that matter for one queue."""

    def __init__(self, takers: list[_Taker], facts: Facts) -> None:
        self.starts = [taker.start_ns for taker in takers]
        self.sums = list(accumulate((taker.times for taker in takers), initial=0))
        self.held_ns = max((_held_ns(taker.get, facts) for taker in takers), default=0)
        drops = [taker for taker in takers if taker.get.then_done and taker.get.expire_ms]
        self.dropped = sum(taker.times for taker in drops)
        self.dropped_last = sum(taker.times for taker in drops if taker.unknown)
        self.first_drop_ns = min((taker.start_ns + sure_lease_ns(taker.get, facts) for taker in drops), default=NEVER)


def _held_ns(get: Get, facts: Facts) -> int:
    if not get.expire_ms or get.then_done or facts.lease_late_ms is None:
        return NEVER
    return (get.expire_ms + facts.lease_late_ms) * MS


def _times(record: Record, facts: Facts, last_ns: int) -> int:
    """Return how many jobs this GET may have taken that its client does not know of.

    One without a session asks once. In a session as often as its lease may have ended, and once more.
    """
    if record.outcome is Outcome.NOT_EXECUTED:
        return 0
    times = int(record.session or record.outcome is Outcome.UNKNOWN)
    get = record.command
    if record.session and isinstance(get, Get) and get.expire_ms:
        lease_ns = sure_lease_ns(get, facts)
        end_ns = last_ns if record.end_ns is None else record.end_ns
        times += (end_ns - record.start_ns) // lease_ns if lease_ns > 0 else MANY
    return times


def sure_lease_ns(get: Get, facts: Facts) -> int:
    """Return how long a hand-out to this GET certainly lasts, unless it is ended."""
    if not get.expire_ms:
        return NEVER
    if facts.lease_slack_ms is None:
        return 0
    return max(0, get.expire_ms - facts.lease_slack_ms) * MS
