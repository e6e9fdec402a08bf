"""The queue as plainly as it can be said: one list of jobs, searched and sorted anew for whatever is asked.

It shares with core nothing but the operations and the replies. Where it and the machine disagree, one of them is wrong,
and here it is easy to see which. It is meant for short logs: everything costs O(jobs).
"""

from __future__ import annotations

import copy

from core import (
    Accepted,
    AddLearner,
    AttachSession,
    CloneBegin,
    CloneChunk,
    CloneEnd,
    CloseSession,
    DeleteUser,
    Done,
    Empty,
    Finished,
    Get,
    Handed,
    InvalidSnapshot,
    Later,
    Lead,
    NotFound,
    OpenSession,
    Operation,
    PromoteLearner,
    Put,
    RemoveMember,
    Reply,
    Request,
    Return,
    SessionNotFound,
    SetUser,
    Stored,
    SwitchService,
    Then,
    Tick,
    TooManyUsers,
    TouchSession,
    UserNotFound,
)
from tests.core.model_jobs import ModelApplied, ModelJob, first, note, random_bits
from tests.core.model_members import ModelMembers
from tests.core.model_sessions import ModelSession, ModelSessions

BUCKET_MS = 16          # leases and sessions end when the 16 ms in which their deadline lies are over
DUE_MAX = 1000
USERS_MAX = 10_000
CENTURY_MS = 100 * 366 * 24 * 3600 * 1000


