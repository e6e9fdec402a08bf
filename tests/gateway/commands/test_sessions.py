"""Commands in a session: proposed as requests, repeated, kept for their session; and how long a session is used."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from sockpqd.core import CloneChunk, Done, Get, OpenSession, Operation, Put, Request, TouchSession
from sockpqd.gateway.commands import sessions
from sockpqd.gateway.limits import CLONE_CHUNK_BYTES_MAX, MIB, Limits
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.request_id import DIGEST_BYTES
from sockpqd.gateway.server.hub import Hub
from tests.gateway.helpers.fake_cluster import FakeCluster, returned
from tests.gateway.helpers.memory import MemoryGateway, attached, with_gateway
from tests.gateway.helpers.parsing import parser_of

SID = b"1_9f3c5a7e11d0c2b4"     # the first session of a MemoryGateway
AGAIN = b"SESSION " + SID + b"\r\n"


def requests_of(operations: list[Operation]) -> list[tuple[int, int, Operation]]:
    """Return number, part and operation of each, which must all be requests."""
    result = []
    for operation in operations:
        assert isinstance(operation, Request)
        result.append((operation.number, operation.part, operation.operation))
    return result


# ---- what is proposed

@pytest.mark.parametrize("line", [b"SESSION", b"SESSION " + SID, b"SESSION KEEP " + SID, b"SESSION CLOSE", b"TAKEN"])
def test_commands_on_sessions_wait_for_their_turns_like_all_others_of_their_client(line: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        clients, propose_for = [], gateway.cluster.propose_for

        def spy(client: object, *arguments: Any) -> bool:
            clients.append(client)
            return propose_for(client, *arguments)

        gateway.cluster.propose_for = spy       # type: ignore[method-assign]
        client.send(line + b"\r\nPUT q 0 1\r\nx")
        await gateway.settle()
        assert len(clients) == 2
        assert clients[0] is clients[1]
    with_gateway(test, automatic=True)


def test_numbered_commands_in_a_row_are_proposed_at_once_and_in_order() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        client.send(b"REQ 1 PUT q 0 1\r\naREQ 2 DONE 7\r\nGET q\r\nREQ 3 PUT w 0 0 NEW WAIT w\r\nREQ 4 DONE 8\r\n")
        *pipeline, get, put, wait = gateway.cluster.in_flight
        assert requests_of(pipeline) == [(1, 0, Put("q", 0, b"a")), (2, 0, Done(7))]
        assert get == Get(("q",))
        assert requests_of([put, wait]) == [
            (3, 0, Put("w", 0, b"", None, True)), (3, 1, Get(("w",), item_of_put=True)),
        ]
    with_gateway(test, automatic=False)


def test_only_blocked_commands_go_on_waiting() -> None:
    async def test(gateway: MemoryGateway) -> None:
        waiting = {}
        for command in (b"GET q", b"GETB q WITHIN 0", b"GETBE q", b"PUT w 0 0 IS it WAIT w"):
            client = await attached(gateway)
            client.send(b"REQ 1 " + command + b"\r\n")
            request = gateway.cluster.in_flight[-1]
            assert isinstance(request, Request)
            waiting[command.split()[0]] = request.keep_waiting, request.until_finished
            gateway.cluster.refuse()
        assert waiting == {
            b"GET": (False, False), b"GETB": (True, False), b"GETBE": (True, True), b"PUT": (True, False),
        }
    with_gateway(test, automatic=False)


def parsed(data: bytes) -> Command:
    parser = parser_of()
    parser.feed(data)
    command = parser.next()
    assert command is not None
    assert command.number > 0
    return command


def test_the_digest_tells_commands_apart() -> None:
    commands = [
        b"GET q\r\n", b"GETB q\r\n", b"GETBE q\r\n", b"GET q EXPIRE 5\r\n", b"GET q BOUND\r\n", b"GET\r\n",
        b"DONE 1\r\n", b"DONE 2\r\n", b"LATER 1\r\n", b"PUT q 0 1\r\nx", b"PUT q 0 1\r\ny", b"PUT q 0 1 NEW\r\nx",
        b"PUT q 1 1\r\nx", b"PUT q 0 1 NEW WAIT o\r\nx", b"CLONE 5\r\n", b"CLONE 6\r\n",
    ]
    digests = {parsed(b"REQ 1 " + command).digest for command in commands}
    assert len(digests) == len(commands)
    assert {len(digest) for digest in digests if isinstance(digest, bytes)} == {DIGEST_BYTES}


@pytest.mark.parametrize("same", [
    b"REQ 1 PUT q 0 3 NEW\r\nabc", b"REQ 1 PUT q 0 3 NEW\nabc", b"REQ 0001 put  q\t0 3 NEW \r\nabc",
    b"req 2 PUT q 0 3 NEW\r\nabc",
])
def test_the_digest_is_that_of_the_words_and_the_data(same: bytes) -> None:
    assert parsed(same).digest == bytes.fromhex("c0fa34b804531b9eef78bcab40f2cef4")


def test_sessions_cannot_be_guessed(tmp_path: Path) -> None:
    async def run() -> None:
        hubs = [Hub(Limits(), tmp_path, offline_close=True, shut_down=lambda reason: None) for _ in range(2)]
        secrets = {hub.new_secret() for hub in hubs for _ in range(1000)}
        assert len(secrets) == 2000
        assert max(secrets) >> 60
        assert max(secrets) < 2**64
    asyncio.run(run())


# ---- what cannot be delivered

def test_what_was_handed_to_a_request_is_not_given_back() -> None:
    async def test(gateway: MemoryGateway) -> None:
        producer = gateway.connect()
        for command in (b"GET q", b"GETB q", b"PUT w 0 1 IS it WAIT q\r\nx"):
            producer.send(b"PUT q 0 1 IS it\r\nx")
            gateway.cluster.commit()
            client = await attached(gateway)
            client.send(b"REQ 1 " + command + b"\r\n")
            client.vanish()
            while gateway.cluster.in_flight:
                gateway.cluster.commit()
                await gateway.settle()
        assert [job.queue for job in gateway.cluster.machine.running()] == ["q", "q", "q"]
        assert returned(gateway.cluster) == []
    with_gateway(test, automatic=False)


def test_a_reader_that_is_too_slow_gets_the_rest_of_its_jobs_when_it_comes_back() -> None:
    async def test(gateway: MemoryGateway) -> None:
        producer = gateway.connect()
        producer.send((b"PUT q 0 100000\r\n" + bytes(100_000)) * 30)
        gateway.cluster.commit()
        client = await attached(gateway)
        client.transport.stuck = True
        gets = b"".join(b"REQ %d GET q EXPIRE 60\r\n" % number for number in range(1, 31))
        client.send(gets)
        for _ in range(30):
            gateway.cluster.commit(1)
        assert client.transport.aborted
        await gateway.settle()
        assert gateway.cluster.in_flight == []
        again = await attached(gateway, AGAIN)
        again.send(gets)
        gateway.cluster.commit()
        received = again.take()
        assert [b"200 OK q %d " % number in received for number in range(1, 31)] == [True] * 30
        assert len(gateway.cluster.machine.running()) == 30
    with_gateway(test, Limits(data_bytes_max=100_000, output_bytes_max=MIB), automatic=False)


def test_a_large_answer_that_is_asked_for_many_times_is_not_made_as_often_at_once() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.talk(b"PUT q 0 %d\r\n" % MIB + bytes(MIB))
        client = await attached(gateway)
        client.transport.stuck = True
        tracemalloc.start()
        client.send(b"REQ 1 GET q\r\n" * 100)
        await gateway.settle()
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
        assert client.transport.aborted
        tracemalloc.stop()
    with_gateway(test, Limits(data_bytes_max=MIB, output_bytes_max=4 * MIB))


def test_answers_behind_an_unknown_outcome_are_had_again() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        words = b"REQ 1 PUT q 0 1\r\nxREQ 2 PUT q 0 1 NEW\r\nyREQ 3 GET q\r\n"
        client.send(words)
        (_, first), *rest = gateway.cluster._in_flight
        gateway.cluster._in_flight = rest
        gateway.cluster.commit()
        first.unknown()
        await gateway.settle()
        assert client.take() == b"504 Outcome Unknown\r\n"
        assert client.closed
        again = await attached(gateway, AGAIN)
        again.send(words)
        gateway.cluster.commit()
        assert again.take() == b"200 OK\r\n200 OK IS i1\r\n200 OK q 1 0 1 IS i1\r\ny"
        assert gateway.cluster.machine.ready("q") == 1
        assert returned(gateway.cluster) == []
    with_gateway(test, automatic=False)


# ---- how long a session is used

async def ends(gateway: MemoryGateway, command: bytes) -> bool:
    """Return whether a session of two seconds ends in two and a half while this command waits in it."""
    client = await attached(gateway, b"SESSION TTL 2\r\n")
    client.send(command)
    await gateway.settle()
    client.take()
    for _ in range(5):
        before = len(gateway.cluster.log)
        for _ in range(10):
            await asyncio.sleep(0.002)
            if len(gateway.cluster.log) > before:
                break
        gateway.cluster.pass_time(0.5)
    watch = gateway.connect()
    watch.send(AGAIN)
    await gateway.settle()
    return watch.take() == b"404 Session Not Found\r\n"


@pytest.mark.parametrize(("command", "over"), [
    (b"REQ 1 GETB q\r\n", False),
    (b"REQ 1 GETBE busy\r\n", False),
    (b"REQ 1 PUT w 0 0 NEW WAIT o\r\n", False),
    (b"GETB q BOUND\r\n", False),
    (b"GETB q\r\n", True),                          # not in its name
    (b"PUT w 0 0 NEW WAIT o\r\n", True),
    (b"REQ 1 GET q\r\n", True),                     # does not wait
])
def test_a_command_that_waits_in_a_session_uses_it(
    command: bytes, over: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.talk(b"PUT busy 0 1\r\nxGET busy\r\n")
        assert await ends(gateway, command) == over
    monkeypatch.setattr(sessions, "SESSION_USES_PER_TTL", 1000)     # each 2 ms
    with_gateway(test)


def test_nothing_is_asked_again_when_nobody_waits_in_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway, b"SESSION TTL 1\r\n")
        client.send(b"REQ 1 GETB q\r\n")
        await gateway.settle()
        client.send(b"PUT q 0 1\r\nx")
        gateway.connect().send(b"PUT q 0 1\r\nx")
        await gateway.settle()
        assert client.take() == b"200 OK q 1 0 1\r\nx200 OK\r\n"
        client.send(b"REQ 2 GETB r\r\n")
        other = await attached(gateway, b"SESSION TTL 1\r\n")
        other.send(b"GETB r\r\n")
        await gateway.settle()
        client.vanish()
        await gateway.settle()
        entries = len(gateway.cluster.log)
        await asyncio.sleep(0.02)
        assert len(gateway.cluster.log) == entries
    monkeypatch.setattr(sessions, "SESSION_USES_PER_TTL", 1000)
    with_gateway(test)


def test_a_place_in_the_line_is_kept_over_asking_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(gateway: MemoryGateway) -> None:
        first = await attached(gateway, b"SESSION TTL 1\r\n")
        first.send(b"REQ 1 GETB q\r\n")
        second = gateway.connect()
        second.send(b"GETB q\r\n")
        await gateway.settle()
        asked = len(gateway.cluster.operations(Request))
        while len(gateway.cluster.operations(Request)) < asked + 3:
            await asyncio.sleep(0.001)
        # It has no place while it asks, so it asks no more.
        monkeypatch.setattr(sessions.Attached, "_rest", lambda attached: None)
        await asyncio.sleep(0.005)          # behind the timer that is still running
        await gateway.settle()
        await gateway.talk(b"PUT q 0 1\r\nx")
        assert first.take() == b"200 OK q 1 0 1\r\nx"
        assert second.take() == b""
    monkeypatch.setattr(sessions, "SESSION_USES_PER_TTL", 1000)
    with_gateway(test)


@pytest.mark.parametrize("crowded", [True, False])
def test_a_blocked_command_uses_its_session_more_often_when_its_owner_may_lose_it(
    crowded: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        client.send(b"REQ 1 GETB q\r\n")
        await gateway.settle()
        asked = len(gateway.cluster.operations(Request))
        if not crowded:
            await asyncio.sleep(0.02)
            assert len(gateway.cluster.operations(Request)) == asked
            return
        opener = gateway.connect()
        for opened in range(4, 81, 4):      # half of all that there may be, each time that the worker was looked after
            gateway.cluster.pass_time(1)
            asked = len(gateway.cluster.operations(Request))
            opener.send(b"SESSION\r\n" * 4)
            while len(gateway.cluster.operations(OpenSession)) < opened + 1:
                await asyncio.sleep(0)
            if opened == 4:     # as many are free: whether that is a danger depends on how many were new at one look
                continue
            async with asyncio.timeout(30):
                while len(gateway.cluster.operations(Request)) == asked:
                    await asyncio.sleep(0.001)
        assert gateway.cluster.machine.session_count == 9
        await gateway.talk(b"PUT q 0 1\r\nx")
        assert client.take() == b"200 OK q 1 0 1\r\nx"
    monkeypatch.setattr(sessions, "SESSION_LOOK_S", 0.002)
    with_gateway(test, Limits(sessions_per_owner_max=9))


def test_ping_is_an_entry_only_in_a_session() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        gateway.connect().send(b"PING\r\n")
        assert gateway.cluster.in_flight == []
        client.send(b"PING\r\nPING\r\n")
        assert gateway.cluster.in_flight == [TouchSession(1), TouchSession(1)]
        gateway.cluster.commit()
        assert client.take() == b"200 OK\r\n" * 2
    with_gateway(test, automatic=False)


# ---- no room

def test_too_many_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        client.send(b"SESSION\r\nREQ 1 GET q\r\n")
        await gateway.settle()
        assert client.take() == b"503 Busy\r\n404 Session Not Found\r\n"
        client.send(AGAIN + b"SESSION CLOSE\r\n")
        await gateway.settle()
        assert client.take() == b"200 OK SESSION %s TTL 900 LAST 0\r\n200 OK\r\n" % SID
        await attached(gateway)
    monkeypatch.setattr("sockpqd.core.limits.SESSIONS_MAX", 1)
    with_gateway(test)


def test_without_room_a_numbered_job_is_refused_and_may_come_again_later() -> None:
    async def test(gateway: MemoryGateway) -> None:
        words = b"REQ 1 PUT q 0 3\r\nabcREQ 2 PUT q 0 3 NEW WAIT o\r\ndef"
        client = await attached(gateway)
        gateway.cluster.full = True
        client.send(words + b"REQ 3 GET q\r\n")
        await gateway.settle()
        assert client.take() == b"503 Busy\r\n503 Busy\r\n404 Queue Empty\r\n"
        gateway.cluster.full = False
        client.send(words)
        await gateway.settle()
        assert client.take() == b"200 OK\r\n206 Wait for output IS i1\r\n"
    with_gateway(test)


# ---- CLONE

def test_a_clone_is_executed_once(tmp_path: Path) -> None:
    async def test(gateway: MemoryGateway) -> None:
        source = FakeCluster()
        source.lead()
        source._apply([Put("q", 0, bytes(3 * CLONE_CHUNK_BYTES_MAX))])
        snapshot = b"".join(source.machine.snapshot())
        source._apply([Done(1)])
        other = b"".join(source.machine.snapshot())
        assert len(other) == len(snapshot)
        clone = b"REQ 1 CLONE %d\r\n" % len(snapshot)
        client = await attached(gateway)
        client.send(clone + snapshot + b"TOTAL\r\nPUT q 0 1\r\nx")
        await gateway.settle()
        assert client.take() == b"200 OK\r\n200 OK 1 1 1 0\r\n200 OK\r\n"
        client.vanish()
        again = await attached(gateway, AGAIN)
        again.send(clone + snapshot + b"TOTAL\r\n")
        await gateway.settle()
        assert again.take() == b"200 OK\r\n200 OK 1 1 2 0\r\n"
        again.send(clone + other + b"TOTAL\r\n")
        await gateway.settle()
        assert again.take() == b"409 Request Mismatch\r\n200 OK 1 1 2 0\r\n"
        again.send(b"SESSION CLOSE\r\n" + AGAIN + b"REQ 2 CLONE %d\r\n" % len(snapshot) + snapshot + b"TOTAL\r\n")
        await gateway.settle()
        assert again.take().endswith(b"404 Session Not Found\r\n200 OK 1 1 2 0\r\n")
        assert not any(chunk.last for chunk in gateway.cluster.operations(CloneChunk))
        assert len(gateway.cluster.operations(CloneChunk)) == 3 * (1 + 4)
    with_gateway(test, folder=tmp_path)


def test_a_clone_in_a_session_that_ends_meanwhile_changes_nothing(tmp_path: Path) -> None:
    async def test(gateway: MemoryGateway) -> None:
        snapshot = b"".join(gateway.cluster.machine.snapshot())
        client = await attached(gateway)
        client.send(b"REQ 1 CLONE %d\r\n" % len(snapshot) + snapshot[:-1])
        await gateway.settle()
        await gateway.talk(b"PUT q 0 1\r\nx" + AGAIN + b"SESSION CLOSE\r\n")
        client.send(snapshot[-1:])
        await gateway.settle()
        assert client.take() == b"404 Session Not Found\r\n"
        assert gateway.cluster.machine.ready("q") == 1
    with_gateway(test, folder=tmp_path)


def test_a_broken_clone_may_be_repeated() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        client.send(b"REQ 1 CLONE 5\r\nabcdeREQ 1 CLONE 5\r\nabcdePING\r\n")
        await gateway.settle()
        assert client.take() == b"500 Invalid Snapshot\r\n500 Invalid Snapshot\r\n200 OK\r\n"
    with_gateway(test)
