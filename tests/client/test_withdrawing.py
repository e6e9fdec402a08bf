"""The end of a `wait` that the server does not end: it does not know WITHIN, or a failover came between.

A job may still be on its way. A numbered command is asked for it again; one without a number is taken back.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import BinaryIO

import pytest
from sockpq import Client, Job, OutcomeUnknown

from tests.client.conftest import MakeClient
from tests.client.hasty_proxy import HastyProxy
from tests.client.real_server import RealServer
from tests.client.scripted_server import JOB, ScriptedServer, reset, trickle
from tests.waiting import at_most

WAIT_S = 0.3


def half(connection: socket.socket) -> None:
    connection.sendall(JOB[:-3])
    connection.close()
    connection.shutdown(socket.SHUT_RDWR)


def close(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("lose", [half, reset, trickle, close])
def test_an_answer_that_is_lost_while_the_wait_ends_is_asked_for_again(make_client: MakeClient, lose: object) -> None:
    """The server has handed out a job: to report none would be wrong."""
    gets: list[str] = []

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        gets.append(line)
        if len(gets) == 3:
            connection.sendall(JOB)
        elif len(gets) == 2:
            connection.sendall(b"409 Request Mismatch\r\n")
        elif stream.read() == b"":      # the client has ended the wait
            lose(connection)            # type: ignore[operator]

    with ScriptedServer(answer) as server, at_most(4):
        client = make_client(server.address, timeout=30, server_timeout=0.5)
        job = client.get("q", block=True, wait=0.1)
    assert job is not None
    assert job.id == 7
    assert gets == ["GETB q", "GET q", "GETB q"]


def test_bound_jobs_that_no_longer_run_are_in_their_queue_again() -> None:
    """The repeated command is executed again, and would wait for others."""
    gets: list[str] = []

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        gets.append(line.split()[0])
        if len(gets) == 2:
            connection.sendall(b"409 Request Mismatch\r\n")
        else:
            stream.read()

    with ScriptedServer(answer, features=("batch", "within")) as server, at_most(8), \
            Client(server.address, timeout=60) as client:
        assert client.consumer(ttl=60).get_many(5, "q", wait=0.1) == []
    assert gets == ["GETB", "GET", "GETB"]


@pytest.mark.parametrize("outcome", [JOB, b"404 Queue Empty\r\n"])
def test_a_number_that_was_not_used_is_used_up(make_client: MakeClient, outcome: bytes) -> None:
    """What still waits somewhere can no longer be given anything, and what has arrived by now is taken."""
    gets: list[str] = []

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        gets.append(line)
        if len(gets) == 2:
            connection.sendall(outcome)
        else:
            stream.read()

    with ScriptedServer(answer) as server, at_most(4):
        job = make_client(server.address, timeout=30).get("q", block=True, wait=0.1)
    assert (job is not None) == (outcome == JOB)
    assert gets == ["GETB q", "GET q"]


def test_a_job_whose_lease_is_over_is_not_taken_for_none(make_client: MakeClient) -> None:
    """Its number is used, and the server hands out nothing under it: nobody knows what the lost answer contained."""
    gets: list[str] = []

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        gets.append(line)
        if line == "GET q":
            connection.sendall(b"409 Request Mismatch\r\n")
        else:
            stream.read()

    with ScriptedServer(answer) as server, at_most(20), pytest.raises(OutcomeUnknown):
        make_client(server.address, timeout=3).get("q", block=True, wait=0.1)
    assert gets[:3] == ["GETB q", "GET q", "GETB q"]


@pytest.mark.parametrize("answered", [True, False])
def test_without_a_number_the_end_of_the_connection_has_to_do(make_client: MakeClient, answered: bool) -> None:
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        assert stream.read() == b""         # the client has taken it back
        if answered:
            connection.sendall(JOB)
        connection.shutdown(socket.SHUT_RDWR)

    with ScriptedServer(answer) as server, at_most(4):
        job = make_client(server.address, timeout=30, sessions=False).get("q", block=True, wait=0.1)
    assert (job is not None) == answered


def test_without_a_session_nobody_knows_about_a_job_without_a_lease(make_client: MakeClient) -> None:
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        stream.read()
        reset(connection)

    with ScriptedServer(answer) as server, at_most(4), pytest.raises(OutcomeUnknown):
        make_client(server.address, timeout=30, sessions=False).get("q", block=True, wait=0.1)


def test_a_connection_that_was_told_its_end_is_not_used_again(make_client: MakeClient) -> None:
    connections = []
    over = threading.Event()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        connections.append(connection)
        if line.startswith("PUT"):
            connection.sendall(b"200 OK\r\n")
        elif stream.read() == b"":
            connection.sendall(JOB)
            over.wait(60)               # it stays open for some time

    with ScriptedServer(answer) as server, at_most(4):
        client = make_client(server.address, timeout=30, sessions=False)
        assert client.get("q", block=True, wait=0.1) is not None
        client.put("q", b"")
        client.close()
        over.set()
    assert len(set(connections)) == 2


def test_a_job_that_comes_when_the_wait_ends_is_not_lost_at_a_proxy_that_passes_on_no_half_close(
    make_client: MakeClient,
) -> None:
    with RealServer() as server, contextlib.closing(HastyProxy(server.address)) as proxy, at_most(30):
        make_client(server.address).put("q", b"x")
        job = make_client(proxy.address, timeout=10).get("q", block=True, wait=WAIT_S, expire=60)
        assert proxy.lost.is_set()
    assert job is not None, "it was told that there is no job, and has it"
    assert job.data == b"x"


def test_a_job_that_is_asked_for_again_is_not_lost_at_a_proxy_that_passes_on_no_half_close(
    make_client: MakeClient,
) -> None:
    with RealServer() as server, contextlib.closing(HastyProxy(server.address)) as proxy, at_most(30):
        make_client(server.address).put("q", b"x")
        client = make_client(proxy.address, timeout=10)
        found: list[Job | None] = []
        taking = threading.Thread(target=lambda: found.append(client.get("q", block=True, wait=WAIT_S, expire=60)))
        taking.start()
        assert proxy.lost.wait(60)
        time.sleep(WAIT_S)                  # the wait is over when the connection breaks
        proxy.lose()
        taking.join(60)
        assert server.ready_and_running("q")[1] == 1
        assert [job and job.data for job in found] == [b"x"], "it was told that there is no job, and has it"
