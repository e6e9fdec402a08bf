"""The parts of the reference model: its jobs, the results of an entry, and its choice of jobs."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from string import ascii_letters, digits
from typing import TypeVar

from msgspec.structs import replace

from sockpqd.core import (
    Event,
    HoldThen,
    JobCounts,
    JobEnded,
    JobState,
    JobView,
    Life,
    NotFound,
    QueueCounts,
    Reply,
    Then,
    Until,
)

Name = TypeVar("Name", str, tuple[str, str])


@dataclass(eq=False)
class ModelJob:
    """A job. It runs iff it has an id; it is deferred iff `delayed`; otherwise it can be handed out."""

    queue: str
    priority: int
    seq: int
    data: bytes
    item: str | None
    number: int = 0                     # its own, for ever
    known_as: int | None = None         # the number by which it is found,
    stays: bool = False                 # and whether its place stays the one of that
    own_lease_ms: int | None = None     # of hand-outs that name none
    counts: JobCounts = field(default_factory=JobCounts)
    key: str | None = None
    at_ms: int | None = None            # the time it was put for
    place_ms: int = 0                   # when it became active, if its queue is in the order of time
    buried: bool = False                # it is in the other list of the model
    back_ms: int = 0                    # when it last became READY at an old place
    attempts: int = 0
    tries: int | None = None
    ttl_ms: int | None = None
    fade_ms: int | None = None          # when it is removed, if it is still there then
    every_ms: int | None = None
    group: str | None = None            # the one it was put for
    headers: bytes = b""                # `data` has none
    reason: str | None = None           # why it was put back or buried
    error: tuple[int, bytes] | None = None      # what its worker left, and a number that rises
    origin: str | None = None           # of a dead job: the queue it comes from
    # while it is deferred
    delayed: bool = False
    due_ms: int | None = None           # None: not known yet
    until: Until = Until.DONE                           # what it waits for of items
    waits: list[str] = field(default_factory=list)      # items that have not decided yet
    told: list[str] = field(default_factory=list)       # items that have, but the job does not know yet
    # while it runs
    id: int | None = None
    deadline_ms: int | None = None
    lease_ms: int | None = None         # as it was given
    then: Then = Then.LATER
    graced: bool = False
    session: int | None = None          # the session it is bound to
    since_ms: int = 0                   # its hand-out, or the last charge for it
    progress: int | None = None         # as reported by its worker
    hand_outs: tuple[int, ...] = ()     # when they were, but those undone

    def __deepcopy__(self, memo: dict[int, object]) -> ModelJob:
        """Copy as deepcopy does, in much less time: all jobs are copied for each transaction."""
        other = copy.copy(self)
        other.waits, other.told = [*self.waits], [*self.told]
        return other

    def state(self) -> JobState:
        """Return the state of the job."""
        if self.buried:
            return JobState.BURIED
        if self.id is not None:
            return JobState.RUNNING
        return JobState.DELAYED if self.delayed else JobState.READY

    @property
    def ready(self) -> bool:
        """True if it can be handed out."""
        return self.id is None and not self.delayed and not self.buried

    @property
    def lost(self) -> bool:
        """True if it is DEAD or BURIED."""
        return self.buried or (self.ready and self.origin is not None)

    @property
    def unit(self) -> str:
        """Return its group: the queue in which it lies if it was put without one."""
        return self.queue if self.group is None else self.group

    @property
    def size(self) -> int:
        """Return its size, as its queue and a Get count it."""
        return len(self.headers) + len(self.data)

    def place(self) -> tuple[int, int, int]:
        """Return the sort key of jobs that can be handed out."""
        return (-self.priority, self.place_ms, self.seq)

    def ready_since(self) -> tuple[int, int]:
        """Return when it last became READY, and its place among those of that moment."""
        return (max(self.back_ms, self.seq // 1024), self.seq)

    def went_through(self, **more: int) -> None:
        """Add to the counts of the job, by name."""
        self.counts = replace(self.counts, **{name: getattr(self.counts, name) + by for name, by in more.items()})

    def kicked(self) -> None:
        """Count a kick, after which the job starts over."""
        self.went_through(kicks=1)
        self.error = None
        self.counts = replace(self.counts, died_ms=0)

    def facts(self) -> tuple[object, ...]:
        """Return what can be read of a running job."""
        whole = self.headers + self.data
        return (self.id, self.queue, self.priority, whole, self.item, self.deadline_ms, self.session)

    def life(self) -> Life:
        """Return the history of the job, as META LIFE shows it."""
        first_ms, last_ms = (self.hand_outs[0], self.hand_outs[-1]) if self.hand_outs else (None, None)
        return Life((self.known_as or 0) // 1024, first_ms, last_ms, len(self.hand_outs), self.origin)

    def seen(self, state: JobState | None = None) -> JobView:
        """Return what PEEK shows, for a client that asked for jobs in this state."""
        return JobView(
            self.queue, self.id, self.priority, self.headers + self.data, state or self.state(), self.item, self.key,
            self.attempts,
            self.at_ms, self.deadline_ms, self.reason, self.seq, self.group, self.known_as,
            None if self.known_as is None else self.counts, (self.known_as or 0) // 1024,
            self.own_lease_ms, len(self.headers), self.due_ms if self.delayed else None,
            0 if self.error is None else len(self.error[1]), self.progress,
            None if self.known_as is None else self.life(),
            origin=None if self.id is not None else self.origin,
        )


@dataclass
class ModelHold:
    """A hold: the item does not end before the hold does."""

    deadline_ms: int
    length_ms: int
    then: HoldThen
    graced: bool = False


@dataclass
class ModelFate:
    """The fate of an item: it is cancelled, or counts as cancelled when it ends; how many jobs that has removed."""

    cancelling: bool = False
    reason: str | None = None
    tainted: bool = False
    cancelled: int = 0


@dataclass
class ModelApplied:
    """Like core's Applied, with the effects as lists."""

    replies: list[Reply] = field(default_factory=list)
    ready: list[str] = field(default_factory=list)
    ready_items: list[tuple[str, str]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    ended_items: list[tuple[str, str]] = field(default_factory=list)
    outcomes: dict[int, JobEnded | NotFound] = field(default_factory=dict)
    restored: bool = False
    events: list[Event] = field(default_factory=list)


def is_group(name: str | None) -> bool:
    """Return whether a group may be called so: as a word of GROUP, or as a queue."""
    if not name or len(name) > 255:
        return False
    letters = set(ascii_letters + digits + "_.")
    word = len(name) <= 64 and set(name) <= letters | set(":-")
    return word or (set(name) <= letters | set("+/;$():@-") and name[0] not in ":@-")


def random_bits(number: int) -> int:
    """Return SplitMix64's output for the state `number`, after its reference implementation."""
    full = 2**64
    z = (number + 0x9E3779B97F4A7C15) % full
    z = (z ^ (z // 2**30)) * 0xBF58476D1CE4E5B9 % full
    z = (z ^ (z // 2**27)) * 0x94D049BB133111EB % full
    return z ^ (z // 2**31)


def first(jobs: list[ModelJob]) -> ModelJob:
    """Return the job that is handed out first: of the greatest priority, the first place."""
    return min(jobs, key=ModelJob.place)


def counted(jobs: list[ModelJob], buried: list[ModelJob], queue: str) -> QueueCounts:
    """Return how many of them are in each state."""
    states = [job.state() for job in [*jobs, *buried] if job.queue == queue]
    return QueueCounts(
        states.count(JobState.READY), states.count(JobState.DELAYED), states.count(JobState.RUNNING),
        len([job for job in jobs if job.origin == queue and job.state() is JobState.READY]),
        states.count(JobState.BURIED),
    )


def note(names: list[Name], name: Name) -> None:
    """Remember that something happened in a queue, or to an item in it; the first time counts."""
    if name not in names:
        names.append(name)
