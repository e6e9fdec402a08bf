"""Searches for jobs by their properties (FIND): queue by queue in the order of names, then by section and place.

A place consists only of values that all nodes have, so any node can continue a search from it. A job that does not
change keeps its place, and is thus checked exactly once, whatever happens to the other jobs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any

from msgspec import Struct

from sockpqd.core import limits
from sockpqd.core.ops.queues import EndState, JobState
from sockpqd.core.queries import JobView, due_place, seen, seen_record
from sockpqd.core.records.record import JobRecord
from sockpqd.core.state import State
from sockpqd.core.store.body import bytes_of
from sockpqd.core.store.headers import has_header
from sockpqd.core.store.job import NO_EXTRAS, AnyJob, BuriedJob, DelayedJob, Job, RunningJob, first_taken, number_of
from sockpqd.core.store.queues import Queue
from sockpqd.core.store.ready import place_of

UNFINISHED: frozenset[JobState | EndState] = frozenset(JobState)


class Section(IntEnum):
    """The sections of a queue, in the order in which they are searched."""

    READY = 0       # (rank, when, seq); with DEAD jobs, which are READY in their dead-letter queue
    DELAYED = 1     # (due_ms, seq)
    RUNNING = 2     # (id,)
    BURIED = 3      # (burial,)
    ENDED = 4       # (time of the end in ms, numbers of the records with this end inspected last, the latest first)
    OVER = 5        # the search of the queue is complete


LENGTHS = {Section.READY: 3, Section.DELAYED: 2, Section.RUNNING: 1, Section.BURIED: 1}
ENDED_LENGTHS = 2, 1 + limits.FIND_RECORDS

_SECTIONS: dict[JobState | EndState, Section] = {
    JobState.READY: Section.READY, JobState.DEAD: Section.READY, JobState.DELAYED: Section.DELAYED,
    JobState.RUNNING: Section.RUNNING, JobState.BURIED: Section.BURIED, **dict.fromkeys(EndState, Section.ENDED),
}


class FindPlace(Struct, frozen=True):
    """The point that a search has reached: after `place` in this section of the queue; None: at the section's start."""

    queue: str
    section: Section = Section.READY
    place: tuple[int, ...] = ()


class Wanted(Struct, frozen=True):
    """The properties of the jobs to find; None: any."""

    states: frozenset[JobState | EndState] = UNFINISHED
    head: tuple[bytes, bytes] | None = None     # a header's name and value
    key_prefix: str | None = None
    item: str | None = None
    group: str | None = None
    reason: str | None = None
    since_ms: int | None = None     # the earliest and the latest time: of the end of an ended job, of the PUT of a
    until_ms: int | None = None     # numbered one, and of entering its place for any other job


class Search:
    """A search on one node: the wanted properties, and data shared by all its steps."""

    __slots__ = ("header", "running", "wanted")

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.header = None if wanted.head is None else b"%b: %b\n" % wanted.head
        self.running: tuple[str, list[int]] = "", []    # the queue searched last, and the ids of its running jobs then


class FindStep(Struct, frozen=True):
    """The jobs found by one step of a search, and the point reached."""

    jobs: list[JobView]
    place: FindPlace
    looked: int         # jobs,
    looked_bytes: int   # bytes of the data of the inspected jobs


def find(state: State, search: Search, place: FindPlace, count: int, jobs_max: int, bytes_max: int) -> FindStep:
    """Search one section of the queue from `place` on, inspecting at most `jobs_max` jobs and `bytes_max` bytes.

    The step ends with the `count`-th match, or with the job that reaches `bytes_max`. Raises PageLost.
    """
    wanted, section, at = search.wanted, place.section, place.place
    if section not in {_SECTIONS[one] for one in wanted.states}:
        return FindStep([], FindPlace(place.queue, Section(section + 1)), 0, 0)
    found: list[JobView] = []
    looked = looked_bytes = 0
    for job in _behind(state, search, place):
        looked += 1
        if isinstance(job, int):
            at = (job,)         # it has ended
        elif isinstance(job, JobRecord):
            looked_bytes += job.kept_bytes
            numbers = at[1:limits.FIND_RECORDS] if at and at[0] == job.ended_ms else ()
            at = job.ended_ms, job.number, *numbers
            if job.state in wanted.states and _is_wanted(search, job, job.ended_ms):
                found.append(seen_record(state, place.queue, job))
        else:
            looked_bytes += len(job.data)
            at = _PLACES[section](job)
            state_of_job = _state_of(job)
            put_ms = max((number_of(job) or job.seq) >> limits.SEQ_BITS, state.seqs_since_ms)
            if state_of_job in wanted.states and _is_wanted(search, job, put_ms):
                found.append(seen(state, job, state_of_job))
        if len(found) >= count or looked >= jobs_max or looked_bytes >= bytes_max:
            return FindStep(found, FindPlace(place.queue, section, at), looked, looked_bytes)
    return FindStep(found, FindPlace(place.queue, Section(section + 1)), looked, looked_bytes)


