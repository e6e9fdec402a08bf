"""The client against the real server: what it promises without faults."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Literal
from uuid import uuid4

import pytest
from sockpq import (
    BadArguments,
    Client,
    DataTooLarge,
    Finished,
    InvalidSnapshot,
    JobNotFound,
    NoOutput,
    NotServing,
    Refused,
    Unavailable,
)
from sockpq.aio import Client as AsyncClient

from devcluster.cluster import LocalCluster
from tests.client.conftest import MakeClient


@pytest.fixture(scope="module")
def servers() -> Iterator[list[str]]:
    limits = {"limits": {"data_bytes_max": 1_000_000}}
    with LocalCluster(nodes=1, config=limits) as cluster:
        yield cluster.servers


@pytest.fixture
def client(servers: list[str], make_client: MakeClient) -> Client:
    return make_client(servers, timeout=60)


def test_every_byte_of_a_body_comes_back(client: Client) -> None:
    for body in (b"", b"\r\n", bytes(range(256)) * 100, b"x" * 1_000_000):
        client.put("bytes", body)
        with client.get("bytes", expire=30) as job:         # type: ignore[union-attr]
            assert job.data == body
    with pytest.raises(DataTooLarge):
        client.put("bytes", b"x" * 1_000_001)
    assert client.total("bytes").jobs == 0


def test_priorities_items_and_ends(client: Client) -> None:
    client.put("work", b"low", -(2**63), item="order:1@shop.example")
    client.put("work", b"high", 2**63 - 1)
    name = client.put("work", b"middle", new_item=True).item
    jobs = client.get_many(5, ["work", "nothing"], expire=0.5, then="later")
    assert [job.data for job in jobs] == [b"high", b"middle", b"low"]
    assert [job.item for job in jobs] == [None, name, "order:1@shop.example"]
    assert [job.id for job in client.running()] == [job.id for job in jobs]
    assert [job.data for job in client.running(data=True)] == [b"high", b"middle", b"low"]
    assert jobs[0].done() == Finished(False, False)
    assert jobs[1].done() == Finished(False, True)
    again = client.get("work", block=True, expire=30, wait=10)      # the third one's lease ends
    assert again is not None
    assert again.data == b"low"
    with pytest.raises(JobNotFound):
        jobs[2].done()
    assert again.done() == Finished(True, True)


def test_a_withdrawn_get_takes_nothing_with_it(client: Client) -> None:
    for number in range(20):
        assert client.get("withdrawn", block=True, expire=60, wait=0.02) is None
        client.put("withdrawn", b"%d" % number)
        job = client.get("withdrawn", expire=60)
        assert job is not None
        assert job.data == b"%d" % number
        job.done()


def test_until_done_ends_when_the_last_running_job_does(client: Client) -> None:
    client.put("last", b"x")
    job = client.get("last", expire=60)
    assert job is not None
    timer = threading.Timer(0.3, job.done)
    timer.start()
    begun = time.monotonic()
    assert client.get("last", block="until_done", expire=60) is None
    assert time.monotonic() - begun > 0.2
    timer.join()


def test_a_call_and_a_call_nobody_answers(client: Client) -> None:
    def work() -> None:
        with client.get("in", block=True, expire=30) as job:        # type: ignore[union-attr]
            client.put("out", job.data[::-1], item=job.item)

    worker = threading.Thread(target=work)
    worker.start()
    with client.call("in", b"abc", "out", expire=30, wait=10) as answer:
        assert answer.data == b"cba"
    worker.join()
    with pytest.raises(NoOutput) as none:
        client.call("in", b"abc", "out", wait=0.1)
    with client.get("in", expire=30) as job:                        # type: ignore[union-attr]
        assert job.item == none.value.item


def test_a_snapshot_brings_the_state_back(client: Client) -> None:
    client.put_many("kept", [b"a", b"b"])
    snapshot = client.snapshot()
    client.done_many(client.get_many(5, "kept", expire=30))
    assert client.total("kept").jobs == 0
    client.clone(snapshot)
    assert client.total("kept").jobs == 2
    with pytest.raises(InvalidSnapshot):
        client.clone(b"rubbish")
    client.done_many(client.get_many(5, "kept", expire=30))


def test_the_server_tells_about_itself(client: Client, servers: list[str]) -> None:
    client.ping()
    assert {"cluster", "session"} <= set(client.caps())
    assert client.interconnect() == 1
    (node,) = client.cluster_status()
    assert (node.name, node.client, node.role, node.online, node.lag) == ("n1", servers[0], "LEADER", True, 0)
    leader = client.cluster_leader()
    assert leader is not None
    assert leader.client == servers[0]


def test_a_server_that_is_switched_off_serves_nobody(client: Client, servers: list[str]) -> None:
    client.offline(servers[0])
    try:
        with pytest.raises((Unavailable, NotServing)):
            client.put("off", b"x", timeout=0.3)
    finally:
        client.online(servers[0])
    client.put("off", b"x")
    client.done_many(client.get_many(1, "off", expire=30))


def test_the_whole_service_is_switched_off_and_on(client: Client) -> None:
    client.put("switched", b"x")
    client.cluster_offline()
    try:
        with pytest.raises(Unavailable):
            client.get("switched", expire=30, timeout=0.3)
        assert [node.online for node in client.cluster_status()] == [False]
    finally:
        client.cluster_online()
    assert client.done_many(client.get_many(5, "switched", expire=30)) == [Finished(True, False)]


def test_members_come_and_go(client: Client, servers: list[str]) -> None:
    added = client.cluster_add("n2", "127.0.0.1:1", "[::1]:1")      # nobody is there: it remains a learner
    assert [(node.id, node.name, node.client, node.role) for node in client.cluster_status()] == [
        (1, "n1", servers[0], "LEADER"), (added, "n2", "[::1]:1", "LEARNER"),
    ]
    for call, line in [
        (lambda: client.cluster_add("n2", "a:1", "a:2"), "409 Node Exists"),
        (lambda: client.cluster_add("n3", "a:1", "a:2"), "409 Change In Progress"),
        (lambda: client.cluster_remove("n1"), "409 Change In Progress"),
        (lambda: client.cluster_transfer("n2"), "409 Not Possible learner"),
        (lambda: client.cluster_remove("n3"), "404 Node Not Found"),
    ]:
        with pytest.raises(Refused, match=line):
            call()
    client.cluster_remove("n2")
    for call, line in [
        (lambda: client.cluster_remove("n1"), "409 Last Node"),
        (lambda: client.cluster_transfer(), "409 Not Possible alone"),
        (lambda: client.cluster_transfer("n2"), "409 Not Possible unknown"),
    ]:
        with pytest.raises(Refused, match=line):
            call()
    assert client.cluster_transfer("n1").client == servers[0]
    assert client.cluster_snapshot(servers[0]) >= added


def test_calls_of_many_threads_on_one_client(client: Client) -> None:
    def work(number: int) -> None:
        for turn in range(20):
            client.put(f"thread{number}", b"%d" % turn)
            with client.get(f"thread{number}", expire=30) as job:       # type: ignore[union-attr]
                assert job.data == b"%d" % turn

    threads = [threading.Thread(target=work, args=[number]) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.total().running == 0


# ---- fair shares: consume() measures how long the work takes; the margins are for a busy machine

def test_consume_by_fair_charges_the_work_once_whatever_waits_or_beats(client: Client) -> None:
    for prefetch in (1, 3):
        group = uuid4().hex
        client.put("measured", b"x", group=group)
        client.put("measured", b"x", group=group)
        worked, begun = 0.0, time.monotonic()
        for job in client.consume(
            "measured", expire=3, wait=0.1, heartbeat=True, prefetch=prefetch, policy="fair",
        ):
            began = time.monotonic()
            time.sleep(1.2)             # there is a heartbeat after a second
            worked += time.monotonic() - began
            assert not job.lost
        whole = time.monotonic() - begun
        assert worked <= client.sched_group(group).used_us / 1e6 <= whole


def test_consume_by_fair_charges_what_was_not_begun_with_nothing(client: Client) -> None:
    name = uuid4().hex
    for _ in range(3):
        client.put("left", b"x", group=name)
    begun = time.monotonic()
    for _ in client.consume("left", expire=30, wait=0.1, prefetch=3, policy="fair"):
        time.sleep(0.4)
        break
    whole = time.monotonic() - begun
    group = client.sched_group(name)
    client.queue_delete("left", force=True)
    assert 0.4 <= group.used_us / 1e6 <= whole
    assert (group.waiting, group.running) == (3, 0)


def compute() -> None:
    """Use a tenth of a second of the processor."""
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass


def test_consume_by_fair_charges_processor_time_if_that_is_asked_for(servers: list[str]) -> None:
    with Client(servers, timeout=60) as client:
        client.put("computed", b"x", group="computed")
        for _ in client.consume("computed", expire=30, wait=0.1, policy="fair", ran="cpu"):
            time.sleep(0.5)
            compute()
        assert 0.1 <= client.sched_group("computed").used_us / 1e6 < 0.4
        with pytest.raises(BadArguments, match="'wall' or 'cpu'"):
            client.consume("computed", expire=30, policy="fair", ran="sun")     # type: ignore[arg-type]


def test_consume_by_fair_measures_in_asyncio_as_well(servers: list[str]) -> None:
    async def measured(ran: Literal["wall", "cpu"]) -> tuple[float, float, float]:
        async with AsyncClient(servers, timeout=60) as client:
            await client.put("awaited", b"x", group=ran)
            begun = time.monotonic()
            async for _ in client.consume("awaited", expire=60, wait=0.1, policy="fair", ran=ran):
                began = time.monotonic()
                await asyncio.sleep(0.4)
                compute()
                worked = time.monotonic() - began
            whole = time.monotonic() - begun
            return worked, (await client.sched_group(ran)).used_us / 1e6, whole

    worked, used_s, whole = asyncio.run(measured("wall"))
    assert worked <= used_s <= whole
    assert 0.1 <= asyncio.run(measured("cpu"))[1] < 0.4
