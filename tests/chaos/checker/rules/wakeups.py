"""Checks that no wake-up is lost: no job waits while a client waits for it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct
from sortedcontainers import SortedList

from tests.chaos.checker.evidence.hidden import Hidden
from tests.chaos.checker.evidence.jobs import Jobs
from tests.chaos.checker.evidence.moments import MS, NEVER, is_ok
from tests.chaos.checker.evidence.places import Stay, stays
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import Get, Outcome, Record


class _Wait(Struct, eq=False):
    """A client certainly waited from one time to the other."""

    record: Record
    get: Get
    server: str
    from_ns: int
    until_ns: int


class _Serving:
    """The times when a server certainly served: it answered short commands at small intervals."""

    def __init__(self, gap_ns: int) -> None:
        self._gap_ns = gap_ns
        self._moments: list[int] = []
        self._from: list[int] = []
        self._until: list[int] = []

    def answered(self, record: Record) -> None:
        """Return evidence that the server served, if it is known precisely enough when the command was executed."""
        if record.end_ns is not None and record.end_ns - record.start_ns <= self._gap_ns:
            self._moments.append(record.end_ns)

    def join(self) -> None:
        """Join times that are close together into stretches, once all have been added."""
        for moment in sorted(self._moments):
            if self._until and moment - self._until[-1] <= self._gap_ns:
                self._until[-1] = moment
            else:
                self._from.append(moment)
                self._until.append(moment)

    def stretches(self, from_ns: int, until_ns: int, least_ns: int) -> Iterator[int]:
        """Yield where long enough stretches of service begin inside this window."""
        for number in range(bisect_left(self._until, from_ns + least_ns), len(self._from)):
            if self._from[number] > until_ns - least_ns:
                return
            begin_ns = max(self._from[number], from_ns)
            if min(self._until[number], until_ns) - begin_ns >= least_ns:
                yield begin_ns


def wakeups(
    jobs: Jobs, records: Iterable[Record], hidden: Hidden, facts: Facts, teller: Teller,
) -> Iterator[Violation]:
    """Of each client that waits: no job it could have had waited as well for too long, while its server served."""
    least_ns = facts.wake_ms * MS
    serving: dict[str, _Serving] = defaultdict(lambda: _Serving(facts.serving_gap_ms * MS))
    for record in records:
        if is_ok(record) and record.server is not None:
            serving[record.server].answered(record)
    for one in serving.values():
        one.join()
    long: dict[str, list[Stay]] = defaultdict(list)
    for job in jobs.sound:
        for stay in stays(job, facts):
            if stay.left_ns - stay.came_latest_ns >= least_ns:
                long[job.queue].append(stay)
    coming = {name: sorted(stays, key=lambda stay: stay.came_latest_ns) for name, stays in long.items()}
    come: dict[str, SortedList] = {name: SortedList(key=lambda stay: stay.left_ns) for name in long}
    placed = dict.fromkeys(long, 0)
    waits = sorted(_waits(jobs, facts, least_ns), key=lambda wait: wait.until_ns)
    for wait in waits:
        for name in wait.get.queues or list(long):
            if name not in long:
                continue
            while placed[name] < len(coming[name]):
                stay = coming[name][placed[name]]
                if stay.came_latest_ns > wait.until_ns - least_ns:
                    break
                come[name].add(stay)
                placed[name] += 1
            left = come[name].irange_key(wait.from_ns + least_ns, None)
            beside = [stay for stay in left if wait.get.item in (None, stay.job.item)]
            found = _coexist(wait, name, beside, serving[wait.server], hidden, least_ns)
            if found is not None:
                yield _tell(wait, *found, least_ns, teller)
                break


def _waits(jobs: Jobs, facts: Facts, least_ns: int) -> Iterator[_Wait]:
    """Yield clients that certainly stood in line, as their commands were answered in the end.

    The time of a hand-out follows more exactly from the other ids than from the end of the record. Other answers have
    no ids; the 404 of GETBE is not judged here.
    """
    slack_ns = facts.wake_slack_ms * MS
    earliest = {id(hand_out.record): hand_out.earliest_ns for hand_out in jobs.hand_outs}
    for record in jobs.gets:
        get = record.command
        assert isinstance(get, Get)
        if not get.blocks or record.session or record.server is None:
            continue
        if is_ok(record):
            until_ns = earliest.get(id(record), -NEVER)
        elif record.outcome is Outcome.NOT_EXECUTED or facts.connections_stand:
            until_ns = (jobs.last_ns if record.end_ns is None else record.end_ns) - slack_ns
        else:
            continue
        from_ns = record.start_ns + slack_ns
        if until_ns - from_ns >= least_ns:
            yield _Wait(record, get, record.server, from_ns, until_ns)


def _coexist(
    wait: _Wait, queue: str, beside: list[Stay], serving: _Serving, hidden: Hidden, least_ns: int,
) -> tuple[Stay, int] | None:
    """Return a job that certainly waited at the same time as this client for too long, and since when."""
    newest_ns = max((one.came_earliest_ns for one in beside), default=0)
    for stay in beside:
        from_ns = max(wait.from_ns, stay.came_latest_ns)
        for begin_ns in serving.stretches(from_ns, min(wait.until_ns, stay.left_ns), least_ns):
            end_ns = begin_ns + least_ns
            away_ns = begin_ns - hidden.held_ns(queue)
            if len(beside) <= hidden.count(queue, max(newest_ns, away_ns), end_ns):
                continue                # the usual case, so that many who vanished unseen cost little
            together = [one for one in beside if one.came_latest_ns <= begin_ns and one.left_ns >= end_ns]
            since = sorted((max(one.came_earliest_ns, away_ns) for one in together), reverse=True)
            if any(number > hidden.count(queue, since_ns, end_ns) for number, since_ns in enumerate(since, start=1)):
                return stay, begin_ns
    return None


def _tell(wait: _Wait, stay: Stay, begin_ns: int, least_ns: int, teller: Teller) -> Violation:
    put = stay.job.put
    assert put is not None
    return Violation(
        "wakeup",
        f"{teller.record(wait.record)} waited and {stay.job.body} lay in {stay.job.queue} since "
        f"{teller.at(stay.came_latest_ns)}, both from {teller.at(begin_ns)} to {teller.at(begin_ns + least_ns)} at "
        f"least, while {wait.server} served",
        (put, wait.record),
    )
