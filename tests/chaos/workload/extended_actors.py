"""A producer and a worker that use extended commands, in queues of their own."""

from __future__ import annotations

import random
import time
from itertools import count
from typing import Protocol

from tests.chaos.workload.actors import LEASE_MS, PRIORITIES, Client, Meter, Stoppable
from tests.chaos.workload.bodies import COPIED, copy_of
from tests.chaos.workload.history import (
    Cascade,
    Copies,
    GetMany,
    Handed,
    Move,
    Outcome,
    Policy,
    PutOff,
    Puts,
    PutWith,
    Record,
    Steer,
    Touch,
    TouchMany,
)

DELAYED, KEYED, FRAIL, STEPS, NEXT, MOVED = "delayed", "keyed", "frail", "steps", "next", "moved"
NUMBERED = "numbered"       # whose jobs are buried there, kicked and taken by their numbers
PACED = "paced"
RATES = {PACED: (5, 1.0)}   # jobs, in so many seconds: a little less than what comes
TRIES = {FRAIL: 3}
DEAD = f"{FRAIL}_dead"
QUEUES = (DELAYED, KEYED, FRAIL, STEPS, NEXT, MOVED, DEAD, NUMBERED, PACED, *COPIED)
TOPIC = "copied"            # which reaches all of these
IDLE_S = {COPIED[0]: 30.0}  # somebody asks there several times a second: it must stay

TOUCH_MS = 2500
DELAYS_MS = (100, 300, 700, 1500)
GROUPS = (None, "group_1", "group_2", DELAYED)     # the last one is that of a queue as well
RAN_MS = (None, 0, 900, 20_000)
POLICIES: tuple[Policy | None, ...] = (
    None, None, None, "fair", "fair", "fair", "order", "sorted", "priority", "place", "oldest", "rr",
)
BACKLOG_MAX = 300


class ExtendedClient(Client, Protocol):
    """The calls of PlainExtendedClient and SessionExtendedClient that actors make."""

    def put_with(self, put: PutWith) -> Record | None: ...
    def puts(self, puts: Puts) -> Record | None: ...
    def copies(self, copies: Copies) -> Record | None: ...
    def get_many(self, get: GetMany) -> Record | None: ...
    def done_many(self, ids: tuple[int, ...]) -> Record | None: ...
    def put_off(self, later: PutOff) -> Record | None: ...
    def touch(self, touch: Touch) -> Record | None: ...
    def move(self, move: Move) -> Record | None: ...
    def cascade(self, cascade: Cascade) -> Record | None: ...
    def later_many(self, ids: tuple[int, ...]) -> Record | None: ...
    def touch_many(self, touch: TouchMany) -> Record | None: ...


class Pool(Stoppable, Protocol):
    """The calls of SessionExtendedClient that pools of workers make."""

    def beat(self, pool: str) -> Record | None: ...


class Operator(Stoppable, Protocol):
    """The calls of PlainExtendedClient that operators make."""

    def steer(self, steer: Steer) -> Record | None: ...


class Planner:
    """Puts jobs for later, jobs with keys, portions of jobs, copies of jobs, and jobs that lead to others."""

    def __init__(self, client: ExtendedClient, pause_s: float, meter: Meter, seed: str) -> None:
        self._client, self._pause_s, self._meter = client, pause_s, meter
        self._random = random.Random(seed)
        self._numbers = count(1)
        self._key = "none"

    def __call__(self) -> None:
        if self._meter.backlog < BACKLOG_MAX:
            self._put(self._random.random())
        time.sleep(self._random.expovariate(1 / self._pause_s))

    def _put(self, fate: float) -> None:
        chance = self._random
        delay_ms = chance.choice((0, *DELAYS_MS))
        if fate > 0.85:
            self._copy()
        elif fate < 0.25:
            if chance.random() < 0.7:
                self._key = f"{self._client.name}.{next(self._numbers)}"
            self._count(self._client.put_with(self._job(KEYED, delay_ms if chance.random() < 0.3 else 0, self._key)))
        elif fate < 0.4:
            queue, priority = chance.choice((DELAYED, STEPS)), chance.choice(PRIORITIES)
            puts = [PutWith(self._name(), queue, priority, delay_ms) for _ in range(chance.randint(2, 5))]
            self._count(self._client.puts(Puts(tuple(puts))))
        else:
            queue = DELAYED if fate < 0.5 else NUMBERED if fate < 0.6 else FRAIL if fate < 0.68 else STEPS
            if fate > 0.77:
                queue = PACED
            self._count(self._client.put_with(self._job(queue, delay_ms if queue == DELAYED else 0)))

    def _copy(self) -> None:
        chance, name = self._random, self._name()
        topic = TOPIC if chance.random() < 0.5 else None
        queues = COPIED if topic else chance.sample(COPIED, chance.randint(2, 3))
        priority = chance.choice(PRIORITIES)
        record = self._client.copies(Copies(tuple(PutWith(copy_of(name, one), one, priority) for one in queues), topic))
        if record is not None and record.outcome is Outcome.OK:
            self._meter.put += len(queues)

    def _count(self, record: Record | None) -> None:
        if record is not None:
            self._meter.put += sum(record.good)

    def _name(self) -> str:
        return f"{self._client.name}-{next(self._numbers)}"

    def _job(self, queue: str, delay_ms: int, key: str | None = None) -> PutWith:
        chance = self._random
        priority, group = chance.choice(PRIORITIES), chance.choice(GROUPS)
        return PutWith(self._name(), queue, priority, delay_ms, key, group, number=queue == NUMBERED)


