"""The texts, errors, logs and counts that a client shows; and the forms of a body."""

from __future__ import annotations

import logging
import pickle
import socket
import traceback
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import sockpq
from sockpq import BadArguments, Client, JobNotFound, SockpqError, Stored, Unavailable
from sockpq._backends.sync import SocketStream

from tests.client.conftest import MakeClient
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.client.scripted_server import ScriptedServer, reset


def test_a_client_shows_its_servers_and_the_leader(cluster: MemoryCluster) -> None:
    with sockpq.Client(cluster.addresses[0]) as client:
        assert repr(client) == f"<Client of {cluster.addresses[0]}, leader not known>"
        client.put("q", b"")
        assert repr(client) == f"<Client of {','.join(cluster.addresses)}, leader {cluster.addresses[0]}>"


def test_a_connection_that_was_closed_at_once_is_described_in_words() -> None:
    """The operating system knows no peer any more then, and says so with a number."""
    with socket.socket() as never_connected, pytest.raises(OSError, match=r"^the server closed the connection$"):
        SocketStream(never_connected, 1.0).peer()


def test_a_job_shows_what_it_is(cluster: MemoryCluster) -> None:
    with sockpq.Client(cluster.addresses) as client:
        client.put("mail", "to: ann" * 10, priority=5, item="i7")
        job = client.get("mail", expire=30)
        assert repr(job) == f"<Job 1 of 'mail', priority 5, item 'i7', {b'to: ann' * 5 + b'to: a'!r}..>"


def test_errors_come_without_the_inside_of_the_library(cluster: MemoryCluster, client: Client) -> None:
    with pytest.raises(JobNotFound) as refused:
        client.done(5)
    files = {Path(frame.filename).parent.name for frame in traceback.extract_tb(refused.value.__traceback__)}
    assert "_engine" not in files
    assert "_protocol" not in files
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_connections_leaders_and_retries_are_logged_and_counted(
    cluster: MemoryCluster, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "sockpq")
    cluster.servers[0].fail("PUT", Fault.CLOSE)
    client.put("q", b"1")
    cluster.lead(cluster.servers[1])
    client.put("q", b"2")
    with pytest.raises(JobNotFound):
        client.done(7)
    told = [record.getMessage() for record in caplog.records if record.name == "sockpq"]
    for server in cluster.addresses[:2]:
        assert f"commands go to {server}" in told
        assert f"connected to {server}" in told
    assert any("attempt 1 failed" in line for line in told)
    stats = client.stats()
    assert (stats.calls["PUT"].calls, stats.calls["PUT"].failed) == (2, 0)
    assert (stats.calls["DONE"].calls, stats.calls["DONE"].failed) == (1, 1)
    assert 0 < stats.calls["PUT"].mean_s <= stats.calls["PUT"].longest_s <= stats.calls["PUT"].seconds
    assert stats.retries >= 2
    assert stats.connects >= 2
    assert stats.leader_changes == 1


def test_of_a_call_that_nobody_answers_the_first_repetition_is_logged_for_people(
    cluster: MemoryCluster, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "sockpq")
    cluster.servers[0].fail("PUT", Fault.CLOSE, Fault.CLOSE, Fault.CLOSE)
    client.put("q", b"1")
    repetitions = [record.levelno for record in caplog.records if "the next one begins" in record.getMessage()]
    assert repetitions == [logging.INFO, logging.DEBUG, logging.DEBUG]


def test_the_time_of_a_done_is_not_that_of_the_wait_for_the_next_job(client: Client) -> None:
    client.put("q", b"")
    assert [job.data for job in client.consume("q", expire=60, wait=0.5)] == [b""]
    calls = client.stats().calls
    assert (calls["DONE"].calls, calls["GETB"].calls) == (1, 2)
    assert calls["DONE"].longest_s < calls["GETB"].longest_s


