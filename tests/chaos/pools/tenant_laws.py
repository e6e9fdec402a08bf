"""Judges what the workers of tenants saw: limits, rates, pauses and the order of each group (spec/fair 7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.chaos.pools.tenants import Run

_ByGroup = dict[tuple[str, str], list[Run]]


def _by_group(runs: Iterable[Run]) -> _ByGroup:
    """Return the runs of each queue and group, in the order in which they began."""
    found: defaultdict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.got):
        found[run.queue, run.group].append(run)
    return found


def too_many_at_a_time(runs: Iterable[Run], queue: str, limit: int) -> Iterator[list[Run]]:
    """Find more jobs of one group in this queue that certainly ran at the same time than its GROUPLIMIT."""
    for (name, _), of_group in _by_group(runs).items():
        for run in of_group if name == queue else ():
            together = [one for one in of_group if one.got <= run.got < one.runs_until]
            if len(together) > limit:
                yield together


def too_fast(runs: Iterable[Run], queue: str, rate: int, per_ms: int) -> Iterator[list[Run]]:
    """Find one more hand-out of a group from this queue within the period than its GROUPRATE."""
    for (name, _), of_group in _by_group(runs).items():
        if name == queue:
            in_time = sorted(of_group, key=lambda run: run.started_ms)
            for first, last in zip(in_time, in_time[rate:], strict=False):
                if last.started_ms - first.started_ms < per_ms:
                    yield [first, last]


def given_in_a_pause(runs: Iterable[Run], group: str, paused: float, resumed: float) -> Iterator[Run]:
    """Find runs that were requested and given while the group was paused. `resumed`: before RESUME was sent."""
    return (run for run in runs if run.group == group and paused < run.asked and run.got < resumed)


def overtaken(runs: Iterable[Run], queue: str) -> Iterator[tuple[Run, Run]]:
    """Yield violations of GROUPORDER: a run, and one of a later job of its group that began before it ended."""
    for (name, _), of_group in _by_group(runs).items():
        for run in of_group if name == queue else ():
            yield from (
                (run, other) for other in of_group
                if other.index > run.index and run.got < other.asked and other.got < run.runs_until
            )
