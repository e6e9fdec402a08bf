"""Places among several queues (BY PLACE), and numbered jobs where a queue is in the order of time."""

from __future__ import annotations

import random

import pytest

from sockpqd.core import (
    ConfigureQueue,
    Due,
    Get,
    GetWith,
    Handed,
    HandedMany,
    Later,
    Order,
    PauseQueue,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Return,
    Tick,
)
from tests.core.rules.test_numbers import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def _put(cluster: Cluster, queue: str, data: bytes, priority: int = 0, delay_ms: int | None = None) -> None:
    when = None if delay_ms is None else Due(delay_ms)
    cluster.do(PutWith(Put(queue, priority, data), when, number=True))


def _taken(cluster: Cluster, queues: tuple[str, ...], count: int, item: str | None = None) -> list[bytes]:
    (reply,) = cluster.do(GetWith(Get(queues, item=item), count, Policy.PLACE))
    assert isinstance(reply, HandedMany)
    return [job.data for job in reply.jobs]


def test_one_order_over_all_queues(cluster: Cluster) -> None:
    for queue, data, priority in ("b", b"1", 0), ("a", b"2", 0), ("b", b"3", 0), ("a", b"first", 5), ("c", b"4", 0):
        _put(cluster, queue, data, priority)
    assert _taken(cluster, ("c", "a", "b", "none"), 9) == [b"first", b"1", b"2", b"3", b"4"]


def test_jobs_come_back_to_their_places_in_it(cluster: Cluster) -> None:
    for queue, data in ("a", b"1"), ("b", b"2"), ("a", b"3"):
        _put(cluster, queue, data)
    for back in Later, Return:
        (reply,) = cluster.do(GetWith(Get(("a", "b")), None, Policy.PLACE))
        assert isinstance(reply, Handed)
        assert reply.data == b"1"
        cluster.do(back(reply.id))
    assert _taken(cluster, ("a", "b"), 9) == [b"1", b"2", b"3"]


def test_jobs_without_numbers_have_places_too(cluster: Cluster) -> None:
    for queue, data in ("b", b"1"), ("a", b"2"), ("b", b"3"):
        cluster.do(Put(queue, 0, data, "x"))
    assert _taken(cluster, ("a", "b"), 2, "x") == [b"1", b"2"]


def test_in_the_order_of_time_a_numbered_job_keeps_its_place(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q", QueueChange(order=Order.TIME)))
    _put(cluster, "q", b"delayed", delay_ms=50)
    cluster.now_ms += 10
    _put(cluster, "q", b"next")
    cluster.do(Put("q", 0, b"plain"))
    cluster.do(Tick(), after_ms=100)
    assert cluster.ready() == [b"delayed", b"next", b"plain"]
    cluster.do(Later(cluster.take().id), after_ms=5)
    cluster.do(Return(cluster.take().id))
    assert cluster.ready() == [b"delayed", b"next", b"plain"]
    cluster.do(ConfigureQueue("q", QueueChange(order=Order.FIFO)))
    job = cluster.take().id
    cluster.do(ConfigureQueue("q", QueueChange(order=Order.TIME)), Return(job))
    assert cluster.ready() == [b"plain", b"delayed", b"next"]      # plain ones count from no time


@pytest.mark.parametrize("meta", [False, True])
def test_one_job_is_the_same_as_the_first_of_some(meta: bool) -> None:
    chance, one, some = random.Random(7), Cluster(), Cluster()
    for _ in range(600):
        names = tuple(chance.choices("abcd", k=chance.randrange(1, 4)))
        put = PutWith(Put(names[0], chance.randrange(3), b"x"), number=chance.random() < 0.7)
        pause = chance.choice((PauseQueue(names[0], incoming=False, outgoing=True), PauseQueue(names[0], False, False)))
        get = Get(names)
        match chance.randrange(5):
            case 0 | 1:
                assert one.do(put) == some.do(put)
            case 2:
                assert one.do(pause) == some.do(pause)
            case _:
                (job,) = one.do(GetWith(get, None, Policy.PLACE, meta=meta))
                (jobs,) = some.do(GetWith(get, 1, Policy.PLACE, meta=meta))
                assert jobs == (HandedMany((job,)) if isinstance(job, Handed) else job)
                if isinstance(job, Handed) and chance.random() < 0.5:
                    assert one.do(Later(job.id)) == some.do(Later(job.id))
    assert one.machine.next_id == some.machine.next_id > 100
