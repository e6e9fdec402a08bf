"""Priority, then first come first served; the policies that choose a queue; and nothing is empty that is not.

A GET of a queue gives the first job of the greatest priority. It broke that if some other job had to come first, and
waited from before the GET's moment until after it, for sure. So the GETs are gone through in the order of their
earliest moments, with the jobs that surely waited just before; of these only the ones that surely waited to the end are
looked at. There are few, because whatever comes first is taken soon. A GET that chooses its queue by a policy broke
that in the same way, if a job of another queue had to come first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct
from sortedcontainers import SortedList

from tests.chaos.checker.evidence.hidden import Hidden
from tests.chaos.checker.evidence.jobs import Jobs
from tests.chaos.checker.evidence.moments import NEVER, is_ok, latest
from tests.chaos.checker.evidence.places import Stay, stays
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import Get, Record

_Rival = tuple[int, int] | None     # the jobs before this rank and time of coming; None: all
_Key = tuple[int, int, int]         # the rank (negated priority), when it surely had come, a number of the stay


class _Taking(Struct, eq=False):
    """A GET took effect between two times; it was given the job of `stay`, or the answer that the queue is empty."""

    record: Record
    from_ns: int
    until_ns: int
    stay: Stay | None


class _Queue:
    """The jobs that certainly wait, as time advances."""

    def __init__(self, sure: list[Stay]) -> None:
        self.waiting: SortedList = SortedList()
        self._sure = sure
        self._coming = sorted((stay.came_latest_ns, number) for number, stay in enumerate(sure))
        self._leaving = sorted((stay.left_ns, number) for number, stay in enumerate(sure))
        self._come = self._left = 0

    def move(self, to_ns: int) -> None:
        """Advance to the jobs that certainly came before this time, and were not taken before it as far as is known."""
        coming, leaving = self._coming, self._leaving
        while self._come < len(coming) and coming[self._come][0] < to_ns:
            self.waiting.add(self._key(coming[self._come][1]))
            self._come += 1
        while self._left < len(leaving) and leaving[self._left][0] < to_ns:
            self.waiting.remove(self._key(leaving[self._left][1]))
            self._left += 1

    def _key(self, number: int) -> _Key:
        stay = self._sure[number]
        return (-stay.job.priority, stay.came_latest_ns, number)

    def ahead(self, before: tuple[int, int] | None, until_ns: int, until_id: int) -> Iterator[Stay]:
        """Yield those who surely wait until this moment, or until the hand-out of this id, which is the same moment.

        Only those who stand before this rank and time of coming; None: all.
        """
        for rank, came_ns, number in self.waiting:
            if before is not None and (rank, came_ns) >= before:
                return
            stay = self._sure[number]
            if stay.left_ns > until_ns or (stay.taken is not None and stay.taken.id > until_id):
                yield stay


def order(jobs: Jobs, hidden: Hidden, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Check that no GET of a queue passed over a job that certainly waited there and had to come first."""
    sure: dict[str, list[Stay]] = defaultdict(list)
    takings = []
    for job in jobs.sound:
        for stay in stays(job, facts):
            if stay.came_latest_ns < stay.left_ns:
                sure[job.queue].append(stay)
            taken = stay.taken
            if taken is not None and taken.get.item is None:
                takings.append(_Taking(taken.record, taken.earliest_ns, taken.latest_ns, stay))
    for record in jobs.gets:
        get = record.command
        assert isinstance(get, Get)
        # GETBE promises more when it says 404: that is for another rule.
        if is_ok(record) and record.handed is None and get.item is None and not get.until_finished:
            takings.append(_Taking(record, record.start_ns, latest(record), None))
    queues = {name: _Queue(stays) for name, stays in sure.items()}
    takings.sort(key=lambda taking: taking.from_ns)
    for taking in takings:
        get = taking.record.command
        assert isinstance(get, Get)
        for name, rival in _rivals(taking, get, queues):
            queue = queues.get(name)
            if queue is None:
                continue
            queue.move(taking.from_ns)
            passed = _passed_over(taking, name, rival, queue, hidden, jobs.rising)
            if passed:
                yield _tell(taking, passed, teller)
                break


def _rivals(taking: _Taking, get: Get, queues: Iterable[str]) -> list[tuple[str, _Rival]]:
    """Return the queues in which no job may have been passed over, and which of their jobs had to come first."""
    stay = taking.stay
    if stay is None:
        return [(name, None) for name in get.queues or queues]
    queue, rank = stay.job.queue, -stay.job.priority
    first: list[tuple[str, _Rival]] = [(queue, (rank, stay.came_earliest_ns))]
    match get.policy if queue in get.queues else None:
        case "order":
            return first + [(name, None) for name in get.queues[:get.queues.index(queue)]]
        case "sorted":
            return first + [(name, None) for name in get.queues if name < queue]
        case "priority":
            return first + [(name, (rank, -NEVER)) for name in get.queues if name != queue]
        case "place":
            return first + [(name, first[0][1]) for name in get.queues if name != queue]
        case _:
            return first


def _passed_over(
    taking: _Taking, name: str, before: _Rival, queue: _Queue, hidden: Hidden, rising: bool,
) -> list[Stay]:
    """Return jobs of which this GET certainly passed over one; empty if there are none."""
    found: list[tuple[int, Stay]] = []
    before_id = NEVER if taking.record.handed is None else taking.record.handed.id
    every = hidden.count(name, -NEVER, taking.until_ns, before_id)
    away_ns = taking.from_ns - hidden.held_ns(name)
    for stay in queue.ahead(before, taking.until_ns, before_id if rising else NEVER):
        # Who may have had it unseen took it after it came. If he gave it back it stands last in its rank now: only one
        # of a greater rank must still come first, if it is certainly back.
        since_ns = stay.came_earliest_ns
        if before is None or -stay.job.priority < before[0]:
            since_ns = max(since_ns, away_ns)
        found.append((since_ns, stay))
        if len(found) > every:
            return [stay for _, stay in found]
    # As many as came late enough are more than could have been taken since.
    found.sort(key=lambda one: one[0], reverse=True)
    for number, (since_ns, _) in enumerate(found, start=1):
        if number > hidden.count(name, since_ns, taking.until_ns, before_id):
            return [stay for _, stay in found[:number]]
    return []


def _tell(taking: _Taking, passed: list[Stay], teller: Teller) -> Violation:
    stay, rule = passed[0], "order"
    put = stay.job.put
    assert put is not None
    others = f" (or another of {len(passed)})" if len(passed) > 1 else ""
    since = f"{stay.job.body}{others} surely waited in {stay.job.queue} since {teller.at(stay.came_latest_ns)}"
    if taking.stay is None:
        text = f"{teller.record(taking.record)} was told that the queue is empty, but {since}"
    else:
        job = taking.stay.job
        if job.queue != stay.job.queue:
            rule = "policy"
        text = (
            f"{job.body} (priority {job.priority}) was given to {teller.record(taking.record)}, but {since} "
            f"with priority {stay.job.priority}"
        )
    return Violation(rule, text, (put, taking.record))
