"""Workers: one job after the other, DONE or back in its queue."""

from __future__ import annotations

import threading
import time

import pytest
from sockpq import BadArguments, Client, JobNotFound

from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster


def bodies(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_each_job_is_done_when_the_next_one_is_asked_for(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", bodies(5))
    got = []
    for job in client.consume("q", expire=30, wait=0.1):
        assert cluster.running == [job.id]
        got.append(job.data)
    assert got == bodies(5)
    assert cluster.running == []
    assert cluster.bodies("q") == []


def test_a_loop_that_is_left_puts_its_job_back(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", bodies(3))
    for job in client.consume("q", expire=30):
        if job.data == b"1":
            break
    assert cluster.running == []
    assert cluster.bodies("q") == [b"2", b"1"]


def test_a_loop_that_raises_puts_its_job_back(cluster: MemoryCluster, client: Client) -> None:
    client.put("q", b"x")

    def work() -> None:
        for _ in client.consume("q", expire=30):
            raise RuntimeError("no luck")

    with pytest.raises(RuntimeError, match="no luck"):
        work()
    assert cluster.running == []
    assert cluster.bodies("q") == [b"x"]


def test_what_the_loop_has_ended_itself_is_left_alone(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", bodies(2))
    for job in client.consume("q", expire=30):
        if job.data == b"0":
            job.later()
        else:
            job.done()
            break
    assert cluster.running == []
    assert cluster.bodies("q") == [b"0"]


def test_a_job_that_was_lost_to_its_lease_is_told(cluster: MemoryCluster, client: Client) -> None:
    client.put("q", b"x")

    def work() -> None:
        for _ in client.consume("q", expire=30):
            cluster.pass_time(31)

    with pytest.raises(JobNotFound):
        work()


def test_until_done_ends_with_the_last_job(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", bodies(2))
    assert [job.data for job in client.consume("q", expire=30, until_done=True)] == bodies(2)


def test_workers_share_a_queue_through_a_failover(cluster: MemoryCluster, client: Client) -> None:
    """No answer is lost without being asked for again, so every job is finished exactly once."""
    got: list[bytes] = []

    def work() -> None:
        for job in client.consume("q", expire=30, wait=0.5):
            got.append(job.data)

    for server in cluster.servers[:2]:
        server.fail("DONE", *[None] * 30, Fault.EXECUTE_AND_CLOSE, None, None, Fault.HALF_ANSWER)
        server.fail("GETB", *[None] * 40, Fault.EXECUTE_AND_CLOSE, None, Fault.CLOSE)
    client.put_many("q", bodies(200))
    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    while len(got) < 100:
        time.sleep(0.01)
    cluster.lead(cluster.servers[1])
    cluster.servers[0].stop()
    for worker in workers:
        worker.join()
    assert sorted(got) == sorted(bodies(200))
    assert cluster.running == []


def test_wrong_arguments_are_refused_at_once(cluster: MemoryCluster, client: Client) -> None:
    for arguments in ({"expire": 0}, {"expire": 30, "wait": -1}, {"expire": 30, "then": "never"}):
        with pytest.raises(BadArguments):
            client.consume("q", **arguments)                        # type: ignore[arg-type]
    with pytest.raises(BadArguments):
        client.consume("no such name!", expire=30)
    with pytest.raises(TypeError):
        client.consume("q", expire=30, until_done="yes")            # type: ignore[arg-type]
    assert [server.accepted for server in cluster.servers] == [0, 0, 0]
