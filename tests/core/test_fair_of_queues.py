"""FAIR among named queues finds the same group whether it looks at the queues or at the groups that can give."""

from __future__ import annotations

import random

import pytest

from sockpqd.core import (
    ConfigureGroup,
    ConfigureQueue,
    Done,
    Get,
    GetWith,
    Handed,
    PauseQueue,
    Policy,
    QueueChange,
    Sched,
)
from sockpqd.core.fair import choice
from tests.core.test_groups import Cluster

QUEUES = tuple(f"q{number:02}" for number in range(30))


@pytest.mark.parametrize("seed", range(8))
def test_both_ways_find_the_same_places(seed: int) -> None:
    draw = random.Random(seed)
    cluster = Cluster(Sched.FAIR)
    groups = [f"g{number}" for number in range(draw.choice((4, 12, 40)))]
    for name in QUEUES:
        cluster.do(ConfigureQueue(name, QueueChange(sched=draw.choice((Sched.FAIR, Sched.GROUPS))), create=True))
    compared = 0
    for _ in range(400):
        cluster.now_ms += draw.choice((0, 10, 500))
        group, queue = draw.choice(groups), draw.choice(QUEUES)
        step = draw.random()
        if step < 0.5:
            cluster.put(group, 1, queue, draw.choice((0, 0, 3)))
        elif step < 0.7:
            asked = tuple(draw.sample(QUEUES, 20))
            (reply,) = cluster.do(GetWith(Get(asked), policy=Policy.FAIR))
            if isinstance(reply, Handed) and draw.random() < 0.7:
                cluster.do(Done(reply.id))
        else:
            cluster.do(draw.choice((
                ConfigureGroup(group, paused=True), ConfigureGroup(group, paused=True),
                ConfigureGroup(group, paused=False), PauseQueue(queue, True, True),
                PauseQueue(queue, False, False), ConfigureGroup(group, limit=draw.choice((0, 1))),
            )))
        state = cluster.machine._state
        if state.fair is None:
            continue
        state.fair.rank_moved()
        some = [state.queues.by_name[name] for name in draw.sample(QUEUES, 15)
                if name in state.queues.by_name and state.queues.by_name[name].front is not None]
        by_queue = choice.places_by_queue(state.fair, some)
        assert choice.places_by_group(state.fair, some) == by_queue
        compared += bool(by_queue)
    assert compared > 50


def test_a_get_of_many_queues_looks_at_the_few_groups_that_can_give(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(Sched.FAIR)
    for number, name in enumerate(QUEUES):
        cluster.do(
            ConfigureQueue(name, QueueChange(sched=Sched.FAIR), create=True), ConfigureGroup(f"g{number}", paused=True),
        )
        cluster.put(f"g{number}", queue=name)
    cluster.do(ConfigureGroup("g7", paused=False))
    monkeypatch.setattr(choice, "places_by_queue", None)
    assert cluster.get(GetWith(Get(QUEUES), policy=Policy.FAIR)) == (1, "g7")
    assert cluster.get(GetWith(Get(QUEUES), policy=Policy.FAIR)) is None
