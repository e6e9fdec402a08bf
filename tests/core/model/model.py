"""The simplest model of the queue: one list of jobs, searched and sorted again for each operation.

It shares with core nothing but the operations and the replies. Where it and the machine disagree, one of them is wrong,
and here it is easy to see which. It is meant for short logs: everything costs O(jobs), or more.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, cast

from msgspec import structs

from sockpqd.core import (
    DURATION_MS_MAX,
    Aborted,
    Accepted,
    Atomic,
    AttachSession,
    Await,
    BadSetting,
    Batch,
    BeatWorker,
    BindQueue,
    CancelItem,
    Change,
    ChangeMember,
    CloneChunk,
    CloseSession,
    Configure,
    ConfigureGroup,
    ConfigurePulse,
    ConfigureQueue,
    DataDropped,
    Delete,
    DeleteGroup,
    DeletePulse,
    DeleteQueue,
    Done,
    Empty,
    End,
    Fence,
    Finished,
    Fragment,
    FragmentsMissing,
    Get,
    GetWith,
    GiveResult,
    Grant,
    Handed,
    HandedMany,
    HoldItem,
    How,
    IgnoredNumber,
    InvalidSnapshot,
    JobDropped,
    JobIgnored,
    JobReplaced,
    Kick,
    Later,
    Lead,
    Leased,
    MapChanged,
    Move,
    Moved,
    MoveJobs,
    NotFound,
    OpenSession,
    Operation,
    PauseQueue,
    Policy,
    PurgeQueue,
    Put,
    PutWith,
    RaiseLevel,
    Rearmed,
    Removed,
    Reply,
    Request,
    Requested,
    Results,
    Resume,
    RetryItem,
    Return,
    ServiceFenced,
    SessionNotFound,
    SetMap,
    SetPulse,
    SetUser,
    SetWorker,
    Spread,
    Stored,
    StoredNumber,
    SwitchService,
    TakeTurn,
    Tick,
    TooManyUsers,
    ToQueues,
    ToTopic,
    Touch,
    TouchSession,
    Turn,
    UnbindQueue,
    UserNotFound,
    WorkerBounds,
    WorkerExists,
    WorkerNotFound,
    WorkerPool,
    WorkerState,
    continues,
    decode_operation,
    put_by,
)
from tests.core.model.cluster_map import brings
from tests.core.model.end import ModelEnd
from tests.core.model.jobs import ModelApplied, note
from tests.core.model.members import ModelMembers
from tests.core.model.pulses import ModelPulses
from tests.core.model.sessions import ModelSession
from tests.core.model.time import DUE_MAX, WORKER_LEFT_MS, WORKER_SILENT_MS
from tests.core.model.view import ModelView

USERS_MAX = 10_000
UNBOUND_MAX = 10_000
SPENT_MAX = 8 * 1024 * 1024     # bytes handed out after which an entry ends

There = tuple[list[tuple[int, str, str | None]], list[tuple[str, str | None]]]
# What aborts no transaction.
Fine = (
    Stored | StoredNumber | Spread | JobDropped | JobIgnored | IgnoredNumber | JobReplaced | Finished | Rearmed
    | Accepted | DataDropped | Leased | Removed | Moved
)


class Model(ModelView, ModelEnd, ModelPulses, ModelMembers):
    """The reference model; `apply` and what can be read have the names of core's Machine.

    It cannot read snapshots. `known_bytes` gives the meaning of the bytes in CLONEs: the state of the model at the
    time of the snapshot.
    """

    def __init__(self) -> None:
        super().__init__()
        self.index = 0
        self.term = 0
        self.leader: str | None = None
        self.online = True
        self.fenced: str | None = None
        self.users: dict[str, tuple[str, bytes]] = {}      # rights and key
        self.clone: tuple[int, int, bytes] | None = None
        self.fragments = (0, b"")            # number and bytes of what is collected
        self.known_bytes: dict[bytes, Model] = {}

    # --- the log

    def apply(self, index: int, now_ms: int, seed: int, operations: list[Operation]) -> ModelApplied:
        """Execute one entry, as Machine.apply does."""
        applied = ModelApplied()
        self.events = applied.events
        self.outcomes = {}
        self.index = index
        self.bits = seed
        self.before_ms, self.clock_ms = self.clock_ms, max(self.clock_ms, now_ms)
        if self.clock_ms <= 2**52:
            self.next_seq = max(self.next_seq, self.clock_ms * 1024)        # places contain the time
        self.remembered = {name: known for name, known in self.remembered.items() if known[0] > self.clock_ms}
        for queue in list(self.queues):
            self.limit_records(queue, self.settings_of(queue))
        self.go_on_evicting(self.settings.retained_bytes)
        self.spent = 0
        if self.online and not (operations and isinstance(operations[0], Lead | Resume)):
            before = self._there()
            self.end_due()
            self.judge_pulses()
            self.end_operation()
            self.settle()
            self._tell(before, applied)
        self.put_item = None
        before = self._there()
        for position, operation in enumerate(operations):
            if self.spent >= SPENT_MAX and position and not continues(operation, operations[position - 1]):
                break
            applied.replies.append(self._execute(operation, seed + position, applied))
            self.end_operation()
            self.settle()
            before = self._tell(before, applied)
        self.kept = {name: until_ms for name, until_ms in self.kept.items() if until_ms > self.clock_ms}
        self.note_idle()
        self.drop_texts()
        applied.outcomes = self.outcomes
        return applied

    def _there(self) -> There:
        """Return which jobs would be given, with their queues and items; what has unfinished jobs."""
        given = [job for queue in sorted({job.queue for job in self.jobs if job.ready})
                 for job in self.givable(queue)]
        return [(job.number, job.queue, job.item) for job in given], [(job.queue, job.item) for job in self.jobs]

    def _tell(self, before: There, applied: ModelApplied) -> There:
        """Return the effects: what a Get would be given that it would not have been given, and what is empty now."""
        given, has = self._there()
        given_before, queues, pairs = {*before[0]}, {queue for queue, _ in has}, {*has}
        for one in given:
            if one not in given_before:
                _, queue, item = one
                note(applied.ready, queue)
                if item is not None:
                    note(applied.ready_items, (queue, item))
        for queue, item in before[1]:
            if queue not in queues:
                note(applied.ended, queue)
            if item is not None and (queue, item) not in pairs:
                note(applied.ended_items, (queue, item))
        return given, has

    def _execute(self, operation: Operation, bits: int, applied: ModelApplied) -> Reply:
        match operation:
            case Tick():
                return Accepted()
            case Lead():
                return self._lead(operation)
            case CloneChunk():
                return self._clone(operation, applied)
            case ChangeMember():
                return self.change(operation)
            case Fragment():
                return self._fragment(operation, bits, applied)
            case RaiseLevel():
                return self.raise_level(operation)
            case SetMap():
                return self._set_map(operation)
            case SwitchService():
                return self._switch(operation)
            case Fence():
                self.online, self.fenced = False, operation.replica
                return Accepted()
            case Resume():
                grace_ms = operation.grace_ms if self.settings.grace_ms is None else self.settings.grace_ms
                self.grant_grace(grace_ms, once=False)
                return Accepted()
            case OpenSession():
                reply = self.sessions.open(operation, self.clock_ms, {job.session for job in self.running()})
                there = {one.number for one in self.sessions.all}
                self.end_workers({one.session for one in self.workers.values()} - there - {0})
                return reply
            case AttachSession():
                return self.sessions.attach(operation, self.clock_ms)
            case TouchSession():
                if isinstance(operation.session, int):
                    return Accepted() if self.sessions.use(operation.session, self.clock_ms) else SessionNotFound()
                for number in operation.session:
                    self.sessions.use(number, self.clock_ms)
                return Accepted()
            case CloseSession():
                return self._close_first(operation) if operation.first else self._close_session(operation)
            case Request():
                return self._request(operation, bits, applied)
            case Return():
                return self.on_running(operation)
            case Await():
                return self.await_end(operation)
            case Grant():
                return self.on_pulse(operation)
            case SetUser():
                if operation.user is None:
                    return Accepted() if self.users.pop(operation.name, None) else UserNotFound()
                if len({*self.users, operation.name}) > USERS_MAX:
                    return TooManyUsers()
                self.users[operation.name] = (operation.user.rights, operation.user.key)
                return Accepted()
            case _:
                return self._requested(cast("Requested", operation), bits, applied)

    def _requested(self, operation: Requested, bits: int, applied: ModelApplied) -> Reply:
        """Return what a Request can carry."""
        reached: Sequence[str] = ()
        if isinstance(operation, PutWith) and isinstance(operation.targets, ToTopic):
            reached = self.reached(operation.targets)
        refusal = self.elsewhere(brings(operation, self.queue_names(""), reached))
        if refusal is not None:
            self.put_item = None
            return refusal
        match operation:
            case PutWith(targets=ToQueues() | ToTopic() as targets):
                return self.spread(operation, targets)
            case Put() | PutWith():
                return self.put(operation)
            case Get():
                return self.get(operation, bits)
            case GetWith(number=int() as number):
                return self.get_number(operation, number)
            case GetWith():
                return self.pick(operation, bits)
            case Done() | Later():
                return self.on_running(operation)
            case End(ids=tuple()) | Touch(ids=tuple()):
                return self.on_many(operation)
            case End() | Touch():
                return self._measured(operation)
            case Change():
                return self.change_job(operation)
            case Delete():
                return self.delete_job(operation)
            case Move():
                return self.move(operation)
            case Kick():
                return self.kick(operation)
            case MoveJobs():
                return self.move_jobs(operation)
            case CancelItem():
                return self.cancel_item(operation)
            case HoldItem():
                return self.hold_item(operation)
            case RetryItem():
                return self.retry_item(operation)
            case Batch():
                return self._batch(operation, bits, applied)
            case CloneChunk():
                return self._clone(operation, applied)
            case BindQueue() | UnbindQueue():
                return self.on_topic(operation)
            case ConfigurePulse() | DeletePulse() | SetPulse() | TakeTurn() | GiveResult():
                return self.on_pulse(operation)
            case BeatWorker():
                return self._heartbeat(operation)
            case SetWorker():
                return self._set_worker(operation)
            case ConfigureQueue(create=True, session=int() as session):
                return self.on_queue(operation) if self.sessions.use(session, self.clock_ms) else SessionNotFound()
            case ConfigureQueue() | DeleteQueue() | PurgeQueue() | PauseQueue():
                return self.on_queue(operation)
            case Configure():
                refused = operation.fair is not None and isinstance(self.configure_fair(operation.fair), BadSetting)
                return BadSetting() if refused else self.on_queue(structs.replace(operation, fair=None))
            case ConfigureGroup() | DeleteGroup():
                return self.on_group(operation)

    def _measured(self, operation: End | Touch) -> Reply:
        """Execute the end of a hand-out, or another operation that may report how long it ran."""
        self.ran_ms = None if operation.ran_ms is None else min(max(operation.ran_ms, 0), DURATION_MS_MAX)
        reply = self.on_running(operation)
        self.ran_ms = None
        return reply

    def _batch(self, batch: Batch, bits: int, applied: ModelApplied) -> Reply:
        told = len(self.events)
        before = self._saved() if batch.atomic else {}
        put_item = self.put_item
        replies: list[Reply] = []
        for position, operation in enumerate(parts_of(batch), start=1):
            replies.append(self._requested(operation, bits, applied))
            self.end_operation()
            if batch.atomic and not isinstance(replies[-1], Fine):
                vars(self).update(before)
                del self.events[told:]
                return Aborted(position, replies[-1])
        self.put_item = put_item
        return Results(tuple(replies))

    def _saved(self) -> dict[str, Any]:
        """Return a copy of all that a transaction which fails leaves as it was."""
        untouched = ("known_bytes", "sessions", "events", "spent", "evictions_left")
        return copy.deepcopy({name: value for name, value in vars(self).items() if name not in untouched})

    def _set_map(self, operation: SetMap) -> Reply:
        if (operation.version, operation.text) == self.map:
            return Accepted()
        if operation.version <= self.map[0]:
            return MapChanged(self.map[0])
        self.map = operation.version, operation.text
        self.spent += SPENT_MAX         # what stands behind it comes with the next entry
        return Accepted()

    # --- workers

    def _heartbeat(self, beat: BeatWorker) -> Reply:
        if not self.sessions.use(beat.session, self.clock_ms):
            return SessionNotFound()
        old = self._worker(beat.name)
        if old is not None and old.session not in (0, beat.session):
            owner = self.sessions.find(old.session)
            assert owner is not None
            if self.clock_ms - owner.used_ms < WORKER_SILENT_MS:
                return WorkerExists()
        bounds = (None, None, WorkerState.RUN) if old is None else (old.most, old.least, old.state)
        self.workers[beat.name] = WorkerPool(
            beat.name, beat.session, beat.address, beat.slots, beat.busy, self.clock_ms, *bounds
        )
        return WorkerBounds(*bounds)

    def _worker(self, name: str) -> WorkerPool | None:
        """Return the pool of this name, or an operator's last setting for an earlier one of that name."""
        worker = self.workers.get(name)
        left = worker is not None and worker.session == 0 and self.clock_ms - worker.beat_ms >= WORKER_LEFT_MS
        return None if left else worker

    def _set_worker(self, operation: SetWorker) -> Reply:
        worker = self._worker(operation.name)
        if worker is None:
            return WorkerNotFound()
        most = worker.most if operation.most is None else operation.most
        least = worker.least if operation.least is None else operation.least
        if None not in (most, least) and (least or 0) > (most or 0):
            return BadSetting()
        state = worker.state if operation.state is None else operation.state
        self.workers[operation.name] = structs.replace(worker, most=most, least=least, state=state, unheard=True)
        words: list[int | str] = [] if operation.most is None else ["MAX", operation.most]
        words += [] if operation.least is None else ["MIN", operation.least]
        words += [] if operation.state is None else ["STATE", state.name]
        self.tell("WORKER", operation.name, *words)
        return Accepted()

    # --- sessions

    def _close_session(self, close: CloseSession) -> Reply:
        if self.sessions.find(close.session) is None:
            return SessionNotFound()
        if not close.release:
            bound = self.taken(close.session)
            for job in bound[:UNBOUND_MAX]:
                job.session = None
            if len(bound) > UNBOUND_MAX:
                self.sessions.use(close.session, self.clock_ms)
                return Removed(UNBOUND_MAX, True)
        self.end_session(close.session, DUE_MAX)
        return Accepted()

    def _close_first(self, close: CloseSession) -> Reply:
        if self.sessions.find(close.session) is None:
            return SessionNotFound()
        bound = self.taken(close.session)
        for job in bound[:DUE_MAX]:
            before = job.counts
            self.on_running(End(job.id or 0, How.LATER, first=True))
            # No worker has released it.
            job.counts = structs.replace(job.counts, releases=before.releases, delay_ms=before.delay_ms)
            self.end_operation()
        if len(bound) > DUE_MAX:
            self.sessions.use(close.session, self.clock_ms)
            return Removed(DUE_MAX, True)
        self.end_session(close.session, DUE_MAX)
        return Accepted()

    def _request(self, request: Request, bits: int, applied: ModelApplied) -> Reply:
        session = self.sessions.use(request.session, self.clock_ms)
        reply = SessionNotFound() if session is None else session.refusal(request) or self._known(session, request)
        operation = request.operation
        if reply is not None or session is None:
            if isinstance(operation, Put | PutWith):
                put = operation if isinstance(operation, Put) else operation.put
                if not isinstance(reply, Stored | StoredNumber):
                    self.put_item = None
                else:
                    self.put_item = reply.item if put.new_item else put.item
            if isinstance(operation, CloneChunk) and self.clone is not None and self.clone[0] == operation.clone:
                self.clone = None
            return reply or SessionNotFound()
        session.digests[request.number] = request.digest
        reply = self._requested(operation, bits, applied)
        waits = request.keep_waiting and isinstance(reply, Empty) and (reply.unfinished or not request.until_finished)
        session.answers.pop((request.number, request.part), None)
        if not waits:
            session.answers[request.number, request.part] = reply
        return reply

    def _known(self, session: ModelSession, request: Request) -> Reply | None:
        """Return the earlier answer, if it is still true."""
        answer = session.answers.get((request.number, request.part))
        if isinstance(answer, Turn):
            return answer if self.ticket_is_open(answer.ticket) else None
        if not isinstance(answer, Handed | HandedMany):
            return answer
        asked = request.operation
        shown = asked if isinstance(asked, GetWith) else None
        ids = [answer.id] if isinstance(answer, Handed) else [one.id for one in answer.jobs]
        jobs = tuple(self.handed(job, shown) for number in ids if (job := self.job(number)) is not None)
        self.spent += sum(len(one.data) for one in jobs)
        if isinstance(answer, HandedMany) and jobs:
            return HandedMany(jobs)
        return next(iter(jobs), None)

    # --- the cluster

    def _lead(self, lead: Lead) -> Reply:
        if self.cluster_id is None:
            self.cluster_id = lead.cluster_id
            self.settings = structs.replace(self.settings, expire_default=lead.expire_default)
        self.term = lead.term
        self.leader = lead.node
        self.clone = None
        self.fragments = (0, b"")
        self.follow(lead)
        client = self.addresses[lead.node][1] if lead.node in self.addresses else ""
        self.tell("LEADER", "", self.server_ids.get(lead.node, 0), lead.node, client)
        self.lead_pulses(self.before_ms)
        grace_ms = lead.grace_ms if self.settings.grace_ms is None else self.settings.grace_ms
        self.grant_failover_grace(grace_ms, lead.silence_ms)
        return Accepted()

    def _switch(self, switch: SwitchService) -> Reply:
        if self.fenced is not None:
            return ServiceFenced(self.fenced) if switch.online else Accepted()
        if switch.online and not self.online:
            self.grant_grace(switch.grace_ms)
        self.online = switch.online
        return Accepted()

    def _clone(self, operation: CloneChunk, applied: ModelApplied) -> Reply:
        if operation.total_bytes is not None:
            self.clone = (operation.clone, operation.total_bytes, b"")
        if self.clone is None or self.clone[0] != operation.clone:
            return InvalidSnapshot()
        clone, total_bytes, received = self.clone
        received += operation.data
        self.clone = None if len(received) > total_bytes else (clone, total_bytes, received)
        if not operation.last or self.clone is None:
            return Accepted() if self.clone else InvalidSnapshot()
        self.clone = None
        if len(received) != total_bytes or received not in self.known_bytes:
            return InvalidSnapshot()
        self._restore(copy.deepcopy(self.known_bytes[received]))
        applied.restored = True
        self.tell("GAP", "", self.event_seq + 1, self.event_seq + 1)
        self.had = set(), set()
        return Accepted()

    def _fragment(self, operation: Fragment, bits: int, applied: ModelApplied) -> Reply:
        number, collected = self.fragments
        self.fragments = (0, b"")
        if operation.offset and (number != operation.number or len(collected) != operation.offset):
            return FragmentsMissing()
        collected = (collected if operation.offset else b"") + operation.data
        if operation.last:
            return self._execute(decode_operation(collected), bits, applied)
        self.fragments = (operation.number, collected)
        return Accepted()

    def _restore(self, other: Model) -> None:
        for job in list(self.awaited.values()):
            self.tell_end(job, NotFound())
        bound = {job.id: job.session for job in self.running()}
        self.jobs, self.buried = other.jobs, other.buried
        self.releases = other.releases
        self.failing, self.done_of = other.failing, other.done_of
        self.holds, self.owners, self.fates = other.holds, other.owners, other.fates
        self.topics = other.topics
        self.adopt_pulses(other.pulses)
        self.queues = {name: structs.replace(one, bound=0) for name, one in other.queues.items()}
        self.used = dict.fromkeys(other.used, self.clock_ms)
        self.kept, self.remembered = other.kept, other.remembered
        self.records = other.records
        self.limit_all_records(self.settings.retained_bytes)
        for queue in self.queues:
            self.limit_records(queue, self.settings_of(queue))      # those that it brought too late
        self.past = other.past
        self.fair, self.groups, self.rates = other.fair, other.groups, other.rates
        self.given_ms = other.given_ms
        for job in self.running():
            job.session = bound.get(job.id)
            if (other.cluster_id is None or other.cluster_id != self.cluster_id) and (job.id or 0) < self.next_id:
                self.undo(job, other.clock_ms)      # the clock of the cluster in which it was due
        if self.settings.policy is Policy.FAIR:
            self.use_fair()
        self.next_id = max(self.next_id, other.next_id)
        self.next_seq = max(self.next_seq, other.next_seq)
        self.next_item = max(self.next_item, other.next_item)
        self.sessions.next_number = max(self.sessions.next_number, other.sessions.next_number)


def parts_of(batch: Batch) -> list[Atomic]:
    """Return the operations of a Batch, with the client that puts the jobs."""
    return [part if batch.user is None else put_by(part, batch.user) for part in batch.operations]
