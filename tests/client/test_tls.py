"""TLS: accepted certificates, errors about others, and the promises of a stream."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
import sockpq
import trustme
from sockpq import AuthError, BadArguments, Client, NotExecuted, OutcomeUnknown, Unavailable, Untrusted, aio
from sockpq._backends import asyncio_stream, sync
from sockpq._backends.access import Access
from sockpq._backends.asyncio import CONNECTING_MAX
from sockpq._backends.sync import ThreadNetwork, run
from sockpq._backends.tls import TlsStream
from sockpq._engine import retry
from sockpq._engine.connection import Connection
from sockpq._engine.identity import Identity
from sockpq._protocol.addresses import Address, parse_server

from tests.client.certificates import ca_file, server_tls
from tests.client.conftest import EARLY, MakeClient
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.client.scripted_server import JOB, ScriptedServer
from tests.waiting import at_most, until

SECRET = "a-secret-that-nobody-may-see"
TIMES = {"timeout": 120, "server_timeout": 60, "connect_timeout": 60}      # far more than a busy machine needs


@pytest.fixture
def ca(tmp_path: Path) -> str:
    return ca_file(tmp_path)


@pytest.fixture
def secure() -> Iterator[MemoryCluster]:
    """Three servers with good certificates, and users."""
    with MemoryCluster(tls=server_tls(), users={"ann": SECRET}, features=EARLY) as cluster:
        yield cluster


@pytest.fixture
def ann(secure: MemoryCluster, make_client: MakeClient, ca: str) -> Client:
    return make_client(secure.addresses, **TIMES, tls=ca, user="ann", secret=SECRET)


# that it works

def test_the_whole_life_of_a_job(secure: MemoryCluster, ann: Client) -> None:
    ann.put("q", b"x")
    assert ann.put_many("q", [bytes([number % 256]) * number for number in range(0, 40_000, 1000)]) == 40
    jobs = ann.get_many(41, "q", expire=30)
    assert [len(job.data) for job in jobs] == [1, *range(0, 40_000, 1000)]
    assert len(ann.done_many(jobs)) == 41
    assert ann.get("q", block=True, expire=30, wait=0.1) is None
    timer = threading.Timer(0.1, ann.put, ["q", b"late"])
    timer.start()
    job = ann.get("q", block=True, expire=30, wait=5)
    timer.join()
    assert job is not None
    assert job.data == b"late"
    with pytest.raises(sockpq.JobNotFound):
        ann.done(999)


def test_a_body_of_many_records_comes_whole(secure: MemoryCluster, ann: Client) -> None:
    body = os.urandom(3_000_001)
    ann.put("q", body)
    job = ann.get("q", expire=30)
    assert job is not None
    assert job.data == body


def test_a_new_leader_is_followed(secure: MemoryCluster, ann: Client) -> None:
    ann.put("q", b"1")
    secure.servers[0].fail("PUT", Fault.EXECUTE_AND_CLOSE)
    ann.put("q", b"2")
    secure.servers[0].stop()
    secure.lead(secure.servers[1])
    ann.put("q", b"3")
    assert secure.bodies("q") == [b"1", b"2", b"3"]


def test_a_connection_is_used_again_though_session_tickets_come_unasked(secure: MemoryCluster, ann: Client) -> None:
    """With TLS 1.3 they come after the handshake, at any time: they are no late answers."""
    for _ in range(20):
        ann.put("q", b"x")
    assert sum(server.accepted for server in secure.servers) == 4       # one to each for the survey


def test_a_session_ticket_is_not_taken_for_something_nobody_asked_for(secure: MemoryCluster, ca: str) -> None:
    network = ThreadNetwork(Access(ca))
    stream = cast(TlsStream, run(network.connect(parse_server(secure.addresses[0]), 5)))
    try:
        until = time.monotonic() + 10
        while stream._stream.quiet():       # until the tickets are there
            assert time.monotonic() < until
        assert stream.quiet()
        while not stream._stream.quiet():   # it takes them out as they come
            assert stream.quiet()
            assert time.monotonic() < until
    finally:
        stream.close()


def test_what_was_not_asked_for_ends_a_connection(make_client: MakeClient, ca: str) -> None:
    connections: list[socket.socket] = []
    sent = threading.Event()

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        connections.append(connection)
        connection.sendall(b"200 OK\r\n")
        if len(connections) == 1:
            sent.wait(60)
            connection.sendall(b"200 OK\r\n")
            sent.clear()

    with ScriptedServer(answer, server_tls()) as server:
        client = make_client(server.address, timeout=30, tls=ca)
        client.put("q", b"1")
        sent.set()
        while sent.is_set():
            time.sleep(0.01)
        time.sleep(0.05)
        client.put("q", b"2")
    assert len(set(connections)) == 2


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_context_may_be_given(version: ssl.TLSVersion, make_client: MakeClient, ca: str) -> None:
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = context.maximum_version = version
    with MemoryCluster(tls=server_tls()) as cluster:
        client = make_client(cluster.addresses, timeout=30, tls=context)
        client.put("q", bytes(100_000))
        assert client.get("q", block=True, expire=30, wait=5) is not None
        assert client.get("q", block=True, expire=30, wait=0.1) is None


def test_names_and_paths_are_good_too(make_client: MakeClient, ca: str) -> None:
    with MemoryCluster(1, tls=server_tls("localhost")) as cluster:
        make_client(f"localhost:{cluster.servers[0].port}", timeout=30, tls=Path(ca)).put("q", b"x")


def test_a_survey_tells_when_the_certificate_ends(secure: MemoryCluster, ca: str) -> None:
    views = sockpq.survey(secure.addresses, 2, tls=ca, user="ann", secret=SECRET)
    assert [view.error for view in views] == [None] * 3
    for view in views:
        assert view.expires_at is not None
        assert abs(view.expires_at - time.time() - 90 * 86_400) < 3600
    with MemoryCluster(1) as plain:
        assert sockpq.survey(plain.addresses)[0].expires_at is None


# whom one does not trust

@pytest.mark.parametrize(("tls", "why"), [
    (lambda: server_tls(days=-1), "its certificate has expired"),
    (lambda: server_tls(days=366 + 20), "its certificate is not valid yet"),
    (lambda: server_tls("10.0.0.1"), "its certificate is not for the address 127.0.0.1"),
    (lambda: server_tls("n1.example"), "its certificate is not for the address 127.0.0.1"),
    (lambda: server_tls(ca=trustme.CA()), "its certificate is from a CA that is not known here"),
], ids=["expired", "early", "address", "name", "ca"])
def test_what_is_wrong_with_a_certificate_is_told_at_once(
    tls: Any, why: str, make_client: MakeClient, ca: str
) -> None:
    with MemoryCluster(2, tls=tls()) as cluster, at_most(20):
        for servers in (cluster.addresses, cluster.addresses[:1]):
            client = make_client(servers, timeout=60, connect_timeout=5, tls=ca)
            for put, what in ((client.put, b"x"), (client.put_many, [b"x"])):
                with pytest.raises(Untrusted) as error:
                    put("q", what)
                assert all(f"{server}: {why}" in str(error.value) for server in servers)
            for call in (client.cluster_offline, client.cluster_status):
                with pytest.raises(Untrusted):
                    call()
            with pytest.raises(Untrusted, match=why):
                client.total(server=servers[0])
        assert [type(view.error) for view in sockpq.survey(cluster.addresses, 5, tls=ca)] == [Untrusted] * 2
        assert not any(server.received for server in cluster.servers)


def test_a_certificate_for_another_name(make_client: MakeClient, ca: str) -> None:
    with MemoryCluster(1, tls=server_tls("n1.example")) as cluster:
        client = make_client(f"localhost:{cluster.servers[0].port}", timeout=60, tls=ca)
        with pytest.raises(Untrusted, match="its certificate is not for the name localhost"):
            client.put("q", b"x")


def test_a_server_with_a_bad_certificate_does_not_keep_one_from_the_others(make_client: MakeClient, ca: str) -> None:
    with MemoryCluster(tls=server_tls()) as good, MemoryCluster(1, tls=server_tls(days=-1)) as bad:
        client = make_client([*bad.addresses, *good.addresses], **TIMES, tls=ca)
        client.put("q", b"x")
        client.cluster_transfer("n2")
        assert client.cluster_status()
    assert good.bodies("q") == [b"x"]


def test_what_was_on_its_way_when_trust_was_lost_is_unknown(secure: MemoryCluster, ann: Client) -> None:
    ann.put("q", b"1")
    secure.servers[0].fail("PUT", Fault.EXECUTE_AND_CLOSE)
    secure.change_tls(server_tls(days=-1))
    with at_most(20):
        with pytest.raises(OutcomeUnknown, match="its certificate has expired"):
            ann.put("q", b"2", timeout=60)
        with pytest.raises(Untrusted):
            ann.put("q", b"3", timeout=60)
        secure.change_tls(server_tls())
        ann.put("q", b"4")
    assert secure.bodies("q") == [b"1", b"2", b"4"]


def test_a_server_that_speaks_no_tls_is_told_so(make_client: MakeClient, ca: str) -> None:
    with ScriptedServer(lambda connection, *_: connection.sendall(b"400 Bad Arguments\r\n")) as server:
        server_lines = make_client(server.address, timeout=0.5, connect_timeout=0.2, tls=ca)
        with pytest.raises(NotExecuted):            # it may wait for the end of a line that never comes
            server_lines.put("q", b"x")

    def greet(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.sendall(b"400 Bad Arguments\r\n")
        connection.recv(100_000)
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=greet, args=[listener])
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(Untrusted, match="it does not speak TLS"):
            make_client(address, timeout=60, tls=ca).put("q", b"x")
        thread.join()


def test_a_port_that_wants_tls_executes_nothing_without(secure: MemoryCluster, make_client: MakeClient) -> None:
    with at_most(10), pytest.raises(NotExecuted):
        make_client(secure.addresses, timeout=0.3).put("q", b"x")


def test_a_secret_is_not_told_to_a_server_that_is_not_trusted(make_client: MakeClient, ca: str) -> None:
    untrusted = server_tls(ca=trustme.CA())
    with MemoryCluster(1, tls=untrusted, users={"ann": SECRET}) as cluster, pytest.raises(Untrusted):
        make_client(cluster.addresses, timeout=60, tls=ca, user="ann", secret=SECRET).put("q", b"x")
    assert cluster.servers[0].received == []


def test_over_tls_the_secret_goes_to_any_address(
    secure: MemoryCluster, ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs no challenge there: a server may keep a hash only."""
    for stream in (sync.SocketStream, asyncio_stream.TransportStream):
        monkeypatch.setattr(stream, "peer", lambda _: Address("10.0.0.1", 11361))
    ann.put("q", b"x")
    attempts = {line for server in secure.servers for line in server.received if line.startswith("AUTH")}
    assert attempts == {f"AUTH ann {SECRET}"}


