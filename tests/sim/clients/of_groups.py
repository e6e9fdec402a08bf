"""Clients of groups: producers of several tenants, workers, and an operator who changes, pauses and resumes groups.

All they do to jobs is PUT, GET, DONE and LATER, so that the laws of groups can be judged by the history alone
(oracles/groups.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from sockpqd.core import (
    ConfigureGroup,
    ConfigureQueue,
    DeleteGroup,
    Done,
    End,
    Feedback,
    Get,
    GetWith,
    How,
    Later,
    Operation,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Return,
    Sched,
    Then,
)
from tests.sim.clients.without_session import Client

if TYPE_CHECKING:
    from tests.sim.world.world import World

QUICK_S = 0.15                                  # between two requests of a client
GROUPS = ("g", "h", "k", "fair")                # the last one is a queue's own
SETTINGS = {
    "fair": QueueChange(sched=Sched.FAIR, group_limit=2),
    "first": QueueChange(sched=Sched.GROUPS, group_rate=5, group_per_ms=400),
    "both": QueueChange(sched=Sched.FAIR, group_limit=3, group_rate=6, group_per_ms=700),
    "order": QueueChange(sched=Sched.GROUPS, group_order=True, numbered=True),
    "turns": QueueChange(sched=Sched.FAIR, group_order=True, group_limit=2),
}
PLAIN = "plain"                                 # a queue that gives its jobs as they come
QUEUES = (*SETTINGS, PLAIN)
LIMITS = (0, 1, 3)
RATES = ((0, None), (4, 300), (9, 1500))        # hand-outs of a group, in this time
PAUSES_MS = (None, 50, 300, 1200)
SLEEPS_MS = (30, 400)
LEASES_MS = (None, None, 0, 150, 2000)
JOBS_MAX = 40                                   # limits and rates hold back more than is put at times
WAYS = (None, None, Policy.FAIR, Policy.PRIORITY, Policy.OLDEST, Policy.RR)


class GroupClient(Client):
    """Sends one request after the other, or several at once. If clients take their time, all times are longer."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._times = max(1, round(world.plan.think_s / QUICK_S))

    def _request(self) -> list[Operation]:
        draw = self._rng.random()
        if draw < 0.36 and len(self._world.checks.model.jobs) < JOBS_MAX:
            return [self._put_one()]
        if draw < 0.66:
            return [self._take()]
        if draw < 0.9 and self._held:
            return [self._end(self.release())]
        return [self._operate()]

    def _put_one(self) -> Operation:
        rng = self._rng
        put = Put(rng.choice(QUEUES), rng.choice((0, 0, 0, 1)), self.body())
        return put if rng.random() < 0.1 else PutWith(put, group=rng.choice(GROUPS))

    def _take(self) -> Operation:
        rng = self._rng
        queues = None if rng.random() < 0.3 else tuple(rng.sample(QUEUES, rng.randrange(1, 3)))
        get = Get(queues, self._long(rng.choice(LEASES_MS)), Then.LATER)
        if rng.random() < 0.03:
            return GetWith(Get(None), number=self.number())
        return GetWith(get, rng.choice((None, 1, 3)), rng.choice(WAYS)) if rng.random() < 0.8 else get

    def _end(self, number: int) -> Operation:
        rng = self._rng
        feedback = Feedback.SLEEP if rng.random() < 0.15 else None
        how = rng.choice((How.DONE, How.DONE, How.DONE, How.LATER))
        sleep_ms = 0 if feedback is None else self._times * rng.choice(SLEEPS_MS)
        slow = End(number, how, first=how is How.LATER and rng.random() < 0.5, feedback=feedback, sleep_ms=sleep_ms)
        return rng.choice((slow, slow, Done(number), Later(number), Return(number)))

    def _operate(self) -> Operation:
        rng = self._rng
        group, (rate, per_ms) = rng.choice(GROUPS), rng.choice(RATES)
        draw = rng.random()
        if draw < 0.3:
            queue = rng.choice(tuple(SETTINGS))
            settings = SETTINGS[queue]
            return ConfigureQueue(queue, replace(settings, group_per_ms=self._long(settings.group_per_ms)))
        if draw < 0.5:
            return ConfigureGroup(group, rng.choice(LIMITS), rate, self._long(per_ms), rng.choice((None, 1, 3)))
        if draw < 0.65:
            return ConfigureGroup(group, paused=True, pause_ms=self._long(rng.choice(PAUSES_MS)))
        return DeleteGroup(group) if draw < 0.7 else ConfigureGroup(group, paused=False)

    def _long(self, ms: int | None) -> int | None:
        return None if ms is None else self._times * ms
