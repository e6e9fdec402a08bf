"""The queue as plainly as it can be said: one list of jobs, searched and sorted anew for whatever is asked.

It shares with core nothing but the operations and the replies. Where it and the machine disagree, one of them is wrong,
and here it is easy to see which. It is meant for short logs: everything costs O(jobs).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TypeVar

from core import (
    Accepted,
    AddLearner,
    ChangeInProgress,
    CloneBegin,
    CloneChunk,
    CloneEnd,
    Done,
    Empty,
    Finished,
    Get,
    Handed,
    InvalidSnapshot,
    Joined,
    LastNode,
    Later,
    Lead,
    NodeExists,
    NotFound,
    Operation,
    PromoteLearner,
    Put,
    RemoveMember,
    Reply,
    Return,
    Stored,
    SwitchService,
    Then,
    Tick,
    UnknownNode,
)

BUCKET_MS = 16          # leases end when the 16 ms in which their deadline lies are over
DUE_JOBS_MAX = 1000
CENTURY_MS = 100 * 366 * 24 * 3600 * 1000

Name = TypeVar("Name", str, tuple[str, str])


@dataclass
class ModelJob:
    """A job; it runs iff it has an id."""

    queue: str
    priority: int
    seq: int
    data: bytes
    item: str | None
    id: int | None = None
    deadline_ms: int | None = None
    then: Then = Then.LATER
    graced: bool = False

    def facts(self) -> tuple[object, ...]:
        """What RUNLIST tells of a running job."""
        return (self.id, self.queue, self.priority, self.data, self.item, self.deadline_ms)


@dataclass
class ModelApplied:
    """As core's Applied, with the effects as lists."""

    replies: list[Reply] = field(default_factory=list)
    ready: list[str] = field(default_factory=list)
    ready_items: list[tuple[str, str]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    restored: bool = False

    def job_ready(self, queue: str, item: str | None) -> None:
        """A job waits (again)."""
        note(self.ready, queue)
        if item is not None:
            note(self.ready_items, (queue, item))


def random_bits(number: int) -> int:
    """SplitMix64's output for the state `number`, after its reference implementation."""
    full = 2**64
    z = (number + 0x9E3779B97F4A7C15) % full
    z = (z ^ (z // 2**30)) * 0xBF58476D1CE4E5B9 % full
    z = (z ^ (z // 2**27)) * 0x94D049BB133111EB % full
    return z ^ (z // 2**31)


class Model:
    """The reference model; `apply` and what can be read have the names of core's Machine.

    It cannot read snapshots. `known` tells it what the bytes used in CLONEs mean: the state of the model at the time of
    the snapshot.
    """

    def __init__(self) -> None:
        self.jobs: list[ModelJob] = []
        self.index = 0
        self.term = 0
        self.leader: str | None = None
        self.clock_ms = 0
        self.cluster_id: bytes | None = None
        self.expire_default = Then.LATER
        self.voters: list[str] = []
        self.learner: str | None = None
        self.configuration = 0
        self.addresses: dict[str, tuple[str, str]] = {}     # peer and client, by name
        self.online = True
        self.server_ids: dict[str, int] = {}
        self.max_id = 0
        self.next_id = 1
        self.next_seq = 1
        self.next_item = 1
        self.clone: tuple[int, int, bytes] | None = None
        self.known: dict[bytes, Model] = {}

    # --- the log

    def apply(self, index: int, now_ms: int, seed: int, operations: list[Operation]) -> ModelApplied:
        """Execute one entry."""
        applied = ModelApplied()
        self.index = index
        self.clock_ms = max(self.clock_ms, now_ms)
        if self.online and not (operations and isinstance(operations[0], Lead)):
            self._end_leases(applied)
        put_item: str | None = None
        for position, operation in enumerate(operations):
            match operation:
                case Put():
                    reply, put_item = self._put(operation, applied)
                case Get():
                    reply = self._get(operation, put_item, seed + position)
                case Done() | Later() | Return():
                    reply = self._finish(operation, applied)
                case Tick():
                    reply = Accepted()
                case Lead():
                    reply = self._lead(operation)
                case CloneBegin() | CloneChunk() | CloneEnd():
                    reply = self._clone(operation, applied)
                case AddLearner() | PromoteLearner() | RemoveMember():
                    reply = self._change_members(operation)
                case SwitchService():
                    reply = self._switch(operation)
            applied.replies.append(reply)
        return applied

    def _put(self, put: Put, applied: ModelApplied) -> tuple[Reply, str | None]:
        item = put.item
        if put.new_item:
            while f"i{self.next_item}" in [job.item for job in self.jobs]:
                self.next_item += 1
            item = f"i{self.next_item}"
            self.next_item += 1
        self.jobs.append(ModelJob(put.queue, put.priority, self._new_seq(), put.data, item))
        applied.job_ready(put.queue, item)
        return Stored(item if put.new_item else None), item

    def _get(self, get: Get, put_item: str | None, bits: int) -> Reply:
        if get.item_of_put and put_item is None:
            return Empty(False)
        item = put_item if get.item_of_put else get.item
        asked = [
            job
            for job in self.jobs
            if (get.queues is None or job.queue in get.queues) and (item is None or job.item == item)
        ]
        waiting = [job for job in asked if job.id is None]
        if not waiting:
            return Empty(bool(asked))
        queues = sorted({job.queue for job in waiting})
        queue = queues[random_bits(bits) * len(queues) // 2**64]
        job = first([job for job in waiting if job.queue == queue])
        job.id = self.next_id
        self.next_id += 1
        if get.expire_ms is not None and get.expire_ms > 0:
            job.deadline_ms = self.clock_ms + min(get.expire_ms, CENTURY_MS)
            job.then = self.expire_default if get.then == Then.DEFAULT else get.then
        return Handed(job.id, job.queue, job.priority, job.data, job.item)

    def _finish(self, operation: Done | Later | Return, applied: ModelApplied) -> Reply:
        job = next((job for job in self.jobs if job.id is not None and job.id == operation.id), None)
        if job is None:
            return NotFound()
        if isinstance(operation, Done):
            self.jobs.remove(job)
            note(applied.ended, job.queue)
            queue_done = job.queue not in [other.queue for other in self.jobs]
            item_done = job.item is not None and job.item not in [other.item for other in self.jobs]
            return Finished(queue_done, item_done)
        self._wait_again(job, job.seq if isinstance(operation, Return) else self._new_seq())
        applied.job_ready(job.queue, job.item)
        return Accepted()

    def _end_leases(self, applied: ModelApplied) -> None:
        due = [job for job in self.running() if job.deadline_ms is not None]
        due = [job for job in due if (job.deadline_ms or 0) // BUCKET_MS < self.clock_ms // BUCKET_MS]
        due.sort(key=lambda job: (job.deadline_ms, job.id))
        for job in due[:DUE_JOBS_MAX]:
            if job.then == Then.DONE:
                self.jobs.remove(job)
                note(applied.ended, job.queue)
            else:
                self._wait_again(job, self._new_seq())
                applied.job_ready(job.queue, job.item)

    def _lead(self, lead: Lead) -> Reply:
        if self.cluster_id is None:
            self.cluster_id = lead.cluster_id
            self.expire_default = lead.expire_default
        self.term = lead.term
        self.leader = lead.node
        self.clone = None
        if not self.voters:
            self.voters = sorted({*lead.members, lead.node})
            for name in sorted(self.voters, key=lambda name: (name != lead.node, name)):
                self._new_server_id(name)
                self.addresses[name] = ("", "")
        for address in lead.addresses:
            if address.name in self.addresses:
                peer, client = self.addresses[address.name]
                self.addresses[address.name] = (peer or address.peer, client or address.client)
        smallest = self.server_ids.get(lead.node, 0)        # 0: it was removed, and nobody gets a new id
        below = [name for name in self.server_ids if self.server_ids[name] < smallest]
        for name in sorted(below, key=lambda name: self.server_ids[name]):
            self._new_server_id(name)
        self._grant_grace(lead.grace_ms)
        return Accepted()

    def _switch(self, switch: SwitchService) -> Reply:
        if switch.online and not self.online:
            self._grant_grace(switch.grace_ms)
        self.online = switch.online
        return Accepted()

    def _grant_grace(self, grace_ms: int) -> None:
        until_ms = self.clock_ms + grace_ms
        for job in self.running():
            if grace_ms > 0 and not job.graced and job.deadline_ms is not None and job.deadline_ms < until_ms:
                job.deadline_ms = until_ms
                job.graced = True

    def _change_members(self, operation: AddLearner | PromoteLearner | RemoveMember) -> Reply:
        node = operation.node
        if isinstance(operation, AddLearner):
            if node in self.addresses:
                return NodeExists()
            if self.learner is not None or not self.voters:
                return ChangeInProgress()
            self.learner = node
            self.addresses[node] = (operation.peer, operation.client)
            self._new_server_id(node)
            return Joined(self.max_id)
        right = operation.configuration == self.configuration
        if isinstance(operation, PromoteLearner):
            if self.learner is None or node != self.learner or not right:
                return ChangeInProgress()
            self.voters = sorted([*self.voters, node])
            self.learner = None
            self.configuration += 1
            return Accepted()
        if node == self.learner:
            self.learner = None
        elif node not in self.voters:
            return UnknownNode()
        elif self.learner is not None or not right:
            return ChangeInProgress()
        elif self.voters == [node]:
            return LastNode()
        else:
            self.voters.remove(node)
            self.configuration += 1
        del self.addresses[node]
        del self.server_ids[node]
        return Accepted()

    def _clone(self, operation: CloneBegin | CloneChunk | CloneEnd, applied: ModelApplied) -> Reply:
        if isinstance(operation, CloneBegin):
            self.clone = (operation.clone, operation.total_bytes, b"")
            return Accepted()
        if self.clone is None or self.clone[0] != operation.clone:
            return InvalidSnapshot()
        clone, total_bytes, received = self.clone
        if isinstance(operation, CloneChunk):
            received += operation.data
            self.clone = None if len(received) > total_bytes else (clone, total_bytes, received)
            return Accepted() if self.clone else InvalidSnapshot()
        self.clone = None
        if len(received) != total_bytes or received not in self.known:
            return InvalidSnapshot()
        self._restore(copy.deepcopy(self.known[received]))
        applied.restored = True
        return Accepted()

    def _restore(self, other: Model) -> None:
        self.jobs = other.jobs
        for job in self.running():
            if (other.cluster_id is None or other.cluster_id != self.cluster_id) and (job.id or 0) < self.next_id:
                self._wait_again(job, job.seq)
        self.next_id = max(self.next_id, other.next_id)
        self.next_seq = max(self.next_seq, other.next_seq)
        self.next_item = max(self.next_item, other.next_item)

    def _new_seq(self) -> int:
        self.next_seq += 1
        return self.next_seq - 1

    def _new_server_id(self, name: str) -> None:
        self.max_id += 1
        self.server_ids[name] = self.max_id

    def _wait_again(self, job: ModelJob, seq: int) -> None:
        job.seq = seq
        job.id = None
        job.deadline_ms = None
        job.then = Then.LATER
        job.graced = False

    # --- for reading

    def total(self, queue: str | None) -> tuple[int, int, int, int]:
        """Queues, priorities, waiting and running jobs."""
        jobs = [job for job in self.jobs if queue is None or job.queue == queue]
        waiting = [job for job in jobs if job.id is None]
        return (
            len({job.queue for job in jobs}),
            len({(job.queue, job.priority) for job in waiting}),
            len(waiting),
            len(jobs) - len(waiting),
        )

    def running(self) -> list[ModelJob]:
        """Running jobs in rising id."""
        return sorted((job for job in self.jobs if job.id is not None), key=lambda job: job.id or 0)

    def ready(self, queue: str) -> int:
        """Number of waiting jobs of a queue."""
        return len([job for job in self.jobs if job.queue == queue and job.id is None])

    def ready_of_item(self, queue: str, item: str) -> int:
        """Number of waiting jobs of an item in a queue."""
        return len([job for job in self.jobs if job.queue == queue and job.item == item and job.id is None])

    def nonempty(self) -> list[str]:
        """Names of the queues with a waiting job."""
        return sorted({job.queue for job in self.jobs if job.id is None})

    def next_due_ms(self) -> int | None:
        """When the next lease is over."""
        deadlines = [job.deadline_ms for job in self.jobs if job.deadline_ms is not None]
        return (min(deadlines) // BUCKET_MS + 1) * BUCKET_MS if deadlines else None


def first(jobs: list[ModelJob]) -> ModelJob:
    """The job that is handed out first: the greatest priority, and in it the smallest seq."""
    return sorted(jobs, key=lambda job: (-job.priority, job.seq))[0]


def note(names: list[Name], name: Name) -> None:
    """Remember that something happened in a queue, or to an item in it; the first time counts."""
    if name not in names:
        names.append(name)