class Model(ModelMembers):
    """The reference model; `apply` and what can be read have the names of core's Machine.

    It cannot read snapshots. `known` tells it what the bytes used in CLONEs mean: the state of the model at the time of
    the snapshot.
    """

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[ModelJob] = []
        self.index = 0
        self.term = 0
        self.leader: str | None = None
        self.clock_ms = 0
        self.cluster_id: bytes | None = None
        self.expire_default = Then.LATER
        self.online = True
        self.next_id = 1
        self.next_seq = 1
        self.next_item = 1
        self.put_item: str | None = None
        self.sessions = ModelSessions()
        self.users: dict[str, tuple[str, bytes]] = {}      # rights and key
        self.clone: tuple[int, int, bytes] | None = None
        self.known: dict[bytes, Model] = {}

    # --- the log

    def apply(self, index: int, now_ms: int, seed: int, operations: list[Operation]) -> ModelApplied:
        """Execute one entry."""
        applied = ModelApplied()
        self.index = index
        self.clock_ms = max(self.clock_ms, now_ms)
        if self.online and not (operations and isinstance(operations[0], Lead)):
            self._end_due(applied)
        self.put_item = None
        for position, operation in enumerate(operations):
            applied.replies.append(self._execute(operation, seed + position, applied))
        return applied

    def _execute(self, operation: Operation, bits: int, applied: ModelApplied) -> Reply:
        match operation:
            case Put():
                return self._put(operation, applied)
            case Get():
                return self._get(operation, bits)
            case Done() | Later() | Return():
                return self._finish(operation, applied)
            case Tick():
                return Accepted()
            case Lead():
                return self._lead(operation)
            case CloneBegin() | CloneChunk() | CloneEnd():
                return self._clone(operation, applied)
            case AddLearner() | PromoteLearner() | RemoveMember():
                return self.change(operation)
            case SwitchService():
                return self._switch(operation)
            case OpenSession():
                return self.sessions.open(operation, self.clock_ms)
            case AttachSession():
                return self.sessions.attach(operation, self.clock_ms)
            case TouchSession():
                return Accepted() if self.sessions.use(operation.session, self.clock_ms) else SessionNotFound()
            case CloseSession():
                return self._close_session(operation, applied)
            case Request():
                return self._request(operation, bits, applied)
            case SetUser():
                if len({*self.users, operation.name}) > USERS_MAX:
                    return TooManyUsers()
                self.users[operation.name] = (operation.rights, operation.key)
                return Accepted()
            case DeleteUser():
                return Accepted() if self.users.pop(operation.name, None) else UserNotFound()

    def _put(self, put: Put, applied: ModelApplied) -> Reply:
        item = put.item
        if put.new_item:
            while f"i{self.next_item}" in [job.item for job in self.jobs]:
                self.next_item += 1
            item = f"i{self.next_item}"
            self.next_item += 1
        self.jobs.append(ModelJob(put.queue, put.priority, self._new_seq(), put.data, item))
        applied.job_ready(put.queue, item)
        self.put_item = item
        return Stored(item if put.new_item else None)

    def _get(self, get: Get, bits: int) -> Reply:
        if get.session is not None and not self.sessions.use(get.session, self.clock_ms):
            return SessionNotFound()
        if get.item_of_put and self.put_item is None:
            return Empty(False)
        item = self.put_item if get.item_of_put else get.item
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
        job.session = get.session
        self.next_id += 1
        if get.expire_ms is not None and get.expire_ms > 0:
            job.deadline_ms = self.clock_ms + min(get.expire_ms, CENTURY_MS)
            job.then = self.expire_default if get.then == Then.DEFAULT else get.then
        return Handed(job.id, job.queue, job.priority, job.data, job.item)

    def _finish(self, operation: Done | Later | Return, applied: ModelApplied) -> Reply:
        job = self._job(operation.id)
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

    def _end_due(self, applied: ModelApplied) -> None:
        due = [(job.deadline_ms, "lease", job.id or 0) for job in self.running() if self._over(job.deadline_ms)]
        due += [(one.deadline_ms, "session", one.number) for one in self.sessions.all if self._over(one.deadline_ms)]
        left = DUE_MAX
        for _, kind, number in sorted(due):
            if left > 0:
                end = self._end_session if kind == "session" else self._end_lease
                left -= end(number, left, applied)

    def _over(self, deadline_ms: int | None) -> bool:
        return deadline_ms is not None and deadline_ms // BUCKET_MS < self.clock_ms // BUCKET_MS

    def _end_lease(self, number: int, ends_max: int, applied: ModelApplied) -> int:
        job = self._job(number)
        if job is None:
            return 0                # its session ended first
        if job.then == Then.DONE:
            self.jobs.remove(job)
            note(applied.ended, job.queue)
        else:
            self._wait_again(job, self._new_seq())
            applied.job_ready(job.queue, job.item)
        return 1

    def _end_session(self, number: int, ends_max: int, applied: ModelApplied) -> int:
        bound = [job for job in self.running() if job.session == number]
        for job in bound[:ends_max]:
            self._wait_again(job, self._new_seq())
            applied.job_ready(job.queue, job.item)
        (session,) = [one for one in self.sessions.all if one.number == number]
        if len(bound) >= ends_max:
            session.ending = True
            session.deadline_ms = min(session.deadline_ms, self.clock_ms)
            return ends_max
        self.sessions.all.remove(session)
        return len(bound) + 1

    def _close_session(self, close: CloseSession, applied: ModelApplied) -> Reply:
        if self.sessions.find(close.session) is None:
            return SessionNotFound()
        if not close.release:
            for job in self.taken(close.session):
                job.session = None
        self._end_session(close.session, DUE_MAX, applied)
        return Accepted()

    def _request(self, request: Request, bits: int, applied: ModelApplied) -> Reply:
        session = self.sessions.use(request.session, self.clock_ms)
        reply = SessionNotFound() if session is None else session.refusal(request) or self._known(session, request)
        operation = request.operation
        if reply is not None or session is None:
            if isinstance(operation, Put):
                name = reply.item if isinstance(reply, Stored) else None
                self.put_item = name if operation.new_item else operation.item
            if isinstance(operation, CloneEnd) and self.clone is not None and self.clone[0] == operation.clone:
                self.clone = None
            return reply or SessionNotFound()
        session.digests[request.number] = request.digest
        reply = self._execute(operation, bits, applied)
        waits = request.keep_waiting and isinstance(reply, Empty) and (reply.unfinished or not request.until_finished)
        session.answers.pop((request.number, request.part), None)
        if not waits:
            session.answers[request.number, request.part] = reply
        return reply

    def _known(self, session: ModelSession, request: Request) -> Reply | None:
        answer = session.answers.get((request.number, request.part))
        if not isinstance(answer, Handed):
            return answer
        job = self._job(answer.id)
        return None if job is None else Handed(answer.id, job.queue, job.priority, job.data, job.item)

    def _lead(self, lead: Lead) -> Reply:
        if self.cluster_id is None:
            self.cluster_id = lead.cluster_id
            self.expire_default = lead.expire_default
        self.term = lead.term
        self.leader = lead.node
        self.clone = None
        self.follow(lead)
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
        if grace_ms > 0:
            self.sessions.grant_grace(until_ms)

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
        bound = {job.id: job.session for job in self.running()}
        self.jobs = other.jobs
        for job in self.running():
            job.session = bound.get(job.id)
            if (other.cluster_id is None or other.cluster_id != self.cluster_id) and (job.id or 0) < self.next_id:
                self._wait_again(job, job.seq)
        self.next_id = max(self.next_id, other.next_id)
        self.next_seq = max(self.next_seq, other.next_seq)
        self.next_item = max(self.next_item, other.next_item)
        self.sessions.next_number = max(self.sessions.next_number, other.sessions.next_number)

    def _job(self, number: int) -> ModelJob | None:
        return next((job for job in self.jobs if job.id is not None and job.id == number), None)

    def _new_seq(self) -> int:
        self.next_seq += 1
        return self.next_seq - 1

    def _wait_again(self, job: ModelJob, seq: int) -> None:
        job.seq = seq
        job.id = None
        job.deadline_ms = None
        job.then = Then.LATER
        job.graced = False
        job.session = None

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

    def taken(self, session: int) -> list[ModelJob]:
        """Running jobs bound to a session, in rising id."""
        found = self.sessions.find(session)
        return [job for job in self.running() if found is not None and job.session == session]

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
        """When the next lease or session is over."""
        deadlines = [job.deadline_ms for job in self.jobs if job.deadline_ms is not None]
        deadlines += [session.deadline_ms for session in self.sessions.all]
        return (min(deadlines) // BUCKET_MS + 1) * BUCKET_MS if deadlines else None
