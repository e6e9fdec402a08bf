"""await_job(): the end of a job by its number or key, against the real gateway in memory, and real nodes that die."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from sockpq import Awaited, Client, JobNotFound, Key, Number

from devcluster.cluster import LocalCluster
from tests.client.conftest import MakeClient
from tests.client.real_server import RealServer
from tests.waiting import until


@pytest.fixture
def client(server: RealServer, make_client: MakeClient) -> Client:
    return make_client(server.address, timeout=60)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(40) as pool:
        yield pool


def put(client: Client, key: str | None = None, queue: str = "q", data: bytes = b"2+2") -> int:
    """Put a job with a number, and return the number."""
    number = client.put(queue, data, number=True, key=key).number
    assert number is not None
    return number


def waiting(server: RealServer, begin: Callable[[], Future[Awaited | None]]) -> Future[Awaited | None]:
    """Begin to wait, and return when the server has registered that."""
    before = server.awaiting()
    future = begin()
    until(lambda: server.awaiting() == before + 1, "the client waits")
    return future


def test_the_result_is_what_the_worker_said(server: RealServer, client: Client, pool: ThreadPoolExecutor) -> None:
    number = put(client)
    ends = [waiting(server, lambda: pool.submit(client.await_job, number)) for _ in range(3)]
    job = client.get("q", expire=30)
    assert job is not None
    job.done(result=b'{"sum": 4}')
    assert [end.result() for end in ends] == [Awaited("done", b'{"sum": 4}')] * 3
    end = ends[0].result()
    assert end is not None
    assert (end.json(), end.text) == ({"sum": 4}, '{"sum": 4}')
    with pytest.raises(JobNotFound):
        client.await_job(Number(number))        # its queue keeps none


def test_a_job_that_is_kept_is_told_at_once(client: Client) -> None:
    client.queue_config("q", retain=60)
    number = put(client)
    job = client.get("q", expire=30)
    assert job is not None
    job.done(result="4")
    assert client.await_job(number) == client.await_job(Number(number), wait=5) == Awaited("done", b"4")


@pytest.mark.parametrize(("state", "end"), [
    ("cancelled", lambda client, job: client.delete(job)), ("dead", lambda client, job: job.bury(error="why")),
    ("buried", lambda client, job: job.bury(here=True, error="why")),
])
def test_a_key_names_the_job_that_has_it_now(
    server: RealServer, client: Client, pool: ThreadPoolExecutor, state: str, end: Callable[[Client, object], object],
) -> None:
    with pytest.raises(JobNotFound):
        client.await_job(Key("q", "k"))
    put(client, "k")
    future = waiting(server, lambda: pool.submit(client.await_job, Key("q", "k")))
    job = client.get("q", expire=30)
    assert job is not None
    end(client, job)
    assert future.result() == Awaited(state, b"" if state == "cancelled" else b"why")


def test_a_purge_ends_the_wait(server: RealServer, client: Client, pool: ThreadPoolExecutor) -> None:
    number = put(client)
    future = waiting(server, lambda: pool.submit(client.await_job, number))
    client.queue_purge("q", "ready")
    with pytest.raises(JobNotFound):
        future.result()


def test_a_wait_that_is_over_is_none_and_leaves_nothing(server: RealServer, client: Client) -> None:
    number = put(client)
    assert client.await_job(number, wait=0.001) is None
    assert client.await_job(number, wait=0.05) is None
    until(lambda: server.do(lambda cluster: cluster.machine.watched) == 0, "nobody waits")


def test_another_leader_is_asked_again(server: RealServer, client: Client, pool: ThreadPoolExecutor) -> None:
    number = put(client)
    future = waiting(server, lambda: pool.submit(client.await_job, number))
    server.do(lambda cluster: cluster.follow(None))
    server.do(lambda cluster: cluster.lead())
    until(lambda: server.do(lambda cluster: cluster.machine.watched) == 1, "it asks the leader again")
    job = client.get("q", expire=30)
    assert job is not None
    job.done(result="4")
    assert future.result() == Awaited("done", b"4")


def test_a_wait_is_over_in_time_though_another_leader_is_asked(
    server: RealServer, client: Client, pool: ThreadPoolExecutor,
) -> None:
    number = put(client)
    future = waiting(server, lambda: pool.submit(client.await_job, number, wait=1.5))
    server.do(lambda cluster: cluster.follow(None))
    server.do(lambda cluster: cluster.lead())
    assert future.result() is None


def test_waits_outlast_leaders_that_are_killed(pool: ThreadPoolExecutor) -> None:
    """Each result is the worker's, the same for all who ask, though the leader dies while they wait."""
    tasks, killed = 60, threading.Event()
    with LocalCluster(3) as nodes, Client(nodes.servers, timeout=120) as client:
        nodes.wait_until_level()
        client.queue_config("q", retain=600)
        numbers = [put(client, data=b"%d" % task) for task in range(tasks)]

        def wait(number: int) -> Awaited | None:
            with Client(nodes.servers, timeout=120) as asker:
                return asker.await_job(number)

        def work() -> None:
            with Client(nodes.servers, timeout=120) as worker:
                done = 0
                while (job := worker.get("q", expire=60, block=True, wait=0.1 if done else 10)) is not None:
                    if done == tasks // 2:
                        killed.wait(60)
                    job.done(result=b"of " + job.data)
                    done += 1

        ends = [pool.submit(wait, number) for number in numbers[:12] * 2]
        worker = pool.submit(work)
        leader = nodes.wait_for_leader()
        nodes.kill(leader)
        killed.set()
        nodes.restart(leader)
        worker.result()
        assert [end.result() for end in ends] == [Awaited("done", b"of %d" % task) for task in range(12)] * 2
        assert [client.await_job(number, wait=60) for number in numbers] == [
            Awaited("done", b"of %d" % task) for task in range(tasks)]
