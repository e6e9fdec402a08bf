"""Batches, waits and transactions whose answers are lost, or whose server does not know them."""

from __future__ import annotations

import socket
import time
from typing import BinaryIO

import pytest
from sockpq import Aborted, BadArguments, Busy, Client, NotSupported, OutcomeUnknown

from tests.client.conftest import MakeClient
from tests.client.scripted_server import JOB, ScriptedServer
from tests.waiting import at_most

NEW = ("batch", "within", "change", "move", "transaction")


class MappedSlot:
    """The lines that a server received."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, stream: BinaryIO, line: str) -> str:
        """Take a line with its data."""
        if line.startswith("PUTS"):
            line += " " + stream.read(int(line.split()[1]) * len(b"q 0 1\r\nx")).decode().replace("\r\n", ":")
        self.lines.append(line)
        return line


def lose(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def test_jobs_put_at_once_are_asked_for_again_and_are_one_request(make_client: MakeClient) -> None:
    told = MappedSlot()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        told.line(stream, line)
        if len(told.lines) == 1:
            lose(connection)
        else:
            connection.sendall(b"200 OK 2\r\n200 OK\r\n200 OK\r\n")

    with ScriptedServer(answer, features=NEW) as server, at_most(4):
        assert make_client(server.address, timeout=30).put_many("q", [b"x", b"x"]) == 2
    assert told.lines == ["PUTS 2 q 0 1:xq 0 1:x"] * 2


def test_without_a_session_all_jobs_of_a_lost_batch_are_unknown(make_client: MakeClient) -> None:
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        lose(connection)

    with ScriptedServer(answer, features=NEW) as server, at_most(4), pytest.raises(OutcomeUnknown):
        make_client(server.address, timeout=30, sessions=False).put_many("q", [b"x", b"x"])


def test_a_server_says_in_its_own_time_that_nothing_came(make_client: MakeClient) -> None:
    told = MappedSlot()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        told.line(stream, line)
        connection.sendall(b"404 Queue Empty\r\n")

    with ScriptedServer(answer, features=NEW) as server, at_most(4):
        client = make_client(server.address, timeout=30)
        assert client.get("q", block=True, expire=5, wait=0.1) is None
        assert client.get("q", block=True, expire=5, wait=0.1) is None
    assert told.lines == ["GETB q EXPIRE 5 WITHIN 0.100"] * 2


def test_a_job_that_was_lost_at_the_end_of_a_wait_is_asked_for_again(make_client: MakeClient) -> None:
    """The same request, in the same words, brings the same job, however little of the wait is left."""
    told = MappedSlot()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        told.line(stream, line)
        if len(told.lines) == 1:
            connection.sendall(JOB[:-3])
            lose(connection)
        else:
            connection.sendall(JOB)

    with ScriptedServer(answer, features=NEW) as server, at_most(4):
        job = make_client(server.address, timeout=30).get("q", block=True, expire=5, wait=0.1)
    assert job is not None
    assert told.lines == ["GETB q EXPIRE 5 WITHIN 0.100"] * 2


def test_nothing_of_a_transaction_is_sent_before_the_server_has_begun_it(make_client: MakeClient) -> None:
    """One that does not know BEGIN would execute the commands one by one."""
    told = MappedSlot()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        told.line(stream, line)
        connection.sendall(b"400 Bad Command\r\n")

    with ScriptedServer(answer) as server, at_most(4):
        client = make_client(server.address, timeout=30)
        with pytest.raises(ValueError, match="400 Bad Command"), client.transaction() as t:
            t.done(1)
    assert told.lines == ["BEGIN"]


def test_a_lost_transaction_is_committed_again_with_all_its_commands(make_client: MakeClient) -> None:
    told = MappedSlot()
    commits = []

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        told.line(stream, line)
        if line == "BEGIN":
            connection.sendall(b"200 OK\r\n")
        elif line == "COMMIT":
            commits.append(line)
            if len(commits) == 1:
                lose(connection)
            else:
                connection.sendall(b"200 OK 2\r\n200 OK FINQ\r\n200 OK\r\n")
        else:
            connection.sendall(b"202 Queued\r\n")

    with ScriptedServer(answer, features=NEW) as server, at_most(4):
        client = make_client(server.address, timeout=30)
        with client.transaction() as t:
            t.done(1)
            t.later(2)
        assert t.results[0].queue_done
    assert told.lines == ["BEGIN", "DONE 1", "LATER 2", "COMMIT"] * 2


def test_a_transaction_without_a_session_that_is_lost_is_unknown(make_client: MakeClient) -> None:
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        if line == "COMMIT":
            lose(connection)
        else:
            connection.sendall(b"200 OK\r\n" if line == "BEGIN" else b"202 Queued\r\n")

    with ScriptedServer(answer, features=NEW) as server, at_most(4):
        client = make_client(server.address, timeout=30, sessions=False)
        with pytest.raises(OutcomeUnknown), client.transaction() as t:
            t.done(1)


def test_a_body_is_not_sent_to_a_server_that_would_take_it_for_commands(make_client: MakeClient) -> None:
    told = MappedSlot()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        told.line(stream, line)
        connection.sendall(b"200 OK\r\n")

    with ScriptedServer(answer) as server, at_most(4):
        client = make_client(server.address, timeout=30)
        with pytest.raises(NotSupported):
            client.change(7, data=b"SHUTDOWN\r\n")
        with pytest.raises(NotSupported):
            client.move(7, "q", data=b"SHUTDOWN\r\n")
        assert client.put_many("q", [b"", b""]) == 2
    assert told.lines == ["PUT q 0 0"] * 2


def test_a_server_that_is_busy_does_not_abort_a_transaction_for_good(make_client: MakeClient) -> None:
    told = MappedSlot()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        told.line(stream, line)
        if line == "BEGIN":
            connection.sendall(b"200 OK\r\n")
        elif line == "COMMIT":
            connection.sendall(b"503 Busy\r\n" if len(told.lines) < 4 else b"409 Aborted 1 404 Job Not Found\r\n")
        else:
            connection.sendall(b"202 Queued\r\n")

    with ScriptedServer(answer, features=NEW) as server, at_most(4):
        client = make_client(server.address, timeout=30)
        with pytest.raises(Aborted) as aborted, client.transaction() as t:
            t.done(1)
    assert not isinstance(aborted.value, Busy)
    assert told.lines == ["BEGIN", "DONE 1", "COMMIT"] * 2


def test_heartbeats_that_a_server_does_not_know_are_told_when_the_job_is_done(make_client: MakeClient) -> None:
    told = MappedSlot()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        told.line(stream, line)
        verb = line.split()[0]
        connection.sendall(JOB if verb == "GETB" else b"200 OK\r\n" if verb == "DONE" else b"400 Bad Command\r\n")

    def work(client: Client) -> None:
        for _ in client.consume("q", expire=0.3, heartbeat=True):
            while "TOUCH 7" not in told.lines:
                time.sleep(0.01)
            time.sleep(0.1)

    with ScriptedServer(answer) as server, at_most(4), pytest.raises(BadArguments):
        work(make_client(server.address, timeout=30))
    assert told.lines == ["GETB q EXPIRE 0.300", "TOUCH 7", "DONE 7"]


def test_a_job_that_was_ended_while_it_was_touched_is_not_lost(make_client: MakeClient) -> None:
    told = MappedSlot()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        told.line(stream, line)
        if line.startswith("TOUCH"):
            while "DONE 7" not in told.lines:
                time.sleep(0.01)
        connection.sendall({"GETB": JOB, "DONE": b"200 OK\r\n"}.get(line.split()[0], b"404 Job Not Found\r\n"))

    with ScriptedServer(answer) as server, at_most(4):
        client = make_client(server.address, timeout=30)
        for job in client.consume("q", expire=0.6, heartbeat=True):
            while "TOUCH 7" not in told.lines:
                time.sleep(0.01)
            job.done()
            time.sleep(0.3)
            assert not job.lost
            break
    assert told.lines == ["GETB q EXPIRE 0.600", "TOUCH 7", "DONE 7"]
