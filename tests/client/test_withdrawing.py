"""The end of a `wait` with a server that does not know WITHIN, or after a failover.

The client takes its blocked command back, and the answer may be on its way all the same.
"""

from __future__ import annotations

import socket
import threading
from typing import BinaryIO

import pytest
from sockpq import OutcomeUnknown

from tests.client.conftest import MakeClient
from tests.client.scripted_server import JOB, ScriptedServer, reset, trickle
from tests.client.test_failover import at_most


def half(connection: socket.socket) -> None:
    connection.sendall(JOB[:-3])
    connection.close()
    connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("lose", [half, reset, trickle])
def test_an_answer_that_is_lost_while_the_wait_ends_is_asked_for_again(make_client: MakeClient, lose: object) -> None:
    """The server has handed out a job: that there was none would be a lie."""
    gets: list[str] = []

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        gets.append(line)
        if len(gets) > 1:
            connection.sendall(JOB)
        elif stream.read() == b"":      # the client has taken it back
            lose(connection)            # type: ignore[operator]

    with ScriptedServer(answer) as server, at_most(4):
        client = make_client(server.address, timeout=5, server_timeout=0.5)
        job = client.get("q", block=True, wait=0.1)
    assert job is not None
    assert job.id == 7
    assert gets == ["GETB q"] * 2


def test_without_a_session_nobody_knows_about_a_job_without_a_lease(make_client: MakeClient) -> None:
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        stream.read()
        reset(connection)

    with ScriptedServer(answer) as server, at_most(4), pytest.raises(OutcomeUnknown):
        make_client(server.address, timeout=5, sessions=False).get("q", block=True, wait=0.1)


def test_a_connection_that_was_told_its_end_is_not_used_again(make_client: MakeClient) -> None:
    connections = []
    over = threading.Event()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        connections.append(connection)
        if line.startswith("PUT"):
            connection.sendall(b"200 OK\r\n")
        elif stream.read() == b"":
            connection.sendall(JOB)
            over.wait(10)               # it stays open for some time

    with ScriptedServer(answer) as server, at_most(4):
        client = make_client(server.address, timeout=5)
        assert client.get("q", block=True, wait=0.1) is not None
        client.put("q", b"")
        client.close()
        over.set()
    assert len(set(connections)) == 2