def test_a_wrong_secret_is_told(secure: MemoryCluster, make_client: MakeClient, ca: str) -> None:
    with at_most(60), pytest.raises(AuthError):
        make_client(secure.addresses, **TIMES, tls=ca, user="ann", secret="another-one").put("q", b"x")


# what takes too long, or ends too early

def test_a_server_that_does_not_shake_hands_is_left_in_time(make_client: MakeClient, ca: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, MemoryCluster(1, tls=server_tls()) as cluster:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with at_most(5), pytest.raises(Unavailable, match="not connected within"):
            make_client(address, timeout=0.5, connect_timeout=0.2, tls=ca).put("q", b"x")
        with at_most(5):
            make_client([address, *cluster.addresses], timeout=10, connect_timeout=2, tls=ca).put("q", b"x")


def test_handshake_bytes_that_never_pause_are_left_in_time(make_client: MakeClient, ca: str) -> None:
    def trickle(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc")
            for _ in range(2000):
                connection.sendall(b"x")
                time.sleep(0.005)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=trickle, args=[listener])
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with at_most(4), pytest.raises(Unavailable):
            make_client(address, timeout=0.3, connect_timeout=0.3, tls=ca).put("q", b"x")
        thread.join()


def test_records_that_never_end_are_left_in_time(make_client: MakeClient, ca: str) -> None:
    """Bytes come all the time, and never one that could be read."""
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        raw = socket.socket(fileno=os.dup(connection.fileno()))
        with raw:
            raw.sendall(b"\x17\x03\x03\x40\x00")
            for _ in range(2000):
                raw.sendall(b"x")
                time.sleep(0.005)

    with ScriptedServer(answer, server_tls()) as server, at_most(30), pytest.raises(OutcomeUnknown):
        make_client(server.address, timeout=3, server_timeout=2, tls=ca).put("q", b"x")


def test_a_body_that_never_ends_is_left_in_time(make_client: MakeClient, ca: str) -> None:
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        connection.sendall(b"200 OK q 7 0 4000000000\r\n")
        while True:
            connection.sendall(b"x" * 1000)
            time.sleep(0.005)

    with ScriptedServer(answer, server_tls()) as server, at_most(30), pytest.raises(OutcomeUnknown):
        make_client(server.address, timeout=3, server_timeout=2, tls=ca).get("q")


def test_a_connection_that_is_cut_is_no_orderly_end(make_client: MakeClient, ca: str) -> None:
    """Anybody on the way can cut it. That no job was handed out is certain only when the server itself has ended it."""
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        stream.read()
        socket.socket.shutdown(connection, socket.SHUT_RDWR)

    with ScriptedServer(answer, server_tls()) as server, at_most(5), pytest.raises(OutcomeUnknown):
        make_client(server.address, timeout=30, sessions=False, tls=ca).get("q", block=True, wait=0.1)


def test_an_answer_may_come_behind_the_half_closing(make_client: MakeClient, ca: str) -> None:
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        if stream.read() == b"":
            connection.sendall(JOB)

    with ScriptedServer(answer, server_tls()) as server, at_most(5):
        job = make_client(server.address, timeout=30, sessions=False, tls=ca).get("q", block=True, wait=0.1)
    assert job is not None


def test_half_a_command_over_tls_is_not_executed_and_not_unknown(make_client: MakeClient, ca: str) -> None:
    with MemoryCluster(1, tls=server_tls()) as cluster:
        client = make_client(cluster.addresses, timeout=30, server_timeout=0.5, sessions=False, tls=ca)
        cluster.servers[0].script.reset_after_line = True
        with pytest.raises(Unavailable):
            client.put("q", bytes(20_000_000), timeout=0.5)
        with pytest.raises(Unavailable):
            client.put_many("q", [bytes(20_000_000)], timeout=0.5)


def test_a_forked_process_leaves_the_connections_of_its_parent_alone(secure: MemoryCluster, ca: str) -> None:
    with Client(secure.addresses, timeout=30, tls=ca, user="ann", secret=SECRET) as client:
        client.put("q", b"parent")
        accepted = [server.accepted for server in secure.servers]
        child = os.fork()
        if child == 0:
            try:
                client.put("q", b"child")
                client.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        now = [server.accepted for server in secure.servers]
        client.put("q", b"parent")
        assert [server.accepted for server in secure.servers] == now != accepted
    assert secure.bodies("q") == [b"parent", b"child", b"parent"]


def test_a_farewell_arrives(secure: MemoryCluster, ann: Client) -> None:
    ann.put("q", b"x")
    ann.close()
    until(lambda: "SESSION CLOSE RELEASE" in secure.servers[0].received)


def test_tasks_shake_hands_in_groups(ca: str) -> None:
    """Otherwise a thousand at once would all take longer than the time that one may take."""
    async def main() -> int:
        accepted = 0

        def count(_: Any, writer: asyncio.StreamWriter) -> None:
            nonlocal accepted
            accepted += 1
            writers.append(writer)

        writers: list[asyncio.StreamWriter] = []
        server = await asyncio.start_server(count, "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = aio.Client(address, connect_timeout=10, tls=ca)
        puts = [asyncio.create_task(client.put("q", b"x")) for _ in range(2 * CONNECTING_MAX)]
        while accepted < CONNECTING_MAX:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        found = accepted
        for put in puts:
            put.cancel()
        await asyncio.wait(puts)
        await client.close()
        for writer in writers:
            writer.close()
        server.close()
        return found

    assert asyncio.run(main()) == CONNECTING_MAX


# what is given

@pytest.mark.parametrize("content", [None, b"", b"rubbish"])
def test_a_ca_file_that_is_none_is_found_before_anything_is_sent(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    for kind in (Client, aio.Client, sockpq.survey):
        with pytest.raises(BadArguments, match=f"the CA file {file} cannot be used"):
            kind("127.0.0.1:1", tls=str(file))  # type: ignore[operator]
    with pytest.raises(BadArguments):
        Client("127.0.0.1:1", tls="a\0b")


def test_what_cannot_be_tls_is_a_type_error() -> None:
    for wrong in (False, 1, b"file"):
        with pytest.raises(TypeError):
            Client("127.0.0.1:1", tls=wrong)  # type: ignore[arg-type]
    assert (Access().tls, Access().login) == (None, None)
    assert Access(True).tls is not None


def test_a_host_no_certificate_can_name_is_no_defect(ca: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        network = ThreadNetwork(Access(ca))
        create = socket.create_connection
        monkeypatch.setattr(socket, "create_connection", lambda _, timeout: create(listener.getsockname(), timeout))
        with pytest.raises(retry.Lost):
            run(Connection.open(network, Address(".dot", 1), 1, Identity().use))