class Handler:
    """Takes several jobs at once and does all that can be done with one."""

    def __init__(self, client: ExtendedClient, waits: bool, meter: Meter, seed: str) -> None:
        """`waits`: it uses GETB and no GET."""
        self._client, self._waits, self._meter = client, waits, meter
        self._random = random.Random(seed)
        self._numbers = count(1)
        self._over = 0                  # an id that surely runs no more
        self._seen: int | None = None   # the number of a job that may be unfinished

    def __call__(self) -> None:
        if self._seen is not None and self._random.random() < 0.1:
            self._take(GetMany((NUMBERED,), LEASE_MS, 1, number=self._seen))
            return
        queues = tuple(self._random.sample(QUEUES, self._random.randint(4, len(QUEUES))))
        policy = self._random.choice(POLICIES)
        self._take(GetMany(queues, LEASE_MS, self._random.randint(1, 8), self._waits, policy))

    def _take(self, get: GetMany) -> None:
        record = self._client.get_many(get)
        if record is None or not record.given:
            time.sleep(0.05)
            return
        ends = [job.id for job in record.given if self._treat(job)]
        if ends:
            self._finish(ends)

    def _treat(self, job: Handed) -> bool:
        """Treat the job; returns True when it is still to be done."""
        fate = self._random.random()
        delay_ms = self._random.choice(DELAYS_MS)
        self._seen = job.number or self._seen
        if job.queue == STEPS:
            self._cascade(job.id)
            return False
        if job.queue == FRAIL and fate < 0.5:
            if fate < 0.4:                          # else it is forgotten, and its lease ends
                self._client.put_off(PutOff(job.id, DELAYS_MS[0]))
            return False
        if job.number is not None and fate < 0.5:
            self._client.put_off(PutOff(job.id, 0, kicked=job.number))
            return False
        if fate < 0.15:
            self._client.put_off(PutOff(job.id, delay_ms, self._random.choice(RAN_MS)))
            return False
        if fate < 0.3 and job.queue == DELAYED:     # no key goes with it, which might be taken there
            self._client.move(Move(job.id, MOVED, delay_ms if fate < 0.2 else 0))
            return False
        if fate < 0.4:
            self._client.touch(Touch(job.id, TOUCH_MS))
            if fate > 0.395:
                time.sleep(LEASE_MS / 1000 * 1.2)   # the first lease would be over
        return fate < 0.985

    def _cascade(self, number: int) -> None:
        chance = self._random
        names = [f"{self._client.name}-{next(self._numbers)}" for _ in range(chance.randint(1, 2))]
        puts = tuple(PutWith(name, NEXT, chance.choice(PRIORITIES)) for name in names)
        if self._over and chance.random() < 0.1:    # it must fail, and its PUTs with it
            self._client.cascade(Cascade(self._over, puts, puts_first=True))
            self._finish([number])
            return
        record = self._client.cascade(Cascade(number, puts, chance.random() < 0.5))
        if record is not None and record.outcome is Outcome.OK and record.good == (True,):
            self._over = number
            self._meter.put += len(puts)
            self._meter.taken += 1

    def _finish(self, ids: list[int]) -> None:
        if len(ids) == 1:
            record = self._client.done(ids[0])
            self._meter.taken += record is not None and record.outcome is Outcome.OK and not record.missing
            return
        fate = self._random.random()
        if fate < 0.1:
            self._client.later_many(tuple(ids))
            return
        if fate < 0.2:
            self._client.touch_many(TouchMany(tuple(ids), TOUCH_MS))
            if fate > 0.19:
                time.sleep(LEASE_MS / 1000 * 1.2)   # the first leases would be over
        record = self._client.done_many(tuple(ids))
        self._meter.taken += 0 if record is None else sum(record.good)


class Heart:
    """Sends the heartbeats of a pool of workers."""

    def __init__(self, client: Pool, pool: str, pause_s: float) -> None:
        self._client, self._pool, self._pause_s = client, pool, pause_s

    def __call__(self) -> None:
        self._client.beat(self._pool)
        time.sleep(self._pause_s)


class Steerer:
    """An operator who raises the limit of each pool again and again."""

    def __init__(self, client: Operator, pools: tuple[str, ...], pause_s: float) -> None:
        self._client, self._pools, self._pause_s = client, pools, pause_s
        self._numbers = count(1)

    def __call__(self) -> None:
        number = next(self._numbers)
        self._client.steer(Steer(self._pools[number % len(self._pools)], number))
        time.sleep(self._pause_s)
