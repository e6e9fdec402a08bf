"""The real server on a real loop and sockets, in front of the fake cluster."""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from sockpqd.connections import ACCEPTS_PER_TURN, RESERVED_SLOTS
from sockpqd.gateway.limits import LINGER_S, MIB, Limits
from tests.gateway.helpers.fake_cluster import returned
from tests.gateway.helpers.parsing import without_reasons
from tests.gateway.helpers.sockets import PATIENCE_S, Client, Gateway


def with_server(test: Callable[[Gateway], Awaitable[None]], limits: Limits | None = None) -> None:
    async def run() -> None:
        gateway = Gateway(limits)
        await gateway.start()
        try:
            await test(gateway)
        finally:
            await gateway.close()
    uvloop.run(run())


def test_what_came_before_the_end_of_input_is_answered() -> None:
    async def test(gateway: Gateway) -> None:
        assert await gateway.talk(b"PUT q 0 3\r\nabcGET q\r\nDONE 1\r\nGETB q\r\nPING\r\n") == (
            b"200 OK\r\n200 OK q 1 0 3\r\nabc200 OK FINQ\r\n"
        )
        assert await gateway.talk(b"") == b""
        assert await gateway.talk(b"PUT q 0 3\r\nab") == b""
        assert await gateway.talk(b"TOTAL\r\n") == b"200 OK 0 0 0 0\r\n"
        await gateway.until(lambda: not gateway.hub.connections)
    with_server(test)


