"""Batches, waits and transactions through the death of real leaders: each is executed once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sockpq import Client, JobNotFound

from devcluster.cluster import LocalCluster
from tests.waiting import until


@pytest.fixture
def nodes() -> Iterator[LocalCluster]:
    with LocalCluster(3) as nodes:
        nodes.wait_until_level()
        yield nodes


def kill_leader(nodes: LocalCluster) -> None:
    leader = nodes.wait_for_leader()
    nodes.kill(leader)
    nodes.restart(leader)
    nodes.wait_until_level()


def test_batches_are_put_taken_and_done_once(nodes: LocalCluster) -> None:
    taken: list[bytes] = []
    over = threading.Event()

    def put(part: int) -> int:
        with Client(nodes.servers) as client:
            return sum(client.put_many("q", [b"%d-%d-%d" % (part, batch, number) for number in range(100)])
                       for batch in range(60))

    def take() -> None:
        with Client(nodes.servers) as client:
            while (jobs := client.get_many(50, "q", expire=60, block=True, wait=1)) or not over.is_set():
                ends = client.done_many(jobs)
                assert None not in ends
                taken.extend(job.data for job in jobs)

    with ThreadPoolExecutor() as pool:
        takers = [pool.submit(take) for _ in range(3)]
        putters = [pool.submit(put, part) for part in range(3)]
        for _ in range(2):
            time.sleep(0.7)
            kill_leader(nodes)
        assert [putter.result() for putter in putters] == [6000] * 3
        over.set()
        for taker in takers:
            taker.result()
    assert sorted(taken) == sorted(b"%d-%d-%d" % (part, batch, number)
                                   for part in range(3) for batch in range(60) for number in range(100))


def test_a_wait_ends_in_time_though_its_leader_dies(nodes: LocalCluster) -> None:
    with Client(nodes.servers) as client, ThreadPoolExecutor() as pool:
        begun = time.monotonic()
        waiting = pool.submit(client.get, "nothing", block=True, expire=30, wait=3)
        time.sleep(1)
        kill_leader(nodes)
        assert waiting.result() is None
        assert 2.9 < time.monotonic() - begun < 60
        client.put("nothing", b"x")
        assert client.total("nothing") == (1, 1, 1, 0)      # the job is not handed out to a wait that is over


def test_a_transaction_is_executed_once(nodes: LocalCluster) -> None:
    """Each hands one token on; none is ever lost or doubled."""
    over, handed_on = threading.Event(), Counter[str]()

    def hand_on() -> int:
        count = 0
        with Client(nodes.servers) as client:
            while not over.is_set():
                job = client.get("token", expire=60, block=True, wait=1)
                if job is None:
                    continue
                with client.transaction() as t:
                    t.done(job)
                    t.put("token", job.data)
                    t.put("count", b"")
                count += 1
                handed_on["all"] += 1
        return count

    with Client(nodes.servers) as client, ThreadPoolExecutor() as pool:
        client.put_many("token", [b"a", b"b"])
        workers = [pool.submit(hand_on) for _ in range(3)]
        for _ in range(2):
            time.sleep(0.7)
            kill_leader(nodes)
        until(lambda: handed_on["all"] > 50)
        over.set()
        counts = [worker.result() for worker in workers]
        assert client.total("count").jobs == sum(counts)
        assert client.total("token") == (1, 1, 2, 0)


def test_a_heartbeat_survives_a_failover(nodes: LocalCluster) -> None:
    with Client(nodes.servers) as client:
        client.put("long", b"x")
        for job in client.consume("long", expire=4, heartbeat=True, wait=0.5):
            kill_leader(nodes)
            time.sleep(6)
            assert not job.lost
        with pytest.raises(JobNotFound):
            client.touch(job)
        assert client.total("long") == (0, 0, 0, 0)
