"""The client's behaviour when an answer is lost and no session can tell what it was."""

from __future__ import annotations

import socket
import threading
import time
from typing import BinaryIO

import pytest
from sockpq import Client, JobNotFound, NoOutput, OutcomeUnknown, Unavailable

from sockpqd.gateway.limits import Limits
from tests.client.conftest import EARLY, MakeClient
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.client.scripted_server import ScriptedServer
from tests.waiting import at_most

LOST = [Fault.EXECUTE_AND_CLOSE, Fault.HALF_ANSWER, Fault.EXECUTE_AND_STALL]
NEVER_EXECUTED = [Fault.CLOSE, Fault.STALL, Fault.RUBBISH, Fault.ENDLESS]


@pytest.fixture
def client(old_client: Client) -> Client:
    return old_client


@pytest.mark.parametrize("fault", LOST + NEVER_EXECUTED)
def test_a_put_whose_answer_is_lost_is_unknown(cluster: MemoryCluster, client: Client, fault: Fault) -> None:
    cluster.servers[0].fail("PUT", fault)
    with at_most(3), pytest.raises(OutcomeUnknown):
        client.put("q", b"x")
    assert cluster.servers[0].received.count("PUT q 0 1") == 1
    client.put("q", b"next")
    assert cluster.bodies("q")[-1] == b"next"


@pytest.mark.parametrize("fault", LOST + NEVER_EXECUTED)
def test_at_least_once_repeats_a_lost_put(cluster: MemoryCluster, client: Client, fault: Fault) -> None:
    cluster.servers[0].fail("PUT", fault)
    with at_most(3):
        client.put("q", b"x", retry_unknown=True)
    assert cluster.bodies("q") == [b"x"] * (2 if fault in LOST else 1)


@pytest.mark.parametrize("fault", LOST + NEVER_EXECUTED)
def test_a_get_with_a_lease_is_repeated(cluster: MemoryCluster, client: Client, fault: Fault) -> None:
    client.put_many("q", [b"1", b"2"])
    cluster.servers[0].fail("GET", fault)
    with at_most(4):
        job = client.get("q", expire=30)
    assert job is not None
    assert job.data == (b"2" if fault in LOST else b"1")      # the lost one returns when its lease ends


@pytest.mark.parametrize("fault", LOST + NEVER_EXECUTED)
def test_a_get_without_a_lease_is_unknown(cluster: MemoryCluster, client: Client, fault: Fault) -> None:
    client.put("q", b"1")
    cluster.servers[0].fail("GET", fault)
    with at_most(3), pytest.raises(OutcomeUnknown):
        client.get("q")


def test_a_done_whose_answer_is_lost_cannot_be_told_from_an_ended_lease(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", [b"1", b"2", b"3"])
    jobs = [client.get("q", expire=30) for _ in range(3)]
    assert jobs[0]
    assert jobs[1]
    assert jobs[2]
    cluster.servers[0].fail("DONE", Fault.EXECUTE_AND_CLOSE)
    with pytest.raises(OutcomeUnknown):
        jobs[0].done()
    cluster.servers[0].fail("DONE", Fault.EXECUTE_AND_CLOSE)
    client.done(jobs[1], retry_unknown=True)
    cluster.servers[0].fail("DONE", Fault.CLOSE)
    assert jobs[2].done().queue_done
    with pytest.raises(JobNotFound):
        jobs[2].done()


def test_a_later_whose_answer_is_lost_is_repeated_without_a_word(cluster: MemoryCluster, client: Client) -> None:
    client.put("q", b"1")
    job = client.get("q", expire=30)
    assert job is not None
    cluster.servers[0].fail("LATER", Fault.EXECUTE_AND_CLOSE)
    job.later()
    assert cluster.bodies("q") == [b"1"]
    with pytest.raises(JobNotFound):
        job.later()


@pytest.mark.parametrize("fault", [Fault.HALF_AND_STALL, Fault.TRICKLE])
def test_the_answer_to_a_blocked_get_must_end_once_it_has_begun(
    cluster: MemoryCluster, make_client: MakeClient, fault: Fault
) -> None:
    cluster.servers[0].fail("GETB", fault)
    client = make_client(cluster.addresses[:1], timeout=2, server_timeout=0.3, sessions=False)
    client.put("q", b"x" * 100)
    with at_most(30), pytest.raises(OutcomeUnknown):
        client.get("q", block=True)


def test_a_call_before_its_206_is_a_put_like_any_other(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("PUT", Fault.REFUSE)
    cluster.servers[0].fail("WAIT", Fault.CLOSE)
    with pytest.raises(NoOutput):
        client.call("in", b"x", "out")
    assert cluster.put("in") == 1
    cluster.servers[0].fail("PUT", Fault.STALL)
    with at_most(3), pytest.raises(OutcomeUnknown) as unknown:
        client.call("in", b"x", "out")
    assert not isinstance(unknown.value, NoOutput)


def test_a_call_whose_output_is_lost_names_its_item_and_is_not_repeated(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("WAIT", Fault.CLOSE)
    with pytest.raises(NoOutput) as lost:
        client.call("in", b"x", "out", retry_unknown=True)
    assert lost.value.item == "i1"
    assert cluster.put("in") == 1


def test_a_call_whose_server_ceases_to_lead_is_told_so(cluster: MemoryCluster, client: Client) -> None:
    timer = threading.Timer(0.2, cluster.lead, [cluster.servers[1]])
    timer.start()
    with pytest.raises(NoOutput):
        client.call("in", b"x", "out", item="mine")
    timer.join()
    client.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]


def test_the_rest_of_half_a_command_never_follows(make_client: MakeClient) -> None:
    """The server does not read for so long that the client gives up, and reports that nothing was executed."""
    received: list[int] = []
    given_up = threading.Event()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        given_up.wait(60)
        received.append(len(stream.read(20_000_000)))

    with ScriptedServer(answer) as server:
        client = make_client(server.address, timeout=2, server_timeout=0.2, sessions=False)
        with pytest.raises(Unavailable):
            client.put("q", bytes(20_000_000))
        given_up.set()
        client.close()
        while not received:
            time.sleep(0.01)
    assert max(received) < 20_000_000


def test_half_a_command_is_not_executed_and_not_unknown(make_client: MakeClient) -> None:
    """The server resets the connection while the body is being sent: the client knows that it cannot have run."""
    body = bytes(50_000_000)            # more than two sockets buffer
    with MemoryCluster(1, features=EARLY, limits=Limits(data_bytes_max=len(body))) as cluster:
        client = make_client(cluster.addresses, timeout=30, server_timeout=0.5, sessions=False)
        cluster.servers[0].script.reset_after_line = True
        with pytest.raises(Unavailable):
            client.put("q", body, timeout=0.5)
        with pytest.raises(Unavailable):
            client.put_many("q", [body], timeout=0.5)
        assert cluster.put("q") == 0
