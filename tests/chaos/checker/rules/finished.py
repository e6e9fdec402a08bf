"""Checks that FINQ, FINI and the 404 of GETBE are exact: sent when no job is left, and only then."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from tests.chaos.checker.evidence.hidden import Hidden
from tests.chaos.checker.evidence.jobs import Jobs
from tests.chaos.checker.evidence.moments import NEVER, is_ok, latest
from tests.chaos.checker.evidence.unfinished import Life, life
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import Get, Record


class _End(Struct, eq=False):
    """An acknowledged DONE, and whether its answer reported the last job."""

    life: Life
    record: Record
    said: bool


def _longer(one: Life, other: Life) -> Life:
    return one if one.over_earliest_ns >= other.over_earliest_ns else other


class _Group:
    """The jobs of a queue or an item. `word`: in the answer to the last DONE."""

    def __init__(self, name: str, word: str, lives: list[Life], ends: list[_End]) -> None:
        self.name = name
        self.word = word
        self._lives = sorted(lives, key=lambda life: life.born_latest_ns)
        self._born_latest = [life.born_latest_ns for life in self._lives]
        # Of all that were surely born by then: which may live longest, surely.
        self._longest: list[Life] = list(accumulate(self._lives, _longer))
        self._born_earliest = sorted(life.born_earliest_ns for life in lives)
        self._over_latest = sorted(life.over_latest_ns for life in lives)
        self._ends = ends

    def unfinished(self, from_ns: int, until_ns: int) -> Life | None:
        """Return a job that was certainly unfinished all the time."""
        number = bisect_left(self._born_latest, from_ns)
        if number and self._longest[number - 1].over_earliest_ns > until_ns:
            return self._longest[number - 1]
        return None

    def possible(self, from_ns: int, until_ns: int) -> int:
        """Return how many jobs may have been unfinished at some time in between."""
        return bisect_right(self._born_earliest, until_ns) - bisect_left(self._over_latest, from_ns)

    def judge(self, teller: Teller) -> Iterator[Violation]:
        """Judge each DONE of the group alone, then all together."""
        accused = False
        for end in self._ends:
            from_ns, until_ns = end.record.start_ns, latest(end.record)
            if end.said:
                other = self.unfinished(from_ns, until_ns)
                if other is not None and other is not end.life:
                    yield self._tell_early(end, other, teller)
                    accused = True
            elif self.possible(from_ns, until_ns) == 1:
                yield self._tell_silent(end, teller)
                accused = True
        if not accused:
            yield from self._both_said(teller)
            yield from self._nobody_said(teller)

    def _both_said(self, teller: Teller) -> Iterator[Violation]:
        """Find two DONEs that both reported the last of jobs that existed together."""
        said = sorted((end for end in self._ends if end.said), key=lambda end: end.life.born_latest_ns)
        born = [end.life.born_latest_ns for end in said]
        latest_two: list[list[_End]] = [[]]         # of all born by then: the two that ended last
        for end in said:
            two = sorted([*latest_two[-1], end], key=lambda end: end.record.start_ns)
            latest_two.append(two[-2:])
        for end in said:
            for other in latest_two[bisect_left(born, end.record.start_ns)]:
                later = other.record.start_ns >= end.record.start_ns
                if later and other is not end and end.life.born_latest_ns < other.record.start_ns:
                    yield Violation(
                        "finished",
                        f"both said {self.word} of {self.name}, with jobs that were there together: "
                        f"{teller.record(end.record)}; {teller.record(other.record)}",
                        (end.record, other.record),
                    )
                    return

    def _nobody_said(self, teller: Teller) -> Iterator[Violation]:
        """Find stretches of jobs, with certainly none before and after, where the last DONE did not report the end."""
        ends = {id(end.life): end for end in self._ends}
        until_ns = -NEVER
        together: list[_End | None] = []
        for one in [*sorted(self._lives, key=lambda life: life.born_earliest_ns), None]:
            if together and (one is None or one.born_earliest_ns > until_ns):
                known = [end for end in together if end is not None]
                if len(known) == len(together) and not any(end.said for end in known):
                    yield self._tell_silent(max(known, key=lambda end: latest(end.record)), teller)
                together = []
            if one is not None:
                together.append(ends.get(id(one)))
                until_ns = max(until_ns, one.over_latest_ns)

    def _tell_early(self, end: _End, other: Life, teller: Teller) -> Violation:
        put = other.job.put
        assert put is not None
        return Violation(
            "finished",
            f"{self.word} of {self.name} was said to {teller.record(end.record)}, but {other.job.body} was unfinished "
            f"all the time: {teller.record(put)}",
            (put, end.record),
        )

    def _tell_silent(self, end: _End, teller: Teller) -> Violation:
        return Violation(
            "finished",
            f"{self.word} of {self.name} was not said to {teller.record(end.record)}, although no other job was left",
            (end.record,),
        )


def finished(jobs: Jobs, hidden: Hidden, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Check FINQ by queue and FINI by item, then GETBE."""
    running = frozenset(one.body for one in facts.running)
    by_queue: dict[str, list[Life]] = defaultdict(list)
    by_item: dict[str, list[Life]] = defaultdict(list)
    queue_ends: dict[str, list[_End]] = defaultdict(list)
    item_ends: dict[str, list[_End]] = defaultdict(list)
    for job in jobs.sound:
        one = life(job, hidden, facts, running)
        if one is None:
            continue
        by_queue[job.queue].append(one)
        done = job.done
        said = None if done is None else done.finished
        if done is not None and said is not None:
            queue_ends[job.queue].append(_End(one, done, said.queue_done))
        if job.item is not None:
            by_item[job.item].append(one)
            if done is not None and said is not None:
                item_ends[job.item].append(_End(one, done, said.item_done))
        elif done is not None and said is not None and said.item_done:
            text = f"FINI was said to {teller.record(done)}, but {job.body} is of no item"
            yield Violation("finished", text, (done,))
    queues = {name: _Group(name, "FINQ", lives, queue_ends[name]) for name, lives in by_queue.items()}
    items = [_Group(name, "FINI", lives, item_ends[name]) for name, lives in by_item.items()]
    for group in (*queues.values(), *items):
        yield from group.judge(teller)
    yield from _getbe(jobs, queues, teller)


def _getbe(jobs: Jobs, queues: dict[str, _Group], teller: Teller) -> Iterator[Violation]:
    for record in jobs.gets:
        get = record.command
        assert isinstance(get, Get)
        if not (is_ok(record) and record.handed is None and get.until_finished):
            continue
        names: Sequence[str] = get.queues or list(queues)
        for name in names:
            other = queues[name].unfinished(record.start_ns, latest(record)) if name in queues else None
            if other is not None and other.job.put is not None:
                yield Violation(
                    "finished",
                    f"{teller.record(record)} was told 404, but {other.job.body} of {name} was unfinished all the time",
                    (other.job.put, record),
                )
                break