def test_a_large_body_goes_through() -> None:
    async def test(gateway: Gateway) -> None:
        body = bytes(range(256)) * (8 * MIB // 256)
        client = await gateway.connect()
        client.send(b"PUT q 0 %d\r\n" % len(body) + body + b"GET q\r\n")
        assert await client.line() == b"200 OK\r\n"
        assert await client.line() == b"200 OK q 1 0 %d\r\n" % len(body)
        assert await client.exactly(len(body)) == body
    with_server(test)


def test_an_answer_that_closes_arrives_although_the_client_still_sends() -> None:
    async def test(gateway: Gateway) -> None:
        client = await gateway.connect()
        client.send(b"PUT q 0 x\r\n" + bytes(3 * MIB))
        assert await client.line() == b"400 Bad Arguments: the length must be a number, not 'x'\r\n"
        assert await client.rest() == b""
    with_server(test)


def test_a_client_that_does_not_close_is_closed_after_a_second() -> None:
    async def test(gateway: Gateway) -> None:
        client = await gateway.connect()
        start = asyncio.get_running_loop().time()
        client.send(b"QUIT\r\n")
        assert await client.line() == b"221 Goodbye\r\n"
        assert len(gateway.hub.connections) == 1
        await gateway.until(lambda: not gateway.hub.connections)
        assert asyncio.get_running_loop().time() - start > LINGER_S * 0.9
    with_server(test)


def test_a_disconnect_in_the_middle_of_a_body_changes_nothing() -> None:
    async def test(gateway: Gateway) -> None:
        for end in (Client.reset, lambda client: client.writer.close()):
            client = await gateway.connect()
            client.send(b"PUT q 0 1000000\r\n" + bytes(500_000))
            await asyncio.sleep(0.05)
            end(client)
            await gateway.until(lambda: not gateway.hub.connections)
        assert await gateway.talk(b"TOTAL\r\n") == b"200 OK 0 0 0 0\r\n"
    with_server(test)


def test_a_reader_that_takes_nothing_is_cut() -> None:
    async def test(gateway: Gateway) -> None:
        count = 40
        for _ in range(count):
            assert await gateway.talk(b"PUT q 0 %d\r\n" % MIB + bytes(MIB)) == b"200 OK\r\n"
        slow = await gateway.connect(receive_buffer=4096)
        slow.writer.transport.pause_reading()       # type: ignore[attr-defined]
        slow.send(b"GET q\r\n" * count)
        await gateway.until(lambda: not gateway.hub.connections)
        await gateway.until(lambda: gateway.cluster.machine.ready("q") > 0)
        assert returned(gateway.cluster)            # what could not be handed to the socket went back
        assert await gateway.talk(b"PING\r\n") == b"200 OK\r\n"
    with_server(test, Limits(data_bytes_max=MIB, output_bytes_max=2 * MIB))


def test_connections_over_the_limit_are_refused_and_the_next_is_served() -> None:
    async def test(gateway: Gateway) -> None:
        clients = [await gateway.connect() for _ in range(2 + RESERVED_SLOTS)]      # this machine has further ones
        for client in clients:
            client.send(b"PING\r\n")
            assert await client.line() == b"200 OK\r\n"
        refused = await gateway.connect()
        assert await refused.rest() == b"503 Busy\r\n"
        clients[0].writer.close()
        await gateway.until(lambda: len(gateway.hub.connections) == 1 + RESERVED_SLOTS)
        assert await gateway.talk(b"PING\r\n") == b"200 OK\r\n"
    with_server(test, Limits(connections_max=2))


def test_who_gets_no_place_hears_so_although_it_sends_much() -> None:
    async def test(gateway: Gateway) -> None:
        gateway.hub.slots.connections_max = -RESERVED_SLOTS
        for _ in range(20):
            client = await gateway.connect()
            client.send(b"PUT q 0 3000000\r\n" + bytes(3 * MIB))
            assert await client.line() == b"503 Busy\r\n"
            assert await client.rest() == b""
        await gateway.until(lambda: not gateway.hub.refused)
        assert gateway.hub.tally.refused_connections == 20
        assert not gateway.hub.connections
    with_server(test)


def test_few_are_accepted_in_each_round_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(gateway: Gateway) -> None:
        rounds: list[int] = []
        accepted = 0
        loop = asyncio.get_running_loop()

        def count() -> None:
            rounds.append(gateway.hub.tally.connections - sum(rounds))
            if sum(rounds) < accepted:
                loop.call_soon(count)
        sockets = []
        host, port = gateway.address
        for _ in range(200):                        # the kernel completes them; nobody accepts meanwhile
            sockets.append(socket.create_connection((host, port)))
        accepted = 200
        loop.call_soon(count)
        await gateway.until(lambda: sum(rounds) == accepted)
        assert max(rounds) <= 2 * ACCEPTS_PER_TURN
        for connection in sockets:
            connection.close()
    with_server(test)


def test_without_descriptors_it_is_tried_again_and_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = 0
    exhausted_until = time.monotonic() + 0.5
    real = socket.socket.accept

    def accept(self: socket.socket) -> object:
        nonlocal attempts
        if time.monotonic() < exhausted_until:
            attempts += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return real(self)
    monkeypatch.setattr("sockpqd.connections.accepting.EXHAUSTED_S", 0.1)
    monkeypatch.setattr(socket.socket, "accept", accept)

    async def test(gateway: Gateway) -> None:
        assert await gateway.talk(b"PING\r\n") == b"200 OK\r\n"
        assert 0 < attempts < 10
    with_server(test)


def test_a_waiter_that_vanished_gets_no_job() -> None:
    async def test(gateway: Gateway) -> None:
        for end in (Client.reset, lambda client: client.writer.close()):
            client = await gateway.connect()
            client.send(b"GETB q\r\n")
            await gateway.until(lambda: len(gateway.hub.job_waiters) == 1)
            end(client)
            await gateway.until(lambda: len(gateway.hub.job_waiters) == 0)
        assert await gateway.talk(b"PUT q 0 1\r\nxTOTAL q\r\n") == b"200 OK\r\n200 OK 1 1 1 0\r\n"
    with_server(test)


def test_a_job_handed_out_to_a_client_that_vanished_meanwhile_returns() -> None:
    async def test(gateway: Gateway) -> None:
        gateway.cluster.automatic = False
        client = await gateway.connect()
        client.send(b"PUT q 0 1\r\nxGET q\r\n")
        await gateway.until(lambda: len(gateway.cluster.in_flight) == 2)
        client.reset()
        await gateway.until(lambda: not gateway.hub.connections)
        gateway.cluster.commit()
        await asyncio.sleep(0)
        gateway.cluster.commit()
        assert returned(gateway.cluster) == [1]
        assert gateway.cluster.machine.ready("q") == 1
    with_server(test)


def test_an_unknown_outcome_closes_without_an_answer() -> None:
    async def test(gateway: Gateway) -> None:
        gateway.cluster.automatic = False
        client = await gateway.connect()
        client.send(b"PING\r\nPUT q 0 1\r\nxPING\r\n")
        assert await client.line() == b"200 OK\r\n"
        await gateway.until(lambda: len(gateway.cluster.in_flight) == 1)
        gateway.cluster.lose()
        assert await client.rest() == b""
    with_server(test)


def test_all_who_wait_hear_at_once_that_this_node_serves_no_more() -> None:
    async def test(gateway: Gateway) -> None:
        clients = [await gateway.connect() for _ in range(50)]
        for client in clients:
            client.send(b"GETB q\r\n")
        await gateway.until(lambda: len(gateway.hub.job_waiters) == 50)
        gateway.cluster.follow(None)
        for client in clients:
            assert await client.line() == b"500 Offline Mode\r\n"
    with_server(test)


def test_a_flood_of_pipelined_commands_is_answered_and_others_are_served_meanwhile() -> None:
    async def test(gateway: Gateway) -> None:
        count = 30_000
        flood, other = await gateway.connect(), await gateway.connect()
        flood.send(b"PING\r\nDONE 1\r\n" * count)
        other.send(b"PING\r\n")
        assert await other.line() == b"200 OK\r\n"
        expected = b"200 OK\r\n404 Job Not Found\r\n"
        assert await flood.exactly(len(expected) * count) == expected * count
    with_server(test)


def test_garbage_is_answered_in_an_orderly_way_and_the_next_client_is_served() -> None:
    async def test(gateway: Gateway) -> None:
        garbage = bytes(range(256)) * 4096
        answers = without_reasons(await gateway.talk(garbage)).split(b"\r\n")
        assert set(answers) <= {b"400 Bad Command", b"400 Bad Arguments", b""}
        assert await gateway.talk(b"x" * MIB) == b"400 Bad Command\r\n"
        assert await gateway.talk(b"TOTAL\r\n") == b"200 OK 0 0 0 0\r\n"
    with_server(test)


def test_closing_waits_no_longer_than_for_the_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.gateway.server.server.LINGER_S", PATIENCE_S * 2)

    async def test(gateway: Gateway) -> None:
        client = await gateway.connect()
        client.send(b"PING\r\n")
        assert await client.line() == b"200 OK\r\n"
        closing = asyncio.create_task(gateway.server.close())
        assert await client.rest() == b""
        client.writer.close()
        await closing
    with_server(test)


def test_closing_answers_what_is_decided_and_ends_all_connections() -> None:
    async def test(gateway: Gateway) -> None:
        quiet, stuck = await gateway.connect(), await gateway.connect(receive_buffer=4096)
        quiet.send(b"PING\r\n")
        assert await quiet.line() == b"200 OK\r\n"
        stuck.writer.transport.pause_reading()      # type: ignore[attr-defined]
        stuck.send(b"PUT q 0 8000000\r\n" + bytes(8_000_000) + b"GET q\r\n")
        await gateway.until(lambda: gateway.cluster.machine.total(None).running == 1)
        await gateway.server.close()
        assert await quiet.rest() == b""
        assert not gateway.hub.connections
    with_server(test)