def _behind(
    state: State, search: Search, place: FindPlace,
) -> Iterable[AnyJob] | Iterable[JobRecord] | Iterable[RunningJob | int]:
    """Return the jobs of the section after this place; of a job that was running and has ended, only the id."""
    queue, at = state.queues.find(place.queue), place.place
    if place.section is Section.ENDED:
        return state.records.following(place.queue, state.clock_ms, at)
    if queue is None:
        return ()
    if place.section is Section.READY:
        if not at:
            return queue.all_ready()
        rank, when, seq = at
        return queue.ready_behind(Job(rank, when, seq, queue.name, b"", None, 0, None, None))
    if place.section is Section.DELAYED and queue.delayed:
        if not at:
            return queue.delayed
        due_ms, seq = at
        return queue.delayed.behind(DelayedJob(due_ms, seq, 0, queue.name, b"", None, 0, None, None), due_place)
    if place.section is Section.BURIED and queue.buried:
        if not at:
            return queue.buried
        return queue.buried.behind(BuriedJob(at[0], 0, 0, queue.name, b"", None, 0, None, None), _burial)
    if place.section is Section.RUNNING:
        return _running_behind(state, search, queue, at[0] if at else 0)
    return ()


def _running_behind(state: State, search: Search, queue: Queue, number: int) -> Iterator[RunningJob | int]:
    """Yield the running jobs with ids above this one that were running when the search came to the queue.

    A job that has ended in the meantime is represented by its id: a search passes even very many of them in several
    steps.
    """
    if search.running[0] != queue.name:
        # Only once per queue, as there may be very many.
        search.running = queue.name, first_taken(queue, queue.running)
    ids = search.running[1]
    for at in range(bisect_right(ids, number), len(ids)):
        job = state.running.get(ids[at])
        yield ids[at] if job is None or job.queue != queue.name else job


def _burial(job: BuriedJob) -> int:
    return job.burial


def _state_of(job: AnyJob) -> JobState:
    """Return the job's state as FIND reports it: a dead job is DEAD in its dead-letter queue."""
    if isinstance(job, Job):
        return JobState.READY if job.extras is None or job.extras.origin is None else JobState.DEAD
    if isinstance(job, DelayedJob):
        return JobState.DELAYED
    return JobState.RUNNING if isinstance(job, RunningJob) else JobState.BURIED


_PLACES: dict[Section, Callable[[Any], tuple[int, ...]]] = {
    Section.READY: place_of, Section.DELAYED: due_place, Section.RUNNING: lambda job: (job.id,),
    Section.BURIED: lambda job: (job.burial,),
}


def _is_wanted(search: Search, job: AnyJob | JobRecord, ms: int) -> bool:
    """Return whether a job in a wanted state matches all other properties. `ms`: the time to compare."""
    wanted, extras = search.wanted, (job.own if isinstance(job, JobRecord) else job.extras) or NO_EXTRAS
    if wanted.item is not None and job.item != wanted.item:
        return False
    if wanted.key_prefix is not None and (extras.key is None or not extras.key.startswith(wanted.key_prefix)):
        return False
    if wanted.group is not None and extras.group != wanted.group:
        return False
    if wanted.reason is not None and extras.reason != wanted.reason:
        return False
    if (wanted.since_ms is not None and ms < wanted.since_ms) or (wanted.until_ms is not None and ms > wanted.until_ms):
        return False
    if search.header is None:
        return True
    return extras.head > 0 and has_header(bytes_of(job.data)[:extras.head], search.header)
