"""Conversations in memory: order, delays, back pressure, and memory that is freed."""

from __future__ import annotations

import asyncio
import gc
import weakref
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sockpqd.cluster.api import BACKLOG_BYTES_MAX
from sockpqd.core import AnyJob, CloneChunk, Done, Get, Handed, PageLost, Put, body_of
from sockpqd.gateway.commands import streams
from sockpqd.gateway.limits import (
    COMMANDS_IN_FLIGHT_MAX,
    COMMANDS_PER_SLICE,
    COMMANDS_PER_TURN_MAX,
    EXPORTED_MAX,
    EXPORTS_MAX,
    LARGE_BODY_BYTES,
    LINES_PER_PIECE,
    MIB,
    Limits,
)
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.waiting.slots import IGNORED
from tests.gateway.helpers.fake_cluster import returned
from tests.gateway.helpers.memory import MemoryGateway, with_gateway
from tests.gateway.helpers.streams import STREAMS

SMALL = Limits(data_bytes_max=40, line_bytes_max=80, snapshot_bytes_max=200, output_bytes_max=1000)


def answers(pieces: list[bytes], folder: Path) -> bytes:
    result = b""

    async def talk(gateway: MemoryGateway) -> None:
        nonlocal result
        client = gateway.connect()
        for piece in pieces:
            client.send(piece)
            await gateway.settle()
        client.end()
        await gateway.settle()
        result = client.take()
        assert client.closed

    with_gateway(talk, SMALL, folder=folder)
    return result


@given(stream=STREAMS, size=st.integers(1, 30))
@settings(max_examples=100, deadline=None)
def test_any_cut_of_the_stream_gives_the_same_answers(
    stream: bytes, size: int, tmp_path_factory: pytest.TempPathFactory,
) -> None:
    # CLUSTER STATUS shows the index of the log and SNAPSHOT contains it, which depends on what came together.
    stream = stream.replace(b"CLUSTER", b"PING").replace(b"SNAPSHOT", b"TOTAL")
    folder = tmp_path_factory.getbasetemp()
    pieces = [stream[at:at + size] for at in range(0, len(stream), size)]
    assert answers(pieces, folder) == answers([stream], folder)


def test_consecutive_operations_are_proposed_at_once_and_in_order() -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.connect().send(b"PUT q 0 1\r\naDONE 7\r\nGET q\r\nPING\r\nGETB q WITHIN 0\r\nDONE 8\r\n")
        assert gateway.cluster.in_flight == [Put("q", 0, b"a"), Done(7), Get(("q",)), Get(("q",))]
    with_gateway(test, automatic=False)


def test_answers_of_one_turn_are_written_once() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT q 0 1\r\na" * 100)
        before = client.transport.writes
        gateway.cluster.commit()
        assert client.take() == b"200 OK\r\n" * 100
        assert client.transport.writes == before + 1
    with_gateway(test, automatic=False)


def test_commands_in_flight_are_limited() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        count = COMMANDS_IN_FLIGHT_MAX + 1000
        client.send(b"DONE 1\r\n" * count)
        await gateway.settle()
        assert len(gateway.cluster.in_flight) == COMMANDS_IN_FLIGHT_MAX
        while gateway.cluster.in_flight:
            gateway.cluster.commit()
            await gateway.settle()
        assert client.take() == b"404 Job Not Found\r\n" * count
    with_gateway(test, automatic=False)


