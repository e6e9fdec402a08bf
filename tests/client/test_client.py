"""Every method against a server that works correctly."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable

import pytest
import sockpq
from sockpq import (
    BadArguments,
    Client,
    ClientClosed,
    Finished,
    InvalidSnapshot,
    JobNotFound,
    OutcomeUnknown,
    StateHash,
    Unavailable,
)

from tests.client.conftest import MakeClient
from tests.client.memory_cluster import MemoryCluster
from tests.waiting import until


def test_a_job_is_put_taken_and_done(cluster: MemoryCluster, client: Client) -> None:
    assert client.put("mail", b"low").item is None
    assert client.put("mail", b"high", priority=5, item="order_1").item == "order_1"
    job = client.get("mail", expire=30)
    assert job is not None
    assert (job.queue, job.priority, job.data, job.item) == ("mail", 5, b"high", "order_1")
    assert job.done() == Finished(queue_done=False, item_done=True)
    last = client.get(["mail", "other"], expire=30)
    assert last is not None
    assert client.done(last) == Finished(queue_done=True, item_done=False)
    assert client.get("mail") is None


def test_the_server_names_an_item(client: Client) -> None:
    assert client.put("mail", b"x", new_item=True).item == "i1"


def test_a_job_put_back_comes_again_under_another_id(client: Client) -> None:
    client.put("mail", b"x")
    first = client.get("mail", expire=30)
    assert first is not None
    first.later()
    second = client.get("mail", expire=30)
    assert second is not None
    assert second.id != first.id
    with pytest.raises(JobNotFound):
        client.done(first.id)


def test_a_with_block_ends_the_job(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("mail", [b"good", b"bad", b"own"])
    with client.get("mail", expire=30) as job:                          # type: ignore[union-attr]
        assert job.data == b"good"
    with pytest.raises(RuntimeError, match="no luck"), client.get("mail", expire=30):   # type: ignore[union-attr]
        raise RuntimeError("no luck")
    with client.get("mail", expire=30) as job:                          # type: ignore[union-attr]
        job.done()
    assert cluster.bodies("mail") == [b"bad"]
    assert cluster.running == []


def test_a_with_block_whose_lease_has_ended_says_so(cluster: MemoryCluster, client: Client) -> None:
    client.put("mail", b"x")
    with pytest.raises(JobNotFound), client.get("mail", expire=30):     # type: ignore[union-attr]
        cluster.pass_time(31)


def test_a_blocked_get_takes_the_job_that_comes(client: Client) -> None:
    timer = threading.Timer(0.2, client.put, ["mail", b"late"])
    timer.start()
    job = client.get("mail", block=True, expire=30)
    timer.join()
    assert job is not None
    assert job.data == b"late"


def test_a_blocked_get_ends_with_its_wait_and_leaves_nothing_behind(cluster: MemoryCluster, client: Client) -> None:
    assert client.get("mail", block=True, wait=0.1) is None
    client.put("mail", b"for somebody else")
    time.sleep(0.1)
    assert cluster.bodies("mail") == [b"for somebody else"]


def test_a_blocked_get_asks_now_and_then_whether_the_server_lives(cluster: MemoryCluster, client: Client) -> None:
    assert client.get("mail", block=True, expire=30, wait=0.8) is None      # longer than server_timeout
    assert "PING" in cluster.servers[0].received


def test_a_call_brings_the_output_of_its_own_item(client: Client) -> None:
    def work() -> None:
        with client.get("in", block=True, expire=30) as job:            # type: ignore[union-attr]
            client.put("out", b"not this", item="other")
            client.put("out", job.data.upper(), item=job.item)

    worker = threading.Thread(target=work)
    worker.start()
    with client.call("in", b"hello", "out", expire=30, wait=5) as result:
        assert result.data == b"HELLO"
    worker.join()


def test_the_state_of_the_queues_can_be_read(client: Client) -> None:
    client.put_many("mail", [b"a", b"bb", b"ccc"])
    first, second = client.get_many(2, "mail", expire=30)
    assert client.total("mail").jobs == 1
    assert client.total().running == 2
    assert [(job.id, job.data) for job in client.running()] == [(first.id, None), (second.id, None)]
    assert [job.data for job in client.running(data=True)] == [b"a", b"bb"]
    client.clone(client.snapshot())
    with pytest.raises(InvalidSnapshot):
        client.clone(b"rubbish")


def test_the_servers_can_be_asked(cluster: MemoryCluster, client: Client) -> None:
    client.ping()
    follower = cluster.servers[2].address
    client.ping(follower)
    assert client.interconnect() == 1
    assert client.interconnect(follower) == 3
    assert client.caps() == ("delay", "session", "bound")
    assert [node.role for node in client.cluster_status()] == ["LEADER", "FOLLOWER", "FOLLOWER"]
    assert [node.name for node in client.cluster_status(follower)] == ["n1", "n2", "n3"]
    leader = client.cluster_leader()
    assert leader is not None
    assert leader.client == cluster.servers[0].address
    assert client.cluster_hash(follower) == StateHash(1, "ab" * 16)
    client.offline(follower)
    client.online(follower)
    client.shutdown(follower)


def test_a_named_server_is_asked_alone(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[1].stop()
    with pytest.raises(Unavailable):
        client.ping(cluster.servers[1].address)


def test_status_is_answered_while_nobody_leads(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].stop()
    assert [node.role for node in client.cluster_status()] == ["DOWN", "FOLLOWER", "FOLLOWER"]


def test_wrong_arguments_open_no_connection(cluster: MemoryCluster, client: Client) -> None:
    with pytest.raises(BadArguments):
        client.put("no such name!", b"")
    with pytest.raises(TypeError):
        client.put("mail", 5)              # type: ignore[arg-type]
    with pytest.raises(BadArguments):
        client.put_many("mail", [b"good"], priority=2**70)
    with pytest.raises(BadArguments):
        client.get("mail", expire=-1)
    with pytest.raises(BadArguments):
        client.get("mail", block=True, wait=0)
    with pytest.raises(BadArguments):
        client.get_many(5, "mail", expire=0)
    with pytest.raises(BadArguments):
        client.put("mail", b"", timeout=-1)
    assert [server.accepted for server in cluster.servers] == [0, 0, 0]


def test_a_connection_is_used_again(cluster: MemoryCluster, client: Client) -> None:
    for _ in range(20):
        client.put("mail", b"x")
    assert cluster.servers[0].accepted == 2     # INTERCONNECT and the rest


def test_a_closed_client_refuses_and_wakes_the_blocked(cluster: MemoryCluster, client: Client) -> None:
    def close_when_blocked() -> None:
        until(lambda: any(line.startswith("GETB") for server in cluster.servers for line in server.received))
        client.close()

    closing = threading.Thread(target=close_when_blocked)
    closing.start()
    with pytest.raises(OutcomeUnknown):         # a job may have been on its way to it
        client.get("mail", block=True, expire=30)
    closing.join()
    with pytest.raises(ClientClosed):
        client.put("mail", b"x")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_shares_neither_connection_nor_session_with_its_parent(cluster: MemoryCluster) -> None:
    client = Client(cluster.addresses)
    client.put("mail", b"parent")
    connections = cluster.servers[0].accepted
    reader, writer = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            client.put("mail", b"child")
            writer.sendall(b"put")
        finally:
            os._exit(0)
    reader.settimeout(10)
    assert reader.recv(10) == b"put"
    os.waitpid(child, 0)
    reader.close()
    writer.close()
    assert cluster.servers[0].accepted == connections + 1
    client.put("mail", b"parent again")
    assert cluster.servers[0].accepted == connections + 1       # the parent's own connection is still good
    assert cluster.bodies("mail") == [b"parent", b"child", b"parent again"]
    assert cluster.sessions == 2
    client.close()


def test_a_time_may_be_longer_than_any_socket_takes(cluster: MemoryCluster, make_client: MakeClient) -> None:
    client = make_client(cluster.addresses, timeout=1e15, server_timeout=1e15, connect_timeout=1e15)
    client.put("q", b"x")
    client.offline(cluster.addresses[0], timeout=1e15)
    assert client.get("q", block=True, wait=1e15) is not None


def in_a_child(action: Callable[[], object]) -> int:
    """Call a function in a forked process; returns its exit code."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            action()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_that_closes_the_client_leaves_the_parents_alone(cluster: MemoryCluster) -> None:
    with Client(cluster.addresses) as client:
        client.put("mail", b"1")
        blocked = threading.Thread(target=client.get, args=["sms"], kwargs={"block": True})
        blocked.start()
        time.sleep(0.2)
        client.put("mail", b"2")
        accepted, received = cluster.servers[0].accepted, len(cluster.servers[0].received)
        assert in_a_child(client.close) == 0
        client.put("sms", b"3")
        blocked.join()
        assert cluster.servers[0].accepted == accepted
        assert cluster.servers[0].received[received:] == ["PUT sms 0 1"]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_a_child_that_was_forked_during_a_search_can_search(cluster: MemoryCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = [*cluster.addresses, f"127.0.0.1:{silent.getsockname()[1]}"]
        with Client(servers, connect_timeout=1, server_timeout=0.3) as client:
            cluster.lead(None)
            searching = threading.Thread(target=client.put, args=["mail", b"parent"])
            searching.start()
            time.sleep(0.3)
            cluster.lead(cluster.servers[0])
            assert in_a_child(lambda: client.put("mail", b"child", timeout=30)) == 0
            searching.join()
    assert sorted(cluster.bodies("mail")) == [b"child", b"parent"]


def test_the_face_of_the_package_is_complete() -> None:
    for name in sockpq.__all__:
        assert getattr(sockpq, name).__doc__, f"{name} says nothing about itself"
    assert sorted(sockpq.__all__) == list(sockpq.__all__)
