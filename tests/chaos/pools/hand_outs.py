"""Reconstructs from the tasks' own records which pool ran which job when, and reports forbidden overlaps.

Each run of a task records its begin and its end, with the number of its hand-out. How each hand-out ended is known
from events. One run may overlap another of the same job in one case only: the lease of the earlier hand-out ended
(EXPIRED) while its pool could not renew it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple


class Run(NamedTuple):
    """One run: which job, by which hand-out, in which pool and process, and when (Unix time)."""

    job: str
    hand_out: int
    pool: str
    pid: int
    begun: float
    ended: float


def runs_of(record: Iterable[str], killed: Mapping[int, float]) -> list[Run]:
    """The runs in lines "begin|end <job> <hand-out> <pool> <pid> <time>". `killed`: when processes were.

    A run without an end ended when its process was killed, or at once if the time of that is unknown.
    """
    begins: dict[tuple[str, int], Run] = {}
    for line in record:
        word, job, hand_out, pool, pid, at = line.split()
        if word == "begin":
            ended = max(killed.get(int(pid), 0.0), float(at))
            begins[job, int(hand_out)] = Run(job, int(hand_out), pool, int(pid), float(at), ended)
        else:
            begins[job, int(hand_out)] = begins[job, int(hand_out)]._replace(ended=float(at))
    return list(begins.values())


def two_at_a_time(runs: Iterable[Run], ends: Mapping[int, str]) -> Iterator[str]:
    """Return runs that overlap a later one of the same job though their lease had not ended. `ends`: events by
    hand-out.
    """
    by_job: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_job[run.job].append(run)
    for of_job in by_job.values():
        in_order = sorted(of_job, key=lambda run: run.hand_out)
        for index, earlier in enumerate(in_order):
            for later in in_order[index + 1 :]:
                if later.begun < earlier.ended and ends.get(earlier.hand_out) != "EXPIRED":
                    yield f"{earlier} and {later}: the first ended by {ends.get(earlier.hand_out)}"


def leases_lost(runs: Iterable[Run], ends: Mapping[int, str], healthy: Collection[str]) -> Iterator[str]:
    """Return runs whose lease ended although their pool could have renewed it all the time."""
    for run in runs:
        if run.pool in healthy and ends.get(run.hand_out) == "EXPIRED":
            yield f"{run}: its lease has ended"


def again_after_the_end(runs: Iterable[Run], ends: Mapping[int, str]) -> Iterator[str]:
    """Return runs of a job that was DONE before, by an earlier hand-out."""
    by_job: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_job[run.job].append(run)
    for of_job in by_job.values():
        for earlier, later in pairwise(sorted(of_job, key=lambda run: run.hand_out)):
            if ends.get(earlier.hand_out) == "DONE":
                yield f"{later}: it was done by {earlier}"
