"""Extended commands by sockpq in a session, with every call written down."""

from __future__ import annotations

from collections.abc import Callable

from sockpq import Aborted, BatchFailed, JobExists, JobNotFound, JobRunning, OutcomeUnknown, SockpqError

from tests.chaos.workload.bodies import body, job_of, original
from tests.chaos.workload.history import (
    Beat,
    Cascade,
    Command,
    Copies,
    DoneMany,
    GetMany,
    Handed,
    LaterMany,
    Move,
    Outcome,
    PutOff,
    Puts,
    PutWith,
    Record,
    Touch,
    TouchMany,
)
from tests.chaos.workload.session import WAIT_S, SessionClient

SLOTS = 8               # of each pool of workers


class SessionExtendedClient(SessionClient):
    """A client with the interface of PlainExtendedClient."""

    def put_with(self, put: PutWith) -> Record | None:
        """PUT with DELAY, KEY and GROUP."""
        def execute() -> bool:
            try:
                self._client.put(
                    put.queue, body(put.body), put.priority, delay=_seconds(put.delay_ms), key=put.key, group=put.group,
                    number=put.number,
                )
            except JobExists:
                return False
            return True
        return self._try(put, execute)

    def puts(self, puts: Puts) -> Record | None:
        """PUTS of jobs of one queue, one priority and one delay. One that fails is written down as single PUTs."""
        first = puts.puts[0]
        bodies = [body(put.body) for put in puts.puts]

        def execute(start: int) -> Record:
            try:
                self._client.put_many(first.queue, bodies, first.priority, delay=_seconds(first.delay_ms))
            except BatchFailed as failed:
                last: Record | None = None
                for position, put in enumerate(puts.puts):
                    if last is not None:
                        self._history.add(last)
                    unknown, refused = position in failed.unknown, position in failed.not_executed
                    outcome = Outcome.UNKNOWN if unknown else Outcome.NOT_EXECUTED if refused else Outcome.OK
                    last = self._record(put, start, outcome, good=(True,) if outcome is Outcome.OK else ())
                assert last is not None
                return last
            return self._record(puts, start, Outcome.OK, good=(True,) * len(bodies))
        return self._run(puts, execute)

    def copies(self, copies: Copies) -> Record | None:
        """Call put_to(), or publish() for a topic, and record the outcome."""
        first, count = copies.puts[0], len(copies.puts)

        def execute() -> None:
            data = body(original(first.body))
            if copies.topic is None:
                reached = self._client.put_to([put.queue for put in copies.puts], data, first.priority)
            else:
                reached = self._client.publish(copies.topic, data, first.priority)
            assert reached == count, f"a PUT into {count} queues reached {reached}"
        return self._try(copies, execute)

    def get_many(self, get: GetMany) -> Record | None:
        """GET or GETB with COUNT and META; see SessionClient.get."""
        if self._stopping.is_set() and get.blocks:
            return None

        def execute(start: int) -> Record:
            if get.number is not None:
                try:
                    jobs = [self._client.get_number(
                        get.number, expire=get.expire_ms / 1000, then="later", meta=True)]
                except JobRunning:
                    jobs = []
            else:
                jobs = self._client.get_many(
                    get.count, get.queues, expire=get.expire_ms / 1000, then="later", block=get.blocks,
                    wait=WAIT_S if get.blocks else None, meta=True, policy=get.policy,
                )
            given = tuple(
                Handed(
                    job.id, job.queue, job.priority, job_of(job.data, job.queue), job.item, job.meta.attempt,
                    job.meta.group, job.meta.number,
                )
                for job in jobs if job.meta is not None
            )
            outcome = Outcome.UNKNOWN if get.blocks and not given else Outcome.OK
            return self._record(get, start, outcome, given=given)
        return self._run(get, execute)

    def done_many(self, ids: tuple[int, ...]) -> Record | None:
        """Call done_many(), and record its outcome."""
        def execute(start: int) -> Record:
            found = self._client.done_many(ids)
            return self._record(DoneMany(ids), start, Outcome.OK, good=tuple(one is not None for one in found))
        return self._run(DoneMany(ids), execute)

    def later_many(self, ids: tuple[int, ...]) -> Record | None:
        """LATER .. FIRST of several ids."""
        def execute(start: int) -> Record:
            found = self._client.later_many(ids, first=True)
            return self._record(LaterMany(ids), start, Outcome.OK, good=tuple(found))
        return self._run(LaterMany(ids), execute)

    def touch_many(self, touch: TouchMany) -> Record | None:
        """TOUCH .. EXPIRE of several ids."""
        def execute(start: int) -> Record:
            found = self._client.touch_many(touch.ids, touch.expire_ms / 1000)
            return self._record(touch, start, Outcome.OK, good=tuple(found))
        return self._run(touch, execute)

    def beat(self, pool: str) -> Record | None:
        """Call worker_beat() for this pool, and record its outcome."""
        def execute(start: int) -> Record:
            bounds = self._client.worker_beat(pool, SLOTS, 0)
            return self._record(Beat(pool), start, Outcome.OK, told=bounds.most)
        return self._run(Beat(pool), execute)

    def put_off(self, later: PutOff) -> Record | None:
        """LATER .. DELAY, perhaps RAN; or BURY .. HERE and KICK."""
        number = later.kicked
        if number is not None:
            return self._try(later, lambda: self._bury_and_kick(later.id, number))
        ran = None if later.ran_ms is None else later.ran_ms / 1000
        return self._try(later, lambda: self._client.later(later.id, delay=later.delay_ms / 1000, ran=ran))

    def _bury_and_kick(self, job: int, number: int) -> None:
        self._client.bury(job, here=True)
        try:
            self._client.kick_job(number)
        except JobNotFound:                     # somebody else has kicked it, at the end, or has taken it by its number
            return
        except SockpqError as error:            # if it lies there, then until the end
            raise OutcomeUnknown(str(error)) from error

    def touch(self, touch: Touch) -> Record | None:
        """Call touch(), and record its outcome."""
        return self._try(touch, lambda: self._client.touch(touch.id, touch.expire_ms / 1000))

    def move(self, move: Move) -> Record | None:
        """Call move(), and record its outcome."""
        return self._try(move, lambda: self._client.move(move.id, move.queue, delay=_seconds(move.delay_ms)))

    def cascade(self, cascade: Cascade) -> Record | None:
        """Execute the commands in a transaction, and record its outcome."""
        def execute() -> bool:
            try:
                with self._client.transaction() as together:
                    if not cascade.puts_first:
                        together.done(cascade.done)
                    for put in cascade.puts:
                        together.put(put.queue, body(put.body), put.priority)
                    if cascade.puts_first:
                        together.done(cascade.done)
            except Aborted as aborted:
                raise aborted.reason from aborted       # its job does not run, or the leader is short of room
            return True
        return self._try(cascade, execute)

    # inside

    def _try(self, command: Command, call: Callable[[], object]) -> Record:
        """Make one call. `call` returns False when it had no effect, or raises JobNotFound."""
        def execute(start: int) -> Record:
            try:
                good = call() is not False
            except JobNotFound:
                good = False
            return self._record(command, start, Outcome.OK, good=(good,))
        return self._run(command, execute)


def _seconds(delay_ms: int) -> float | None:
    return delay_ms / 1000 if delay_ms else None
