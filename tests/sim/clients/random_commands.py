"""Commands beyond the original protocol, drawn at random.

Members of enumerations are drawn by number: the order in which the product lists them does not matter.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sockpqd.core import (
    Atomic,
    Batch,
    BeatWorker,
    BindQueue,
    CancelItem,
    Change,
    Configure,
    ConfigureGroup,
    ConfigurePulse,
    ConfigureQueue,
    Delete,
    DeleteGroup,
    DeletePulse,
    DeleteQueue,
    Done,
    Due,
    End,
    FairChange,
    Feedback,
    Get,
    GetWith,
    GiveResult,
    GroupBy,
    HoldItem,
    HoldThen,
    How,
    InTurn,
    Kick,
    Later,
    Move,
    MoveJobs,
    Number,
    OnDup,
    Order,
    Overflow,
    PauseQueue,
    Policy,
    PulseChange,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Requested,
    RetryItem,
    Sched,
    Selector,
    SetPulse,
    SetWorker,
    TakeTurn,
    Taking,
    Then,
    ToQueues,
    ToTopic,
    Touch,
    UnbindQueue,
    WorkerState,
)
from tests.sim.clients.ended_jobs import EndedJobs

if TYPE_CHECKING:
    from tests.sim.clients.without_session import Client

# Not covered by any run, because no oracle here could judge it:
# - Queues with a rate, so that grants and feedback amount to plain GET, DONE and LATER: a model of its own has them
#   (tests/core/pulse/test_pulse_model.py).
# - Changing the time or the data of a job by its place: the reply does not say which job it was.
QUEUES = ("a", "b", "c")
PASSING = "d"                   # in runs with `passing` this queue has TTL, IDLE, OVERFLOW, BOUND, and jobs have copies
TIED = ("e", "f")               # and these are mostly made by sessions, with which they go
TOPIC = "all"
PASSES = 0.25                   # so many commands are about these then
ENDS = 0.25                     # and so many about numbers, headers, results and records in runs with `ended`
KEYS = ("k1", "k2", "k3")
GROUPS = ("g", "h")
# By the other settings of a queue, so that no more need be drawn.
GROUPS_BY: dict[tuple[int, Sched | None], GroupBy] = {
    (0, Sched.FIFO): GroupBy.PUT, (3, Sched.FAIR): GroupBy.USER, (3, Sched.GROUPS): GroupBy.ITEM,
}
ROUTES = ("", "x", "x.y")
PATTERNS = (None, "x", "*.y", "#")
WORKERS = ("w", "v")
PULSES = ("p", "p", "s")
TICKETS = 6                     # a run has few more
RAN_MS = (0, 7, 5000, 70_000)
DELAYS_MS = (0, 1, 20, 90, 400)
FAR_MS = 86_400_000             # so late that somebody has to change the time: by its key
PERIODS_MS = (40, 300)
TTLS_MS = (30, 300, 5000)
EXPIRES_MS = (None, 0, 30, 200, 1000, 5000)
FOREVER = QueueChange(      # no limit
    expire_ms=0, order=Order.FIFO, tries=0, limit=0, item_limit=0, capacity=0, data_bytes_max=0, batch=0, portion=1000,
    keep_ms=0, backoff_ms=0,
)


class RandomCommands:
    """The random commands of one client."""

    def __init__(self, client: Client, rng: random.Random) -> None:
        self._client = client
        self._rng = rng
        self._ended = EndedJobs(client, rng)

    def draw(self) -> Requested:
        """Return a random operation."""
        if self._client.ended and self._rng.random() < ENDS:
            return self._ended.draw()
        if self._client.passing and self._rng.random() < PASSES:
            return self._about_passing()
        draw = self._rng.random()
        if draw < 0.3:
            return self._put_with()
        if draw < 0.52:
            return self._take()
        if draw < 0.66:
            return self._end_some()
        if draw < 0.8:
            return self._atomic()
        if draw < 0.87:
            return self._about_pulses()
        if draw < 0.93:
            return Batch(tuple(self._part() for _ in range(self._rng.randrange(1, 5))), self._rng.random() < 0.7)
        return self._about_queue()

    # Jobs come and go

    def _when(self, *, keyed: bool = False) -> Due | None:
        rng = self._rng
        draw = rng.random()
        if draw < 0.3:
            return None
        if draw < 0.7:
            return Due(rng.choice(DELAYS_MS))
        clock_ms = self._client.clock_ms
        return Due(at_ms=max(0, clock_ms + rng.choice((-5000, -1, 60, 500, *((FAR_MS,) if keyed else ())))))

    def _put_with(self) -> PutWith:
        rng = self._rng
        put = self._client.put(new_item=rng.random() < 0.1)
        key = rng.choice((None, *KEYS))
        after = tuple(rng.sample(("i", "j"), rng.randrange(1, 3))) if rng.random() < 0.15 else ()
        if after:       # who waits for an item has none, or two could wait for each other for ever
            put = Put(put.queue, put.priority, put.data)
        return PutWith(
            put, self._when(keyed=key is not None), rng.choice((None, None, None, *TTLS_MS)),
            rng.choice(PERIODS_MS) if rng.random() < 0.2 else None, after, key, rng.choice(sorted(OnDup)),
            rng.choice((None, None, 1, 2)),
        )

    def _pick(self) -> GetWith:
        rng = self._rng
        queues = None if rng.random() < 0.3 else tuple(sorted(rng.sample(self._client.queues, rng.randrange(1, 4))))
        get = Get(queues, rng.choice(EXPIRES_MS), rng.choice(sorted(Then)), rng.choice((None, None, None, "i")))
        return GetWith(get, rng.choice((None, 1, 2, 5)), rng.choice((None, *sorted(Policy))), rng.random() < 0.5,
                       life=rng.random() < 0.2)

    def _take(self) -> Taking:
        if self._rng.random() < 0.05:
            rng = self._rng
            number, expire_ms = self._client.number(), rng.choice(EXPIRES_MS)
            return GetWith(Get(None, expire_ms), meta=rng.random() < 0.5, number=number, life=rng.random() < 0.5)
        pick, draw = self._pick(), self._rng.random()
        if draw < 0.8:
            return pick
        if draw < 0.9:
            return replace(pick, free=())
        policy = self._rng.choice((Policy.RR, Policy.PRIORITY))
        return replace(pick, policy=policy, turn=InTurn(self._rng.choice((None, *self._client.queues))))

    def _put_elsewhere(self) -> PutWith:
        """Put a job with a group, or into one queue that is named in another way."""
        rng = self._rng
        wish = self._put_with()
        grouped = replace(wish, group=rng.choice(GROUPS))
        if rng.random() < 0.5:
            return grouped
        job = rng.choice((wish, grouped))
        put = Put(wish.put.queue, wish.put.priority, wish.put.data, wish.put.item)
        job = replace(job, put=put, on_dup=OnDup.FAIL)
        named = rng.random() < 0.5
        return replace(job, targets=ToQueues((put.queue,)) if named else ToTopic(put.queue, rng.choice(ROUTES)))

    def _put_numbered(self) -> PutWith:
        wish = self._put_with()
        if self._rng.random() >= 0.7:
            wish = replace(wish, group=self._rng.choice(GROUPS))
        number = self._rng.random() < 0.9
        return replace(wish, number=number, lease_ms=None if number else 5000, user="g" if number else None)

    def _put_to_several(self) -> PutWith:
        """Put copies of a job: no others have the same data."""
        rng, wish = self._rng, self._put_with()
        put = Put(wish.put.queue, wish.put.priority, wish.put.data, wish.put.item)
        job = replace(wish, put=put, on_dup=OnDup.FAIL)
        if rng.random() < 0.5:
            return replace(job, targets=ToTopic(TOPIC, rng.choice(ROUTES)))
        return replace(job, targets=ToQueues(tuple(rng.choices((*self._client.queues, *TIED), k=rng.randrange(2, 5)))))

    def _end_some(self) -> Requested:
        rng = self._rng
        ids = tuple(self._client.release() for _ in range(rng.randrange(2, 4)))
        draw = rng.random()
        if draw < 0.15:
            return Touch(ids, rng.choice((None, 1000)))
        return End(ids, How.DONE) if draw < 0.6 else End(ids, How.LATER) if draw < 0.9 else End(
            ids, How.LATER, first=True,
        )

    def _part(self) -> Atomic:
        """Draw a command of a transaction."""
        rng = self._rng
        if self._client.ended and rng.random() < ENDS:
            return self._ended.atomic()
        draw = rng.random()
        if draw < 0.3:
            return self._client.put(new_item=rng.random() < 0.1)
        return self._put_with() if draw < 0.5 else self._atomic()

    def _atomic(self) -> Atomic:
        """Draw an operation on one job."""
        rng, client = self._rng, self._client
        kinds: tuple[Callable[[], Atomic], ...] = (
            lambda: Done(client.release()), lambda: End(
                client.release(), How.DONE, last=True,
            ), lambda: Later(client.release()),
            self._later, self._later, self._touch, self._touch, self._change, self._change, self._move, self._move,
            lambda: End(client.release(), How.BURY), lambda: Delete(self._selector()),
            self._rarer, self._rarer, self._rarer,
        )
        return rng.choice(kinds)()

    def _hold(self) -> HoldItem:
        rng = self._rng
        return HoldItem(rng.choice(("i", "j")), rng.choice((1000, 5000)), rng.choice(sorted(HoldThen)))

    def _rarer(self) -> Atomic:
        """Draw a rarer operation: with a reason, by place, or measured."""
        rng, client = self._rng, self._client
        kinds: tuple[Callable[[], Atomic], ...] = (
            self._put_elsewhere, self._put_elsewhere, self._put_elsewhere,
            lambda: End(client.release(), How.BURY, reason="why", text=rng.choice((None, b"dead for a reason"))),
            self._later_with_reason,
            self._hold, self._hold, lambda: HoldItem(rng.choice(("i", "j")), None),
            lambda: End(client.release(), How.DONE, ran_ms=rng.choice(RAN_MS), last=rng.random() < 0.2),
            lambda: replace(rng.choice((self._later, self._later_with_reason))(), ran_ms=rng.choice(RAN_MS)),
            lambda: replace(self._touch(), ran_ms=rng.choice(RAN_MS)),
            lambda: End(client.release(), How.DONE, feedback=rng.choice(sorted(Feedback)), sleep_ms=50),
            lambda: replace(self._later(), feedback=rng.choice(sorted(Feedback)), sleep_ms=50),
            lambda: Delete(client.place()), lambda: Kick("", 1, selector=client.place()),
            lambda: Change(client.place(), rng.randrange(3), no_item=rng.random() < 0.2),
            lambda: Change(Number(client.number()), rng.randrange(3), no_item=rng.random() < 0.2),
            lambda: Delete(Number(client.number())),
            lambda: Kick("", 1, selector=Number(client.number())), lambda: Delete(
                Number(client.number()), unless_running=True,
            ),
            lambda: End(
                client.release(), How.BURY, priority=rng.choice((None, 1)), here=True, reason=rng.choice((None, "why")),
            ),
            lambda: End(client.release(), How.BURY, here=True),
            self._put_numbered, self._put_numbered,
        )
        return rng.choice(kinds)()

    def _later_with_reason(self) -> End:
        rng = self._rng
        error = rng.choice((None, b"", b"why", b"because of that"))
        return replace(self._later(), reason="why", text=error, dropped=error is None and rng.random() < 0.2)

    def _later(self) -> End:
        rng = self._rng
        kind = rng.random()
        return End(
            self._client.release(), How.LATER, self._when() if kind < 0.6 else None, rng.choice((None, 0, 2)),
            first=kind > 0.8, yielded=rng.random() < 0.3,
        )

    def _touch(self) -> Touch:
        rng = self._rng
        expire_ms = rng.choice((None, None, 100, 1000))
        then = Then.DEFAULT if expire_ms is None else rng.choice(sorted(Then))
        return Touch(self._client.held(), expire_ms, then)

    def _selector(self) -> Selector:
        rng = self._rng
        if rng.random() < 0.5:
            return Selector(id=self._client.release())
        return Selector(queue=rng.choice(self._client.queues), key=rng.choice(KEYS))

    def _change(self) -> Change:
        rng = self._rng
        data = self._client.body() if rng.random() < 0.5 else None
        if rng.random() < 0.4:
            return Change(
                Selector(queue=rng.choice(self._client.queues), key=rng.choice(KEYS)), rng.choice((None, 1)),
                self._when(keyed=True), data=data,
            )
        item = rng.choice((None, None, "i", "j"))
        return Change(
            Selector(id=self._client.held()), rng.choice((None, 1)), self._when() if rng.random() < 0.3 else None, item,
            item is None and rng.random() < 0.2, data,
        )

    def _move(self) -> Move:
        rng = self._rng
        data = self._client.body() if rng.random() < 0.5 else None
        return Move(self._client.release(), rng.choice(self._client.queues), rng.choice((None, 2)), self._when(), data)

    # Queues

    def _about_queue(self) -> Requested:
        rng = self._rng
        queue = rng.choice(self._client.queues)
        draw = rng.random()
        if rng.random() < 0.3:
            return self._about_others(queue)
        if draw < 0.13:
            return self._moves(queue)
        if draw < 0.36:
            count = 1000 if rng.random() < 0.8 else 1
            return Kick(self._client.queue_of_dead(queue), count) if draw < 0.33 else Kick(queue, count, here=True)
        if draw < 0.5:
            return ConfigureQueue(queue, self._settings(queue))
        if draw < 0.6:
            if rng.random() < 0.3:
                return PauseQueue(queue, False, True, rng.choice((0, 20, 200, 1000)))
            return PauseQueue(queue, rng.random() < 0.5, rng.random() < 0.5)
        if draw < 0.8:
            return PauseQueue(queue, False, False)
        if draw < 0.88:
            return self._empties(queue)
        if draw < 0.93:
            leave = rng.random() < 0.15
            return DeleteQueue(queue, leave or rng.random() < 0.4, leave)
        if draw < 0.96:
            return ConfigureQueue(queue, self._settings(queue), create=True)
        return Configure(
            rng.choice((None, Then.LATER, Then.DONE)), rng.choice((None, True, True, False)),
            rng.choice((None, *sorted(Policy))), rng.choice((None, 0, 400)),
        )

    def _empties(self, queue: str) -> Requested:
        rng = self._rng
        if rng.random() < 0.35:
            item = rng.choice(("i", "j"))
            return rng.choice((RetryItem(item), RetryItem(item), CancelItem(item)))
        if rng.random() < 0.2:
            return PurgeQueue(queue, Purged.RUNNING if rng.random() < 0.7 else Purged.OWN)
        return PurgeQueue(queue, rng.choice((Purged.ALL, Purged.READY, Purged.DELAYED, Purged.DEAD, Purged.BURIED)))

    def _moves(self, queue: str) -> MoveJobs:
        rng, dead = self._rng, self._client.queue_of_dead(queue)
        other = rng.choice(self._client.queues)
        return rng.choice((
            MoveJobs(queue, other, 1), MoveJobs(queue, other, 3), MoveJobs(queue, other, 1000),
            MoveJobs(dead, other, 1000), MoveJobs(dead, other, 1000, queue),
        ))

    def _about_others(self, queue: str) -> Requested:
        """Draw operations on topics, each named after the only queue bound to it, on workers, and on later settings."""
        rng = self._rng
        worker, pattern = rng.choice(WORKERS), rng.choice(PATTERNS)
        alarm, sched = rng.choice((0, 3)), rng.choice((None, None, *sorted(Sched)))
        in_order = None if sched is None else sched is not Sched.FIFO and alarm > 0
        changed = replace(
            self._settings(queue), alarm=alarm, sched=sched, group_by=GROUPS_BY.get((alarm, sched)),
            group_order=in_order,
        )
        kinds: tuple[Callable[[], Requested], ...] = (
            lambda: BindQueue(queue, queue, pattern), lambda: BindQueue(queue, queue, pattern),
            lambda: UnbindQueue(queue, queue, pattern), lambda: UnbindQueue(queue, None),
            lambda: ConfigureQueue(queue, changed, create=True), lambda: ConfigureQueue(queue, changed),
            lambda: Configure(
                fair=FairChange(
                    (0, rng.randrange(1, 100)), rng.choice((None, 5000)), rng.choice((None, 1, 2)),
                    rng.choice((None, 0, 600)),
                ),
            ),
            lambda: ConfigureGroup(queue, rng.choice((0, 1, 3))), lambda: ConfigureGroup(queue, paused=True),
            lambda: ConfigureGroup(queue, paused=False), lambda: DeleteGroup(queue),
            lambda: BeatWorker(worker, 4, rng.randrange(5)), lambda: BeatWorker(worker, 4, rng.randrange(5)),
            lambda: SetWorker(worker, rng.choice((None, 1, 4)), rng.choice((None, 2)), rng.choice(sorted(WorkerState))),
        )
        return rng.choice(kinds)()

    def _about_passing(self) -> Requested:
        """Draw jobs in several queues, topics that lead there, and a queue that does not last."""
        rng = self._rng
        queue, pattern = rng.choice((*self._client.queues, *TIED)), rng.choice(PATTERNS)
        change = rng.choice((
            QueueChange(ttl_ms=rng.choice((0, 30, 400))), QueueChange(idle_ms=rng.choice((0, 40, 300))),
            QueueChange(idle_ms=40), QueueChange(overflow=rng.choice(sorted(Overflow))),
            QueueChange(overflow=Overflow.DROPOLDEST),
        ))
        if change.overflow is not None:
            change = replace(change, capacity=rng.choice((1, 3)))
        kinds: tuple[Callable[[], Requested], ...] = (
            *4 * [self._put_to_several],
            lambda: BindQueue(TOPIC, queue, pattern), lambda: BindQueue(TOPIC, queue, pattern),
            lambda: UnbindQueue(TOPIC, queue, pattern),
            lambda: UnbindQueue(TOPIC, None) if rng.random() < 0.2 else BindQueue(TOPIC, queue, None),
            lambda: ConfigureQueue(PASSING, change), lambda: ConfigureQueue(PASSING, change),
            lambda: ConfigureQueue(PASSING, change, create=True),
            *4 * [lambda: ConfigureQueue(rng.choice(TIED), change, create=True)],
            lambda: DeleteQueue(PASSING, True),
        )
        return rng.choice(kinds)()

    def _about_pulses(self) -> Requested:
        """Draw turns and their results; whether there is room for a turn is chosen at random."""
        rng, client = self._rng, self._client
        pulse = rng.choice(PULSES)
        change = PulseChange(
            rng.choice((None, 1, 3)), rng.choice((None, 100, 2000)), rng.choice((None, 50)), rng.choice((None, 200)),
            rng.choice((None, 300)),
        )
        kinds: tuple[Callable[[], Requested], ...] = (
            *3 * [lambda: ConfigurePulse(pulse, change, True, rng.random() < 0.3, rng.choice((None, 1)))],
            lambda: ConfigurePulse(pulse, change), lambda: SetPulse(pulse, client.body(), rng.random() < 0.3),
            lambda: DeletePulse(pulse) if rng.random() < 0.3 else TakeTurn(pulse, True),
            *6 * [lambda: TakeTurn(pulse, rng.random() < 0.8)],
            *4 * [lambda: GiveResult(rng.randrange(1, TICKETS), rng.choice(sorted(Feedback)), rng.choice((20, 500)))],
        )
        return rng.choice(kinds)()

    def _settings(self, queue: str) -> QueueChange:
        rng = self._rng
        if rng.random() < 0.3:
            return FOREVER
        changes = (
            QueueChange(expire_ms=rng.choice((100, 1000)), then=rng.choice(sorted(Then))),
            QueueChange(order=rng.choice(sorted(Order))),
            QueueChange(tries=rng.choice((1, 2)), dead=None if queue == "a" else "morgue"),
            QueueChange(limit=rng.choice((1, 3)), capacity=rng.choice((0, 30))),
            QueueChange(item_limit=1),
            QueueChange(capacity=rng.choice((4, 30))),
            QueueChange(data_bytes_max=200),
            QueueChange(batch=2, portion=1),
            QueueChange(keep_ms=500),
            QueueChange(backoff_ms=rng.choice((5, 40)), backoff_max_ms=300, error_bytes=rng.choice((0, 30, 1000))),
        )
        return rng.choice(changes)
