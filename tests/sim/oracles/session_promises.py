"""What sessions promise (spec/sessions 3.3), checked on the history alone, without the model of the queue.

A request is executed once and answered the same ever after. A job that was handed out is given again as long as it
runs. `404`, `409 Too Old` and `409 Mismatch` are said when they are true, and then nothing was executed. A session
lives as long as it is used, and a grace longer when a leader was lost; jobs bound to it end with it, and not before.

All this needs to know which jobs run. So it is kept account of what becomes of all jobs, also those of clients without
a session (job_replies.py): each acknowledged one is there until something ended it, none is handed out before its time
or to two at once, no two of a queue have the same key, a transaction is executed as a whole or not at all, and DONE of
a periodic job leaves one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sockpqd.core import (
    Accepted,
    AttachSession,
    BeatWorker,
    BindQueue,
    CloneBegin,
    CloneChunk,
    CloneEnd,
    CloseSession,
    Configure,
    ConfigureQueue,
    CreateQueue,
    DeleteQueue,
    DeleteTopic,
    Empty,
    Get,
    GetWith,
    Handed,
    HandedMany,
    Lead,
    OpenSession,
    Operation,
    PauseQueue,
    Reply,
    Request,
    RequestMismatch,
    RequestTooOld,
    Resume,
    ResumeQueue,
    SessionAttached,
    SessionNotFound,
    SessionOpened,
    SwitchService,
    Then,
    TouchSession,
    Turn,
    UnbindQueue,
    limits,
)
from tests.sim.oracles.deadlines import Deadline
from tests.sim.oracles.job_replies import JobReplies
from tests.sim.oracles.plain_forms import plain
from tests.sim.oracles.settings_in_force import Rules
from tests.sim.world.trace import Violation

SPENT_MAX = 8 << 20             # bytes handed out after which an entry is over
ON_ONE_QUEUE = CreateQueue | ConfigureQueue | PauseQueue | ResumeQueue
LEASE, SESSION = range(2)       # of deadlines at the same time those of leases come first


@dataclass
class Account:
    """What is known of a session that lives."""

    secret: int
    ttl_ms: int
    deadline: Deadline
    newest: int = 0
    digests: dict[int, bytes] = field(default_factory=dict)                 # by number
    answers: dict[tuple[int, int], Reply] = field(default_factory=dict)     # by number and part


class SessionPromises:
    """Fed with each entry of the history; raises Violation at the first lie."""

    def __init__(self, seen: Counter[str]) -> None:
        self.rules = Rules()
        self.jobs = JobReplies(self.rules, seen)
        self._seen = seen
        self._clock_ms = 0
        self._online = True
        self._led = False
        self._sessions: dict[int, Account] = {}
        self._opened: set[int] = set()

    def applied(self, now_ms: int, operations: list[Operation], replies: list[Reply]) -> None:
        """The next entry."""
        self._clock_ms = self.jobs.clock_ms = max(self._clock_ms, now_ms)
        if self._online and not (operations and isinstance(operations[0], Lead | Resume)):
            self._end_due()
        self._enough(operations, replies)
        for operation, reply in zip(operations, replies, strict=False):
            if isinstance(operation, Request):
                self._request(operation, reply)
            else:
                self._executed(operation, reply)

    def _enough(self, operations: list[Operation], replies: list[Reply]) -> None:
        """An entry is cut behind the operation with which so much was handed out, and only there."""
        handed = [sum(len(job.data) for job in _jobs(reply)) for reply in replies]
        if sum(handed[:-1]) >= SPENT_MAX:
            raise Violation(f"an entry hands out {handed}, and {SPENT_MAX} are enough")
        if len(replies) < len(operations) and sum(handed) < SPENT_MAX:
            raise Violation(f"an entry leaves operations to the next one and hands out {handed}")

    # What time does

    def _end_due(self) -> None:
        """Leases and sessions end, the earlier first: a job may end by its lease or go back with its session."""
        due = [(lease.ends_ms, LEASE, id_) for id_, lease in self.jobs.deadlines() if lease.over(self._clock_ms)]
        due += [
            (account.deadline.ends_ms, SESSION, number) for number, account in self._sessions.items()
            if account.deadline.over(self._clock_ms)
        ]
        for _, kind, number in sorted(due):
            if kind == LEASE:
                self.jobs.end_lease(number)
            else:
                self._seen["sessions over"] += 1
                self._end_session(number, asked=False)

    def _end_session(self, number: int, *, asked: bool) -> None:
        del self._sessions[number]
        for job in self.jobs.bound(number):
            self._seen["bound jobs returned"] += 1
            self.jobs.fail(job, asked=asked)
        for queue in self.rules.bound(number):
            self._seen["bound queues gone"] += 1
            self.jobs.remove_queue(queue, CloseSession(number, True))

    def _grant(self, grace_ms: int, *, once: bool = True) -> None:
        for deadline in self._deadlines() if grace_ms > 0 else ():
            deadline.grant(self._clock_ms + grace_ms, once=once)

    def _deadlines(self) -> list[Deadline]:
        return [lease for _, lease in self.jobs.deadlines()] + [one.deadline for one in self._sessions.values()]

    # What operations do

    def _executed(self, operation: Operation, reply: Reply) -> None:
        operation = plain(operation)
        match operation:
            case BeatWorker():
                self._use(operation.session, operation, reply)
            case Get() | GetWith():
                get = operation.get if isinstance(operation, GetWith) else operation
                if get.session is not None:
                    self._use(get.session, operation, reply)
                self.jobs.executed(operation, reply)
            case Lead():
                if not self._led:
                    self._led = True
                    self.rules.expire_default = Then.DONE if operation.expire_default is Then.DONE else Then.LATER
                grace_ms = operation.grace_ms if self.rules.grace_ms is None else self.rules.grace_ms
                for deadline in self._deadlines() if grace_ms > 0 else ():
                    deadline.lead(self._clock_ms, grace_ms, operation.silence_ms)
            case Resume():
                self._grant(operation.grace_ms if self.rules.grace_ms is None else self.rules.grace_ms, once=False)
            case SwitchService():
                if operation.online and not self._online:
                    self._grant(operation.grace_ms)
                self._online = operation.online
            case CloneBegin() | CloneChunk() | CloneEnd():
                self._set(operation, reply)
            case DeleteQueue() | Configure() | BindQueue() | UnbindQueue() | DeleteTopic():
                self._set(operation, reply)
            case CreateQueue() | ConfigureQueue() | PauseQueue() | ResumeQueue():
                self._set(operation, reply)
            case OpenSession() | AttachSession() | TouchSession() | CloseSession():
                self._session_command(operation, reply)
            case _:
                self.jobs.executed(operation, reply)

    def _set(self, operation: Operation, reply: Reply) -> None:
        """Something is set, or comes with a CLONE."""
        if not isinstance(reply, Accepted):
            return
        if isinstance(operation, DeleteQueue):
            self.jobs.executed(operation, reply)
        self.rules.executed(operation)
        if isinstance(operation, ON_ONE_QUEUE):
            self.jobs.used_ms[operation.queue] = self._clock_ms
        if isinstance(operation, CloneEnd):
            self.jobs.forget()

    def _session_command(
        self, operation: OpenSession | AttachSession | TouchSession | CloseSession, reply: Reply,
    ) -> None:
        match operation:
            case OpenSession():
                if isinstance(reply, SessionOpened):
                    self._open(operation, reply)
            case AttachSession():
                account = self._sessions.get(operation.session)
                if account is not None and account.secret != operation.secret:
                    if not isinstance(reply, SessionNotFound):
                        raise Violation(f"{operation} is answered {reply} and has the wrong secret")
                    return
                account = self._use(operation.session, operation, reply)
                if account is not None and reply != SessionAttached(account.ttl_ms, account.newest):
                    raise Violation(f"{operation} is answered {reply}, the last request was {account.newest}")
            case TouchSession():
                self._use(operation.session, operation, reply)
            case CloseSession():
                if self._living(operation.session, operation, reply) is not None:
                    self._close(operation)

    def _open(self, operation: OpenSession, opened: SessionOpened) -> None:
        number = int(opened.sid.partition("_")[0])
        if number in self._opened:
            raise Violation(f"session {number} is opened twice")
        self._opened.add(number)
        self._seen["sessions opened"] += 1
        deadline = Deadline(self._clock_ms + opened.ttl_ms)
        self._sessions[number] = Account(operation.secret, opened.ttl_ms, deadline)

    def _close(self, operation: CloseSession) -> None:
        if not operation.release:
            for job in self.jobs.bound(operation.session):
                self.jobs.running[job].session = None
        self._seen["sessions closed"] += 1
        self._end_session(operation.session, asked=True)

    def _living(self, number: int, operation: Operation, reply: Reply) -> Account | None:
        """The session, which must be told as living if it lives, and only then."""
        account = self._sessions.get(number)
        if (account is None) != isinstance(reply, SessionNotFound):
            raise Violation(f"{operation} is answered {reply}, and the session {'lives' if account else 'is over'}")
        return account

    def _use(self, number: int, operation: Operation, reply: Reply) -> Account | None:
        account = self._living(number, operation, reply)
        if account is not None:
            account.deadline.used(self._clock_ms + account.ttl_ms)
        return account

    # Requests

    def _request(self, request: Request, reply: Reply) -> None:
        account = self._use(request.session, request, reply)
        if account is None:
            self._seen["answered SessionNotFound"] += 1
            return
        number = request.number
        too_old = number < 1 or number <= account.newest - limits.REQUEST_WINDOW
        mismatch = not too_old and account.digests.get(number, request.digest) != request.digest
        for holds, kind in ((too_old, RequestTooOld), (mismatch, RequestMismatch)):
            if holds != isinstance(reply, kind):
                raise Violation(f"{request} is answered {reply}, and that is {'' if holds else 'not '}{kind.__name__}")
            if holds:
                self._seen[f"answered {kind.__name__}"] += 1
                return
        account.newest = max(account.newest, number)
        account.digests[number] = request.digest
        first = account.answers.get((number, request.part))
        if first is None or not self._repeated(request, reply, first):
            self._executed(request.operation, reply)
            if not waits(request, reply):
                account.answers[number, request.part] = reply

    def _repeated(self, request: Request, reply: Reply, first: Reply) -> bool:
        """Is this the first answer again? It must be, unless what was handed out is over: a job, or a turn.

        Whether a ticket is still open is known to the model, which also judges each reply.
        """
        if isinstance(first, Turn) and reply != first:
            return False
        handing = isinstance(first, Handed | HandedMany)
        same = self._handed_again(request, reply, first) if isinstance(first, Handed | HandedMany) else reply == first
        if same is False:
            raise Violation(f"{request} is answered {reply}, and was answered {first} before")
        self._seen["jobs handed again" if handing else "answers repeated"] += same is True
        return same is True

    def _handed_again(self, request: Request, reply: Reply, first: Handed | HandedMany) -> bool | None:
        """Are these the jobs that were given, as far as they run? None: none of them does."""
        operation = plain(request.operation)
        pick = operation if isinstance(operation, GetWith) else GetWith(operation)    # type: ignore[arg-type]
        given, again = [job.id for job in _jobs(first)], _jobs(reply)
        if self.jobs.blind and again and all(job.id in given for job in again):
            return True
        runs = [number for number in given if number in self.jobs.running]
        if not runs:
            return None
        return (
            type(reply) is type(first) and [job.id for job in again] == runs
            and all(self.jobs.again(pick, job) for job in again)
        )


def _jobs(reply: Reply) -> tuple[Handed, ...]:
    return (reply,) if isinstance(reply, Handed) else reply.jobs if isinstance(reply, HandedMany) else ()


def waits(request: Request, reply: Reply | None) -> bool:
    """Is this no answer yet, because the client goes on waiting?"""
    return isinstance(reply, Empty) and request.keep_waiting and (reply.unfinished or not request.until_finished)