def test_one_turn_executes_a_limited_number_of_commands() -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = [gateway.connect() for _ in range(2 * COMMANDS_PER_TURN_MAX // COMMANDS_PER_SLICE)]
        for client in clients:
            client.send(b"DONE 1\r\n" * (COMMANDS_PER_SLICE * 4))
        assert len(gateway.cluster.in_flight) == COMMANDS_PER_TURN_MAX      # before the first turn ends
        gateway.hub.turn_ended()
        assert len(gateway.cluster.in_flight) == COMMANDS_PER_TURN_MAX * 2
    with_gateway(test, automatic=False)


def test_clients_with_much_to_execute_take_turns_behind_those_with_little() -> None:
    async def test(gateway: MemoryGateway) -> None:
        floods = [gateway.connect() for _ in range(3 * COMMANDS_PER_TURN_MAX // COMMANDS_PER_SLICE)]
        for flood in floods:
            flood.send(b"PING\r\n" * 10_000)
        assert gateway.hub.budget == 0
        other = gateway.connect()
        other.send(b"PING\r\n")
        assert other.take() == b"200 OK\r\n"
        for _ in range(3):
            gateway.hub.turn_ended()
        answered = [flood.take().count(b"\n") for flood in floods]
        assert min(answered) > 0
        assert max(answered) <= 2 * COMMANDS_PER_SLICE
    with_gateway(test)


def test_a_client_with_little_has_the_next_turn_when_what_was_done_for_others_has_used_up_this_one() -> None:
    async def test(gateway: MemoryGateway) -> None:
        floods = [gateway.connect() for _ in range(3 * COMMANDS_PER_TURN_MAX // COMMANDS_PER_SLICE)]
        for flood in floods:
            flood.send(b"PING\r\n" * 10_000)
        gateway.hub.budget = -3 * COMMANDS_PER_TURN_MAX
        other = gateway.connect()
        other.send(b"PING\r\n")
        assert other.take() == b""
        gateway.hub.turn_ended()
        assert other.take() == b"200 OK\r\n"
    with_gateway(test)


def test_a_client_with_little_goes_on_while_the_backlog_of_others_is_too_large() -> None:
    async def test(gateway: MemoryGateway) -> None:
        flood, other = gateway.connect(), gateway.connect()
        gateway.hub.crowded = True
        gateway.cluster.backlog_bytes = BACKLOG_BYTES_MAX + 1
        flood.send(b"PING\r\n" * 10_000)
        other.send(b"PING\r\n")
        assert (flood.take(), other.take()) == (b"", b"200 OK\r\n")
        gateway.cluster.backlog_bytes = 2 * BACKLOG_BYTES_MAX + 1     # there may be very many with little
        other.send(b"PING\r\n")
        assert other.take() == b""
        gateway.cluster.backlog_bytes = 0
        gateway.hub.turn_ended()
        assert other.take() == b"200 OK\r\n"
    with_gateway(test)


def test_a_command_that_costs_several_turns_has_used_up_the_next_ones() -> None:
    async def test(gateway: MemoryGateway) -> None:
        names = b"|".join(b"q%d" % number for number in range(9000))
        for _ in range(20):
            gateway.connect().send(b"GETB %b\r\n" % names)
        other = gateway.connect()
        waiting = [gateway.hub.job_waiters.waiting("q0")]
        for _ in range(20):
            other.send(b"PING\r\n")
            assert other.take() == b"200 OK\r\n"
            gateway.hub.turn_ended()
            waiting.append(gateway.hub.job_waiters.waiting("q0"))
        come = [after - before for before, after in pairwise(waiting)]
        assert max(come) == 1
        assert not any(first and second for first, second in pairwise(come))
        assert waiting[-1] >= 6
    with_gateway(test)


@pytest.mark.parametrize("commands", [
    b"PUTS 10000\r\n" + b"q 0 1\r\nx" * 10_000,
    (b"GET " + b"|".join(b"q%d" % number for number in range(8000)) + b"\r\n") * 20,
    (b"PUTS 100\r\n" + b"q 0 1\r\nx" * 100) * 40,
    b"PUTS 40\r\n" + (b"|".join(b"q%d" % number for number in range(1000)) + b" 0 1\r\nx") * 40,
])
def test_commands_that_are_much_work_are_executed_in_slices(commands: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client, other = gateway.connect(), gateway.connect()
        client.send(commands)
        turns = 0
        while len(gateway.cluster.in_flight) < commands.count(b"GET") + commands.count(b"PUTS"):
            gateway.hub.turn_ended()
            other.send(b"PING\r\n")
            assert other.take() == b"200 OK\r\n"
            turns += 1
            assert turns < 1000
        assert turns >= 3
    with_gateway(test, automatic=False)


def test_a_client_that_had_no_turn_for_too_long_is_told_so_and_nothing_was_executed() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client, waiting = gateway.connect(), gateway.connect()
        client.send(b"PUT q 0 1\r\naDONE 1\r\nPUTS 1\r\nq 0 1\r\na")
        waiting.send(b"GETB q\r\n")
        gateway.cluster.neglect()
        assert client.take() == b"503 Busy\r\n" * 3
        assert not client.closed
        client.send(b"PUT q 0 1 IS i WAIT o\r\na")
        gateway.cluster.neglect()
        assert client.take() == b"503 Busy\r\n"           # one line speaks for both
        client.send(b"PUT q 0 1\r\nb")
        while gateway.cluster.in_flight:                    # who is blocked goes on waiting
            gateway.cluster.commit()
        assert client.take() == b"200 OK\r\n"
        assert waiting.take() == b"200 OK q 1 0 1\r\nb"
        assert gateway.hub.tally.errors[b"503"] == 4
    with_gateway(test, automatic=False)


MANY_PUTS = b"PUTS 10000\r\n" + b"q 0 1\r\nx" * 10_000


def test_a_command_of_several_operations_waits_for_its_turn_too() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(MANY_PUTS)
        while not gateway.cluster.in_flight:
            gateway.hub.turn_ended()
        assert len(gateway.cluster.in_flight) > 1
        gateway.cluster.neglect()
        await gateway.settle()              # the other parts are not proposed any more
        assert client.take() == b"503 Busy\r\n"
        assert not gateway.cluster.in_flight
    with_gateway(test, automatic=False)


def test_a_command_of_several_operations_that_has_begun_is_not_given_up() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(MANY_PUTS)
        while not gateway.cluster.in_flight:
            gateway.hub.turn_ended()
        count = len(gateway.cluster.in_flight)
        begun = gateway.cluster._in_flight.pop(0)
        gateway.cluster.neglect()
        assert client.take() == b""
        assert len(gateway.cluster.in_flight) == count - 1
        gateway.cluster._in_flight.insert(0, begun)
        while gateway.cluster.in_flight:
            gateway.cluster.commit()
            await gateway.settle()
        assert client.take() == b"200 OK 10000\r\n" + b"200 OK\r\n" * 10_000
    with_gateway(test, automatic=False)


def test_a_client_that_pipelines_behind_a_blocked_command_is_not_read_any_more() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client, producer = gateway.connect(), gateway.connect()
        client.send(b"GETB q\r\n")
        await gateway.settle()
        for _ in range(10):
            client.send(b"PING\r\n" * 1000)
        assert client.transport.reading
        client.send(b"PING\r\n" * 10_000)
        assert not client.transport.reading
        producer.send(b"PUT q 0 1\r\nx")
        await gateway.settle()
        await gateway.settle()
        assert client.transport.reading
        assert client.take().count(b"200 OK\r\n") == 20_000
    with_gateway(test, Limits(pipeline_bytes_max=100_000))


def test_nobody_with_much_is_read_while_the_cluster_has_too_much_to_do() -> None:
    async def test(gateway: MemoryGateway) -> None:
        writer, other = gateway.connect(), gateway.connect()
        put = b"PUT q 0 %d\r\n" % (8 * MIB) + bytes(8 * MIB)
        for _ in range(BACKLOG_BYTES_MAX // (8 * MIB)):
            writer.send(put)
            await gateway.settle()          # so much is one turn's
        assert not writer.transport.reading
        other.send(b"PING\r\n" * 50)
        assert not other.transport.reading
        gateway.cluster.commit(1)
        assert not writer.transport.reading
        gateway.cluster.commit()
        await gateway.settle()
        assert writer.transport.reading
        assert other.transport.reading
        assert other.take() == b"200 OK\r\n" * 50
    with_gateway(test, automatic=False)


def test_nothing_more_is_proposed_while_the_cluster_has_too_much_to_do() -> None:
    async def test(gateway: MemoryGateway) -> None:
        writer, other = gateway.connect(), gateway.connect()
        other.send(b"GETB w\r\nDONE 1\r\n")
        put = b"PUT q 0 %d\r\n" % (8 * MIB) + bytes(8 * MIB)
        for _ in range(BACKLOG_BYTES_MAX // (8 * MIB)):
            writer.send(put)
            await gateway.settle()          # so much is one turn's
        other.send(b"DONE 2\r\n" * 10)
        proposed = gateway.cluster.in_flight
        other.send(b"DONE 3\r\n" * 10)
        await gateway.settle()
        assert gateway.cluster.in_flight == proposed
        gateway.cluster.commit()
        await gateway.settle()
        await gateway.settle()
        assert writer.take().count(b"200 OK\r\n") == BACKLOG_BYTES_MAX // (8 * MIB)
    with_gateway(test, automatic=False)


def test_many_that_were_held_up_fill_the_backlog_only_once_when_they_go_on() -> None:
    async def test(gateway: MemoryGateway) -> None:
        hub, cluster = gateway.hub, gateway.cluster
        clients = [gateway.connect() for _ in range(40)]
        hub.crowded = True
        cluster.backlog_bytes = BACKLOG_BYTES_MAX + 1
        for client in clients:
            client.send(b"DONE %b\r\n" % b" ".join(b"%d" % number for number in range(1, 3001)))
        assert not cluster.in_flight
        cluster.backlog_bytes = 0
        hub.turn_ended()
        assert not hub.crowded
        begun = len(cluster.in_flight)
        assert begun < len(clients) // 2        # the others wait for their turns
        cluster.backlog_bytes = BACKLOG_BYTES_MAX       # the next one is too much
        for _ in clients:
            await gateway.settle()
        assert hub.crowded
        assert len(cluster.in_flight) == begun + 1
        while cluster.in_flight:
            cluster.commit()
            await gateway.settle()
        assert all(client.take().startswith(b"200 OK 3000\r\n") for client in clients)
    with_gateway(test, automatic=False)


@pytest.mark.parametrize(("begin", "line", "parts"), [
    (b"", b"TOUCH %b\r\n" % b" ".join(b"%d" % number for number in range(1, 7001)), 2),
    (b"", b"PUTS 4000\r\n" + b"q 0 0\r\n" * 4000, 2),
    (b"QUEUE CREATE q RATE 10 PER 1\r\nPUT q 0 0\r\n", b"GET q\r\n", 1), (b"SESSION\r\n", b"PING\r\n", 1),
])
def test_no_command_is_executed_behind_one_that_fills_the_share(begin: bytes, line: bytes, parts: int) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(begin)
        for _ in range(3):
            await gateway.settle()
            gateway.cluster.commit()
        client.take()
        gateway.cluster.over_share = True
        client.send(line * 3)
        for _ in range(20):
            await gateway.settle()
        assert len(gateway.cluster.in_flight) == parts
    with_gateway(test, automatic=False)


def test_a_client_that_has_its_share_of_the_queue_goes_on_with_each_outcome() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        gateway.cluster.over_share = True
        client.send(b"PUT q 0 1\r\nx" * 3)
        client.send(b"PUT q 0 1\r\nx")
        await gateway.settle()
        assert len(gateway.cluster.in_flight) == 1
        client._connection.resume_writing()         # that there is room for answers is no outcome
        await gateway.settle()
        assert len(gateway.cluster.in_flight) == 1
        gateway.cluster.commit()
        await gateway.settle()
        assert client.take() == b"200 OK\r\n"
        assert len(gateway.cluster.in_flight) == 1
        gateway.cluster.over_share = False
        gateway.cluster.commit()
        await gateway.settle()
        assert len(gateway.cluster.in_flight) == 2
        gateway.cluster.commit()
        await gateway.settle()
        assert client.take() == b"200 OK\r\n" * 3
    with_gateway(test, automatic=False)


def test_what_a_client_has_waiting_for_a_turn_goes_with_it() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"GETB w\r\nDONE 1\r\n")
        client.vanish()
        await gateway.settle()
        assert gateway.cluster.withdrawn == 1
        gateway.cluster.neglect()
        await gateway.settle()
        assert not gateway.cluster.in_flight
    with_gateway(test, automatic=False)


def test_a_client_that_takes_nothing_is_not_served_further() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.transport.stuck = True
        client.send(b"PUT q 0 400000\r\n" + bytes(400_000) + b"GET q\r\n")
        await gateway.settle()
        client.send(b"PUT q 0 1\r\nx")
        await gateway.settle()
        assert gateway.cluster.machine.ready("q") == 0
        client.take()
        await gateway.settle()
        assert gateway.cluster.machine.ready("q") == 1
        assert client.take() == b"200 OK\r\n"
    with_gateway(test)


def test_a_reader_that_is_too_slow_is_cut_and_its_undelivered_jobs_return() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client, producer = gateway.connect(), gateway.connect()
        producer.send((b"PUT q 0 100000\r\n" + bytes(100_000)) * 30)
        gateway.cluster.commit()
        client.transport.stuck = True
        for _ in range(30):
            client.send(b"GET q\r\n")
        for _ in range(30):
            gateway.cluster.commit(1)
        assert client.transport.aborted
        while gateway.cluster.in_flight:
            gateway.cluster.commit()
            await gateway.settle()
        delivered = 30 - len(returned(gateway.cluster))
        assert 10 <= delivered < 20         # as many as output_bytes_max allows
        assert gateway.cluster.machine.ready("q") == 30 - delivered
    with_gateway(test, Limits(data_bytes_max=100_000, output_bytes_max=MIB), automatic=False)


def test_the_fate_of_commands_reaches_a_client_that_is_paused() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT q 0 1\r\nx")
        gateway.cluster.lose()
        assert client.closed
        assert client.take() == b""
    with_gateway(test, automatic=False)


def test_a_hand_out_behind_an_unknown_outcome_returns() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT q 0 1\r\nxPUT q 0 1\r\nyGET q\r\n")
        (_, first), *rest = gateway.cluster._in_flight
        gateway.cluster._in_flight = rest
        gateway.cluster.commit()
        assert client.take() == b""         # in order: nothing before the first
        first.unknown()
        await gateway.settle()
        assert client.closed
        assert client.take() == b""
        gateway.cluster.commit()
        assert returned(gateway.cluster) == [1]
    with_gateway(test, automatic=False)


def test_a_clone_replaces_the_state_and_travels_in_chunks(tmp_path: Path) -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.talk(b"PUT q 0 %d\r\n" % 200_000 + bytes(200_000) + b"PUT q 0 1 IS it\r\nx")
        client = gateway.connect()
        client.send(b"SNAPSHOT\r\n")
        await gateway.settle()
        await gateway.settle()
        head, _, snapshot = client.take().partition(b"\r\n")
        assert head == b"200 OK %d" % len(snapshot)
        assert snapshot.startswith(b"PQRAFT1\n")
        client.send(b"GET q\r\nDONE 1\r\nGET q\r\nDONE 2\r\nTOTAL\r\n")
        await gateway.settle()
        assert client.take().endswith(b"200 OK FINQ FINI\r\n200 OK 0 0 0 0\r\n")
        client.send(b"CLONE %d\r\n" % len(snapshot) + snapshot[:-1])
        await gateway.settle()
        client.send(snapshot[-1:] + b"TOTAL\r\n")
        await gateway.settle()
        assert client.take() == b"200 OK\r\n200 OK 1 1 2 0\r\n"
        assert len(gateway.cluster.operations(CloneChunk)) == 1 + 5 + 1
        assert not list(tmp_path.iterdir())
    with_gateway(test, folder=tmp_path)


def test_a_broken_clone_changes_nothing(tmp_path: Path) -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.talk(b"PUT q 0 1\r\nx")
        snapshot = bytearray(b"".join(gateway.cluster.machine.snapshot()))
        snapshot[-1] ^= 1
        assert await gateway.talk(b"PUT r 0 1\r\nyCLONE %d\r\n" % len(snapshot) + snapshot + b"TOTAL\r\n") == (
            b"200 OK\r\n500 Invalid Snapshot\r\n200 OK 2 2 2 0\r\n"
        )
    with_gateway(test)


def test_what_is_surely_no_snapshot_is_read_but_not_proposed_further() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"CLONE 1000000\r\n")
        for _ in range(10):
            client.send(b"x" * 100_000)
            await gateway.settle()
        assert client.take() == b"500 Invalid Snapshot\r\n"
        assert len(gateway.cluster.operations(CloneChunk)) <= 1 + 3 + 1
    with_gateway(test)


def test_a_clone_whose_client_dies_is_dropped() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"CLONE 100000\r\n" + bytes(60_000))
        await gateway.settle()
        client.vanish()
        await gateway.settle()
        assert [chunk.total_bytes for chunk in gateway.cluster.operations(CloneChunk)][:2] == [100_000, None]
        assert await gateway.talk(b"PUT q 0 1\r\nxTOTAL\r\n") == b"200 OK\r\n200 OK 1 1 1 0\r\n"
    with_gateway(test)


@pytest.mark.parametrize(("fate", "answer"), [("refuse", b"500 Offline Mode\r\n"), ("lose", b"")])
def test_a_clone_in_flight_shares_the_fate_of_its_operations(fate: str, answer: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"CLONE 100000\r\n" + bytes(60_000))
        getattr(gateway.cluster, fate)()
        await gateway.settle()
        assert client.take() == b""
        assert client.closed == (fate == "lose")
        client.send(bytes(40_000) + b"PING\r\n")
        gateway.cluster.commit()
        await gateway.settle()
        assert client.take() == (answer + b"200 OK\r\n" if answer else b"")
    with_gateway(test, automatic=False)


def test_a_snapshot_that_cannot_be_written_is_busy(tmp_path: Path) -> None:
    async def test(gateway: MemoryGateway) -> None:
        assert await gateway.talk(b"SNAPSHOT\r\nPING\r\n") == b"503 Busy\r\n200 OK\r\n"
    with_gateway(test, folder=tmp_path / "does not exist")


def test_a_snapshot_whose_client_has_gone_leaves_nothing_behind(tmp_path: Path) -> None:
    async def test(gateway: MemoryGateway) -> None:
        exporting = asyncio.Event()
        go_on = asyncio.Event()

        async def export_snapshot(path: Path, *, users: bool) -> None:
            exporting.set()
            await go_on.wait()
            path.write_bytes(b"state")

        gateway.cluster.export_snapshot = export_snapshot  # type: ignore[method-assign]
        client = gateway.connect()
        client.send(b"SNAPSHOT\r\n")
        await exporting.wait()
        client.vanish()
        await gateway.settle()
        assert gateway.hub.exports._value == EXPORTS_MAX - 1        # it is still being written
        assert gateway.hub.exported.taken == 1
        go_on.set()
        await gateway.settle()
        assert gateway.hub.exports._value == EXPORTS_MAX
        assert gateway.hub.exported.taken == 0
        assert not list(tmp_path.iterdir())
        assert await gateway.talk(b"SNAPSHOT\r\n") == b"200 OK 5\r\nstate"
    with_gateway(test, folder=tmp_path)


def test_snapshots_that_nobody_reads_are_few(tmp_path: Path) -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.talk((b"PUT q 0 %d\r\n" % 200_000 + bytes(200_000)) * 20)
        deaf = [gateway.connect("10.0.0.1") for _ in range(EXPORTED_MAX)]
        for client in deaf:
            client.transport.stuck = True
            client.send(b"SNAPSHOT\r\n")
            await gateway.settle()
        await gateway.settle()
        assert gateway.hub.exported.taken == EXPORTED_MAX
        assert await gateway.talk(b"SNAPSHOT\r\nPING\r\n") == b"503 Busy\r\n200 OK\r\n"
        deaf[0].vanish()
        await gateway.settle()
        assert gateway.hub.exported.taken == EXPORTED_MAX - 1
        assert (await gateway.talk(b"SNAPSHOT\r\n")).startswith(b"200 OK ")
        for client in deaf[1:]:
            client.vanish()
        await gateway.settle()
        assert gateway.hub.exported.taken == 0
    with_gateway(test, folder=tmp_path)


@pytest.mark.parametrize("words", [
    b"", b"PING\r\n", b"PI", b"GETB q\r\n", b"GETBE busy\r\nPING\r\n", b"PUT q 0 10\r\nabc",
    b"PUT w 0 1 NEW WAIT o\r\nx", b"GET busy\r\nPING\r\nDONE 7\r\n", b"GET q\r\nTOTAL\r\n", b"RUNLIST\r\n",
    b"CLONE 100000\r\n" + bytes(70_000), b"CLONE 3\r\nabc", b"SNAPSHOT\r\n", b"OFFLINE\r\n", b"QUIT\r\n",
    b"CLUSTER ADD n4 ::1 5 ::1 6\r\nPING\r\n", b"CLUSTER SNAPSHOT\r\n", b"CLUSTER OFFLINE\r\n",
    b"PUT q 0 x\r\n", b"PUT q 0 9000000\r\n" + bytes(1000), b"SESSION\r\n", b"SESSION\r\nTAKEN\r\nREQ 1 GET q\r\n",
    b"SESSION\r\nREQ 1 GETB q\r\n", b"SESSION\r\nREQ 1 PUT w 0 1 NEW WAIT o\r\nx", b"SESSION\r\nREQ 1 PUT q 0 9\r\nabc",
    b"SESSION\r\nREQ 1 CLONE 100000\r\n" + bytes(70_000), b"SESSION\r\nGETBE busy BOUND\r\n", b"SESSION CLOSE\r\n",
    b"SESSION\r\nPING\r\nREQ 1 GET busy\r\nSESSION CLOSE\r\n", b"SESSION\r\n" * 2,
    b"GETB q WITHIN 1000\r\n", b"GETB q IS x WITHIN 1000\r\n", b"GETB q COUNT 5\r\n", b"GETBE busy IS x\r\n",
    b"PUT w 0 1 NEW WAIT o WITHIN 1000\r\nx", b"PUTS 2\r\nq 0 1\r\nxq 0 1\r\n", b"PUTS 2\r\nq 0 1\r\nxq 0\r\n",
    b"BEGIN\r\nPUT q 0 1\r\nx", b"BEGIN\r\nDONE 7\r\nCOMMIT\r\n", b"BEGIN\r\nCLONE 100000\r\n" + bytes(70_000),
    b"QUEUE PURGE busy ALL\r\n", b"QUEUE DELETE busy FORCE\r\nPING\r\n", b"PEEK busy READY\r\n", b"BURY 1 REASON x\r\n",
    b"SESSION\r\nBEGIN\r\nDONE 7\r\nREQ 1 COMMIT\r\n", b"SESSION\r\nREQ 1 QUEUE PURGE busy ALL\r\n",
    b"POLICY PRIORITY\r\nGET a|b\r\nGETB a|b\r\n",
])
def test_a_conversation_that_ended_is_freed_at_once(words: bytes, tmp_path: Path) -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.talk(b"PUT busy 0 1\r\nxGET busy\r\nPUT busy 0 1\r\ny")
        for settled in (True, False):
            client = gateway.connect()
            conversation = weakref.ref(client._connection._conversation)      # type: ignore[arg-type]
            pipeline = weakref.ref(conversation().pipeline)  # type: ignore[union-attr]
            parser = weakref.ref(conversation()._parser)     # type: ignore[union-attr]
            client.send(words)
            if settled:
                await gateway.settle()
            client.vanish()
            gateway.clients.remove(client)
            del client
            await gateway.settle()
            assert conversation() is None
            assert pipeline() is None
            assert parser() is None
    gc.disable()    # not by the collector, which runs rarely and does not see slots
    try:
        with_gateway(test, folder=tmp_path)
    finally:
        gc.enable()


def test_long_lists_are_streamed_as_the_client_takes_them() -> None:
    async def test(gateway: MemoryGateway) -> None:
        producer, client = gateway.connect(), gateway.connect()
        count, size = 3000, 1000
        for _ in range(count):
            producer.send(b"PUT q 0 %d\r\n" % size + bytes(size) + b"GET q\r\n")
            gateway.cluster.commit()
        client.transport.stuck = True
        client.send(b"RUNLIST DATA\r\nPING\r\n")
        received, most = b"", 0
        for _ in range(200):
            await gateway.settle()
            piece = client.take()
            received += piece
            most = max(most, len(piece))
        lines = received.split(b"\r\n", count + 1)
        assert lines[0] == b"200 OK %d" % count
        assert lines[1] == b"1 q 0 %d" % size
        assert lines[-1] == bytes(count * size) + b"200 OK\r\n"
        assert most < MIB
    with_gateway(test, Limits(data_bytes_max=1000, output_bytes_max=100_000), automatic=False)


def test_a_list_of_jobs_that_are_gone_with_their_state_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    blocks = 0

    def lost(job: AnyJob) -> bytes:
        nonlocal blocks
        blocks += 1
        if blocks == 3:
            raise PageLost("the state with this job was given up")
        return body_of(job)

    async def test(gateway: MemoryGateway) -> None:
        client, other = gateway.connect(), gateway.connect()
        for number in range(3):
            client.send(b"PUT q 0 1\r\n%d" % number)
            await gateway.settle()
        client.take()
        monkeypatch.setattr(streams, "STREAM_PIECE_BYTES", 1)
        monkeypatch.setattr(streams, "body_of", lost)
        client.send(b"PEEK q READY COUNT 3\r\nPING\r\n")
        await gateway.settle()
        assert client.closed
        received = client.take()
        assert received.startswith(b"200 OK 3\r\n")
        assert received.endswith(b"01")
        other.send(b"PING\r\n")
        await gateway.settle()
        assert other.take() == b"200 OK\r\n"

    with caplog.at_level("INFO", "sockpqd.gateway"):
        with_gateway(test)
    assert "the jobs it was being shown are gone" in caplog.text
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_queues_are_listed() -> None:
    async def test(gateway: MemoryGateway) -> None:
        puts = b"".join(b"PUT %s 0 1\r\nx" % name for name in (b"mail", b"mail.bulk", b"EXPIRE", b"mail"))
        await gateway.talk(puts + b"GET mail\r\n")
        assert await gateway.talk(b"queue LIST\r\n") == (
            b"200 OK 3\r\nmail 1 0 1 0 0\r\nmail.bulk 1 0 0 0 0\r\nEXPIRE 1 0 0 0 0\r\n")
        assert await gateway.talk(b"QUEUE LIST mail*\r\nQUEUE LIST mail.*\r\nQUEUE LIST *\r\n") == (
            b"200 OK 2\r\nmail 1 0 1 0 0\r\nmail.bulk 1 0 0 0 0\r\n"
            b"200 OK 1\r\nmail.bulk 1 0 0 0 0\r\n"
            b"200 OK 3\r\nmail 1 0 1 0 0\r\nmail.bulk 1 0 0 0 0\r\nEXPIRE 1 0 0 0 0\r\n")
        assert await gateway.talk(b"QUEUE LIST none*\r\n") == b"200 OK 0\r\n"
        for line in (b"QUEUE", b"QUEUE LIST mail", b"QUEUE LIST **", b"QUEUE LIST -*", b"QUEUE LIST a* b*",
                     b"QUEUE list", b"QUEUE LIST " + b"a" * 256 + b"*"):
            assert (await gateway.talk(line + b"\r\n")).startswith(b"400 Bad Arguments: ")
        gateway.cluster.follow("n2")
        assert await gateway.talk(b"QUEUE LIST mail.*\r\n") == b"200 OK 1\r\nmail.bulk 1 0 0 0 0\r\n"
    with_gateway(test)


def test_a_queue_that_ends_while_the_list_is_sent_is_told_as_empty() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client, other = gateway.connect(), gateway.connect()
        for number in range(LINES_PER_PIECE + 1):
            other.send(b"PUT q%d 0 1\r\nx" % number)
        await gateway.settle()
        client.send(b"QUEUE LIST\r\nPING\r\n")
        said = b""
        while not said:
            await asyncio.sleep(0)
            said = client.take()
        other.send(b"GET q%d\r\nDONE 1\r\n" % LINES_PER_PIECE)
        await gateway.settle()
        lines = (said + client.take()).split(b"\r\n")
        assert (lines[0], len(lines)) == (b"200 OK %d" % (LINES_PER_PIECE + 1), LINES_PER_PIECE + 4)
        assert lines[-4:] == [
            b"q%d 1 0 0 0 0" % (LINES_PER_PIECE - 1), b"q%d 0 0 0 0 0" % LINES_PER_PIECE, b"200 OK", b"",
        ]
    with_gateway(test)


def test_shutdown_is_told_to_the_daemon() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect("10.1.1.1")
        client.send(b"SHUTDOWN\r\n")
        assert client.take() == b"221 Shutting Down\r\n"
        assert client.closed
        assert gateway.stop_reasons == ["SHUTDOWN from 10.1.1.1:1"]
    with_gateway(test)


def test_a_bug_in_one_conversation_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def test(gateway: MemoryGateway) -> None:
        broken, other = gateway.connect(), gateway.connect()
        broken.send(b"PUT q 0 6\r\nsecret")
        other.send(b"GET q\r\n")
        broken._connection._conversation.pipeline._drain = None    # type: ignore[union-attr,method-assign,assignment]
        gateway.cluster.commit()
        assert broken.transport.aborted
        assert other.take() == b"200 OK q 1 0 6\r\nsecret"
    with_gateway(test, automatic=False)
    assert "a conversation failed" in caplog.text
    assert "secret" not in caplog.text


def test_without_room_jobs_are_refused_and_what_removes_jobs_goes_on() -> None:
    async def talk(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT q 0 3\r\nabc")
        await gateway.settle()
        assert client.take() == b"200 OK\r\n"
        gateway.cluster.full = True
        client.send(b"PUT q 0 3\r\ndefPUT q 0 3 NEW WAIT o\r\nghiGET q\r\nDONE 1\r\n")
        await gateway.settle()
        assert client.take() == b"503 Busy\r\n503 Busy\r\n200 OK q 1 0 3\r\nabc200 OK FINQ\r\n"
        gateway.cluster.follow("n2")
        client.send(b"PUT q 0 3\r\nabc")
        await gateway.settle()
        assert client.take() == b"500 Offline Mode\r\n"

    with_gateway(talk)


def test_a_large_job_is_written_as_it_is_behind_the_answers_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(gateway: MemoryGateway) -> None:
        data = bytes(LARGE_BODY_BYTES + 1)
        gateway.cluster.propose(Put("q", 0, data), IGNORED)
        client = gateway.connect()
        written: list[bytes] = []
        monkeypatch.setattr(client.transport, "write", written.append)
        client.send(b"PING\r\nGET q\r\nPING\r\n")
        await gateway.settle()
        assert b"".join(written) == b"200 OK\r\n200 OK q 1 0 %d\r\n%b200 OK\r\n" % (len(data), data)
        assert any(piece is data for piece in written)      # not copied
    with_gateway(test)


def test_a_job_without_memory_for_its_answer_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(reply: object) -> bytes:
        raise MemoryError
    monkeypatch.setitem(responses.ENCODERS, Handed, no_memory)

    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT q 0 1\r\naGET q\r\n")
        await gateway.settle()
        assert client.closed
        assert returned(gateway.cluster) == [1]
    with_gateway(test)
