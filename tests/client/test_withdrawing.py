"""The end of a `wait` with a server that does not know WITHIN, or after a failover.

The client takes its blocked command back, and the answer may be on its way all the same.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import BinaryIO

import pytest
from sockpq import Job, OutcomeUnknown

from tests.client.conftest import MakeClient
from tests.client.real_server import RealServer
from tests.client.scripted_server import JOB, ScriptedServer, reset, trickle
from tests.waiting import at_most

WAIT_S = 0.3
LATER_S = 0.05              # what the proxy takes for an answer
HANDED = b"200 OK q "       # a job


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


class HastyProxy:
    """Passes bytes on, answers a little later. It ends both directions of a connection as soon as one has ended, as
    toxiproxy does. The first job that is handed out through it is lost, and with `lose` the connection.
    """

    def __init__(self, upstream: str) -> None:
        host, port = upstream.split(":")
        self._upstream = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._to: socket.socket | None = None       # the client that does not get the job
        self.lost = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self) -> None:
        assert self._to is not None
        _end(self._to)

    def close(self) -> None:
        _end(self._listener)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._upstream)
                threading.Thread(target=self._pass_on, args=[client, server], daemon=True).start()
                threading.Thread(target=self._answer, args=[server, client], daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
        _end(server)
        _end(client)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if data.startswith(HANDED) and not self.lost.is_set():
                    self._to = client
                    self.lost.set()
                else:
                    time.sleep(LATER_S)
                    client.sendall(data)
        _end(server)
        _end(client)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def test_a_job_that_is_asked_for_again_is_not_lost_at_a_proxy_that_passes_on_no_half_close(
    make_client: MakeClient,
) -> None:
    with RealServer() as server, contextlib.closing(HastyProxy(server.address)) as proxy, at_most(30):
        make_client(server.address).put("q", b"x")
        client = make_client(proxy.address, timeout=10)
        found: list[Job | None] = []
        taking = threading.Thread(target=lambda: found.append(client.get("q", block=True, wait=WAIT_S, expire=60)))
        taking.start()
        assert proxy.lost.wait(20)
        time.sleep(WAIT_S)                  # the wait is over when the connection breaks
        proxy.lose()
        taking.join(20)
        counts = server.do(lambda cluster: cluster.machine.counts("q"))
        assert counts is not None
        assert counts.running == 1
        assert [job and job.data for job in found] == [b"x"], "it was told that there is no job, and has it"
