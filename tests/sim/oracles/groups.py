"""Judges hand-outs of groups by the history alone: limits, rates, pauses, sleeps, and the order within a group.

The reference model agrees with each reply, but a misunderstanding could be in both. This oracle has no queues: it reads
the operations and their replies, and knows of each job only what follows from them. So a job counts as running only
while that is certain: until an operation ends it, and not beyond its lease. Its histories are those of clients of
groups (clients/of_groups.py): all jobs have different data, no priority changes, and nothing else removes jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sockpqd.core import (
    Accepted,
    ConfigureGroup,
    ConfigureQueue,
    DeleteGroup,
    Done,
    End,
    Feedback,
    Finished,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    Later,
    Operation,
    Policy,
    Put,
    PutWith,
    Reply,
    Return,
    Sched,
    Stored,
    StoredNumber,
)
from tests.sim.world.trace import Violation

FOREVER_MS = 2**62


@dataclass(eq=False)
class TracedJob:
    """A job as the history shows it. After its lease it may be READY, or RUNNING by the grace of a new leader."""

    queue: str
    group: str
    place: tuple[int, int] | None           # its order in its group; None: unknown
    fixed: bool                             # it has a number: its place never changes
    ready: bool = True                      # for sure
    runs_until_ms: int = 0                  # RUNNING for sure until then; 0: not for sure
    given_by: int = 0                       # the number of the command that was given it last


@dataclass
class Rate:
    """Hand-outs since a rate was set; at most `most` in any `per_ms`; 0: any number."""

    most: int = 0
    per_ms: int = 0
    given_ms: list[int] = field(default_factory=list)

    def give(self, now_ms: int, what: str) -> None:
        """Count a hand-out at `now_ms`; raises Violation if the rate does not allow it."""
        self.given_ms.append(now_ms)
        if self.most and len(self.given_ms) > self.most and now_ms - self.given_ms[-1 - self.most] < self.per_ms:
            raise Violation(f"{what}: more than {self.most} hand-outs in {self.per_ms} ms, {self.given_ms[-9:]}")


@dataclass
class TracedGroup:
    """The settings of a group, and the hand-outs that they concern."""

    limit: int = 0
    rate: Rate = field(default_factory=Rate)
    paused_until_ms: int = 0


@dataclass
class TracedQueue:
    """The settings of a queue that concern groups."""

    sched: Sched = Sched.FIFO
    limit: int = 0
    rate: tuple[int, int] = (0, 0)
    in_order: bool = False
    rates: dict[str, Rate] = field(default_factory=dict)
    sleeps_ms: dict[str, int] = field(default_factory=dict)     # until when a group sleeps


class GroupLaws:
    """The laws of groups over one history. `given`: hand-outs that were judged."""

    def __init__(self) -> None:
        self.given = 0
        self._now_ms = 0
        self._puts = 0
        self._commands = 0
        self._queues: defaultdict[str, TracedQueue] = defaultdict(TracedQueue)
        self._groups: defaultdict[str, TracedGroup] = defaultdict(TracedGroup)
        self._jobs: dict[bytes, TracedJob] = {}         # unfinished ones, by their data
        self._running: dict[int, bytes] = {}            # by the ids of hand-outs

    def applied(self, now_ms: int, operations: Iterable[Operation], replies: Iterable[Reply]) -> None:
        """Judge an entry that was applied for the first time; raises Violation."""
        self._now_ms = max(self._now_ms, now_ms)
        for job in self._jobs.values():
            if 0 < job.runs_until_ms <= self._now_ms:
                job.runs_until_ms, job.place = 0, job.place if job.fixed else None
        for operation, reply in zip(operations, replies, strict=False):
            self._commands += 1
            match operation:
                case PutWith() | Put():
                    self._put(operation, reply)
                case GetWith() | Get():
                    for handed in _handed(reply):
                        self._hand_out(operation, handed)
                case Done() | Later() | Return() | End():
                    self._end(operation, reply)
                case ConfigureQueue() | ConfigureGroup() | DeleteGroup():
                    if isinstance(reply, Accepted):
                        self._configure(operation)

    def _put(self, operation: PutWith | Put, reply: Reply) -> None:
        if not isinstance(reply, Stored | StoredNumber):
            return
        put = operation if isinstance(operation, Put) else operation.put
        group = None if isinstance(operation, Put) else operation.group
        self._puts += 1
        numbered = isinstance(reply, StoredNumber)
        self._jobs[put.data] = TracedJob(put.queue, group or put.queue, (-put.priority, self._puts), numbered)

    def _configure(self, operation: ConfigureQueue | ConfigureGroup | DeleteGroup) -> None:
        if isinstance(operation, ConfigureQueue):
            change, queue = operation.change, self._queues[operation.queue]
            queue.sched = queue.sched if change.sched is None else change.sched
            queue.limit = queue.limit if change.group_limit is None else change.group_limit
            queue.in_order = queue.in_order if change.group_order is None else change.group_order
            rate = queue.rate if change.group_rate is None else (change.group_rate, change.group_per_ms or 0)
            if rate != queue.rate:
                queue.rate, queue.rates = rate, {}
            return
        group = self._groups[operation.group]
        match operation:
            case ConfigureGroup(paused=False):
                group.paused_until_ms = 0
                for queue in self._queues.values():
                    queue.sleeps_ms.pop(operation.group, None)
            case ConfigureGroup():
                group.limit = group.limit if operation.limit is None else operation.limit
                per_ms = operation.per_ms or 0
                if operation.rate is not None and (operation.rate, per_ms) != (group.rate.most, group.rate.per_ms):
                    group.rate = Rate(operation.rate, per_ms)
                if operation.paused:
                    pause_ms = operation.pause_ms
                    group.paused_until_ms = FOREVER_MS if pause_ms is None else self._now_ms + pause_ms
            case DeleteGroup():
                self._groups[operation.group] = TracedGroup()

    # Hand-outs

    def _hand_out(self, operation: GetWith | Get, handed: Handed) -> None:
        job, get = self._jobs[handed.data], operation if isinstance(operation, Get) else operation.get
        if not isinstance(operation, GetWith) or operation.number is None:
            self._judge(job, by_fair=isinstance(operation, GetWith) and operation.policy is Policy.FAIR)
        job.ready, job.given_by = False, self._commands
        job.runs_until_ms = FOREVER_MS if not get.expire_ms else self._now_ms + get.expire_ms
        self._running[handed.id] = handed.data

    def _judge(self, job: TracedJob, *, by_fair: bool) -> None:
        """Raise Violation if this job should not have been given now. `by_fair`: BY FAIR chose it."""
        self.given += 1
        queue, group, what = self._queues[job.queue], self._groups[job.group], f"group {job.group}"
        self._judge_order(job, queue)
        if queue.sched is Sched.FIFO and not by_fair:
            return
        if self._now_ms < group.paused_until_ms:
            raise Violation(f"{what} is paused and was given at {self._now_ms}")
        if 0 < group.limit < 1 + self._runs(job.group):
            raise Violation(f"{what} has more than {group.limit} RUNNING jobs")
        group.rate.give(self._now_ms, what)
        if queue.sched is Sched.FIFO:
            return
        here = f"{what} in queue {job.queue}"
        if 0 < queue.limit < 1 + self._runs(job.group, job.queue):
            raise Violation(f"{here} has more than {queue.limit} RUNNING jobs")
        queue.rates.setdefault(job.group, Rate(*queue.rate)).give(self._now_ms, here)
        if self._now_ms < queue.sleeps_ms.get(job.group, 0):
            raise Violation(f"{here} sleeps and was given at {self._now_ms}")

    def _judge_order(self, job: TracedJob, queue: TracedQueue) -> None:
        """Raise Violation if a job of the group that stands before this one was passed over."""
        if job.place is None:
            return
        for other in self._jobs.values():
            if (other.queue, other.group) != (job.queue, job.group) or other.place is None or other.place >= job.place:
                continue
            if other.ready:
                raise Violation(f"{job} was given before {other}")
            if queue.in_order and other.runs_until_ms and other.given_by != self._commands:
                raise Violation(f"{job} was given while {other} is RUNNING")

    def _runs(self, group: str, queue: str | None = None) -> int:
        """Return the jobs of the group that are certainly RUNNING, in one queue or in all."""
        return len([
            job for job in self._jobs.values()
            if job.group == group and queue in (None, job.queue) and job.runs_until_ms])

    # Ends

    def _end(self, operation: Done | Later | Return | End, reply: Reply) -> None:
        assert isinstance(operation.id, int)
        if not isinstance(reply, Accepted | Finished) or operation.id not in self._running:
            return
        data = self._running.pop(operation.id)
        job = self._jobs[data]
        done = isinstance(operation, Done) or (isinstance(operation, End) and operation.how is How.DONE)
        stays = isinstance(operation, Return) or (isinstance(operation, End) and operation.first) or job.fixed
        job.ready, job.runs_until_ms = True, 0
        if done:
            del self._jobs[data]
        elif not stays:
            self._puts += 1
            job.place = None if job.place is None else (job.place[0], self._puts)
        if isinstance(operation, End) and operation.feedback is Feedback.SLEEP:
            self._sleep(job, operation.sleep_ms)

    def _sleep(self, job: TracedJob, sleep_ms: int) -> None:
        queue = self._queues[job.queue]
        if queue.sched is Sched.GROUPS or (queue.sched is Sched.FAIR and (queue.limit or queue.rate[0])):
            until_ms = self._now_ms + sleep_ms
            queue.sleeps_ms[job.group] = max(queue.sleeps_ms.get(job.group, 0), until_ms)


def _handed(reply: Reply) -> Iterator[Handed]:
    if isinstance(reply, Handed):
        yield reply
    elif isinstance(reply, HandedMany):
        yield from reply.jobs