def test_a_program_that_finds_no_server_for_long_is_told_so_once(
    cluster: MemoryCluster, client: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sockpq._engine.call_runner.SILENT_S", 0.05)
    client.put("q", b"1")
    cluster.servers[0].fail("PUT", Fault.CLOSE)
    client.put("q", b"2")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING], "a retry is nothing special"
    for server in cluster.servers:
        server.stop()
    with pytest.raises(Unavailable):
        client.put("q", b"3", timeout=0.8)
    (told,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert told.startswith("no server has executed a command for 0 s, it is tried for another ")
    assert "connection refused" in told


def test_a_call_without_the_queue_of_its_answer_is_a_mistake(client: Client) -> None:
    with pytest.raises(BadArguments, match="needs output"):
        client.call("q", b"x")


def test_a_body_is_bytes_or_text_or_json(client: Client) -> None:
    client.put("q", "grün")
    client.put("q", json={"to": "ann", "size": [1, None]})
    client.put("q", json=None)
    assert client.put_many("q", json=[1, "zwei"]) == 2
    assert client.put_many("q", ["drei", b"vier"]) == 2
    first, second, third, *rest = [client.get("q", expire=30) for _ in range(7)]
    assert (first.data, first.text) == ("grün".encode(), "grün")        # type: ignore[union-attr]
    assert second.data == b'{"to":"ann","size":[1,null]}'               # type: ignore[union-attr]
    assert second.json() == {"to": "ann", "size": [1, None]}            # type: ignore[union-attr]
    assert third.json() is None                                         # type: ignore[union-attr]
    assert [job.data for job in rest] == [b"1", b'"zwei"', b"drei", b"vier"]    # type: ignore[union-attr]


def test_a_body_is_given_in_one_way(client: Client) -> None:
    for arguments in ({"data": b"", "json": 1}, {"json": 1, "value": 2}, {"value": 1}):
        with pytest.raises(BadArguments):
            client.put("q", **arguments)                                # type: ignore[arg-type]
    with pytest.raises(TypeError):
        client.put("q")
    with pytest.raises(TypeError):
        client.put("q", json=object())
    with pytest.raises(BadArguments):
        client.put_many("q", [b""], json=[1])


class Pickled:
    """A codec that pickles values."""

    def encode(self, value: Any) -> bytes:
        return pickle.dumps(value)

    def decode(self, data: bytes) -> Any:
        return pickle.loads(data)


def test_a_codec_of_ones_own(cluster: MemoryCluster, make_client: MakeClient) -> None:
    client = make_client(cluster.addresses, codec=Pickled())
    client.put("q", value={1, 2})
    client.put_many("q", values=[3, (4,)])
    assert [client.get("q", expire=30).value for _ in range(3)] == [{1, 2}, 3, (4,)]
    plain = make_client(cluster.addresses)
    plain.put("q", b"")
    with pytest.raises(BadArguments):
        _ = plain.get("q", expire=30).value


def test_put_tells_what_a_program_may_want_to_keep(client: Client) -> None:
    assert client.put("q", b"", new_item=True) == Stored(item="i1")
    assert client.put("q", b"", item="mine") == Stored(item="mine")
    assert repr(client.put("q", b"")) == "Stored()"


def test_to_wait_is_to_block(client: Client) -> None:
    assert client.get("q", expire=30, wait=0.05) is None
    client.put("q", b"x")
    job = client.get("q", expire=30, wait=5)
    assert job is not None
    assert job.data == b"x"


def test_nobody_there_is_said_with_the_address(make_client: MakeClient) -> None:
    client = make_client("127.0.0.1:1", timeout=0.3)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        client.put("q", b"")


def test_a_connection_that_was_reset_is_told_in_words(make_client: MakeClient) -> None:
    def end(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        reset(connection)
        stream.close()

    with ScriptedServer(end) as server:
        client = make_client(server.address, timeout=0.3)
        with pytest.raises(SockpqError) as caught:
            client.put("q", b"")
    assert server.address in str(caught.value)
    assert "Errno" not in str(caught.value)
