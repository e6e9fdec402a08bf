"""Commands of several operations: portion by portion, in order, and the same sum when they are repeated."""

from __future__ import annotations

import pytest

from sockpqd.core import DeleteQueue, Kick, MoveJobs, Purged, PurgeQueue, Request
from sockpqd.gateway.limits import PORTION_MAX
from tests.gateway.helpers.many_jobs import JOBS, put, settle
from tests.gateway.helpers.memory import MemoryGateway, attached, with_gateway


def test_purge_removes_in_portions_what_was_there_before_it() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        await put(gateway, client)
        client.send(b"PUT q 0 1\r\nxQUEUE PURGE q ALL\r\nPUT q 0 1\r\ny")
        await settle(gateway)
        assert client.take() == b"200 OK\r\n200 OK %d\r\n200 OK\r\n" % (JOBS + 1)
        assert gateway.cluster.machine.ready("q") == 1
        first, *others = gateway.cluster.operations(PurgeQueue)
        assert len(others) == 2
        assert first == PurgeQueue("q", Purged.ALL)
        assert all(isinstance(other, PurgeQueue) and other.before_seq is not None for other in others)
    with_gateway(test, automatic=False)


def test_what_others_put_meanwhile_stays() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client, other = gateway.connect(), gateway.connect()
        await put(gateway, client)
        client.send(b"QUEUE PURGE q READY\r\n")
        await settle(gateway, 1)
        other.send(b"PUT q 9 1\r\ny")
        await settle(gateway)
        assert client.take() == b"200 OK %d\r\n" % JOBS
        assert gateway.cluster.machine.ready("q") == 1
    with_gateway(test, automatic=False)


def test_kick_moves_in_portions() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"QUEUE CREATE q EXPIRE 1 THEN DEAD\r\n")
        await gateway.settle()
        client.take()
        await put(gateway, client)
        client.send(b"GET q COUNT 10000\r\n")
        await gateway.settle()
        gateway.cluster.pass_time(2)
        gateway.cluster.pass_time(1)
        gateway.cluster.pass_time(1)
        await gateway.settle()
        client.take()
        counts = gateway.cluster.machine.counts("q")
        assert counts is not None
        assert counts.dead == JOBS
        client.send(b"KICK q %d\r\nKICK q 10\r\nKICK q 10000\r\nKICK q 10000\r\n" % (PORTION_MAX + 5))
        await settle(gateway)
        assert client.take() == b"200 OK 1005\r\n200 OK 10\r\n200 OK %d\r\n200 OK 0\r\n" % (JOBS - 1015)
        assert [kick.count for kick in gateway.cluster.operations(Kick) if isinstance(kick, Kick)][:3] == [1005, 5, 10]
    with_gateway(test)


def test_a_queue_is_purged_before_it_is_deleted() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        await put(gateway, client)
        client.send(b"GET q COUNT 2\r\nQUEUE DELETE q\r\nQUEUE DELETE q FORCE\r\nQUEUE LIST\r\nDONE 1\r\n")
        await settle(gateway)
        assert client.take().endswith(b"409 Queue Not Empty\r\n200 OK\r\n200 OK 0\r\n404 Job Not Found\r\n")
        operations = [type(operation) for entry in gateway.cluster.log for operation in entry][-6:-1]
        assert operations == [DeleteQueue, PurgeQueue, PurgeQueue, PurgeQueue, DeleteQueue]
        client.send(b"QUEUE DELETE q FORCE\r\n")
        await settle(gateway)
        assert client.take() == b"404 Queue Not Found\r\n"
    with_gateway(test, automatic=False)


def test_a_queue_that_ends_with_its_jobs_was_deleted() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        await put(gateway, client, 3)
        client.send(b"QUEUE DELETE q FORCE\r\nQUEUE DELETE q FORCE\r\n")
        await settle(gateway)
        assert client.take() == b"200 OK\r\n404 Queue Not Found\r\n"
    with_gateway(test, automatic=False)


def test_jobs_are_moved_in_portions_until_one_is_refused() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        await put(gateway, client)
        client.send(b"QUEUE MOVE q p COUNT %d\r\nQUEUE CREATE few CAPACITY 1100\r\n" % (PORTION_MAX + 5))
        client.send(b"QUEUE MOVE p few\r\nQUEUE MOVE q few\r\nQUEUE MOVE few more\r\nQUEUE MOVE q none COUNT 10\r\n")
        await settle(gateway)
        assert client.take() == (
            b"200 OK 1005\r\n200 OK\r\n200 OK 1005\r\n200 OK 95 503 Queue Full\r\n200 OK 1100\r\n200 OK 10\r\n"
        )
        counts = [move.count for move in gateway.cluster.operations(MoveJobs) if isinstance(move, MoveJobs)]
        assert counts[:2] == [1005, 5]
    with_gateway(test, automatic=False)


def test_running_jobs_are_purged_in_portions_but_not_those_that_are_taken_meanwhile() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client, other = gateway.connect(), gateway.connect()
        await put(gateway, client)
        client.send(b"GET q COUNT %d\r\nQUEUE PURGE q RUNNING\r\n" % (PORTION_MAX + 3))
        await settle(gateway, 2)
        other.send(b"GET q\r\n")
        await settle(gateway)
        assert client.take().endswith(b"x200 OK 1003\r\n")
        counts = gateway.cluster.machine.counts("q")
        assert counts is not None
        assert (counts.running, counts.ready) == (1, JOBS - PORTION_MAX - 4)
    with_gateway(test, automatic=False)


def test_a_queue_is_deleted_and_leaves_its_dead_jobs() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        await put(gateway, client)
        client.send(b"GET q\r\nBURY 1\r\nQUEUE DELETE q FORCE LEAVE\r\n")
        await settle(gateway)
        operations = [type(operation) for entry in gateway.cluster.log for operation in entry][-4:]
        assert operations == [PurgeQueue, PurgeQueue, PurgeQueue, DeleteQueue]
        assert gateway.cluster.machine.counts("q") is None
        assert gateway.cluster.machine.ready("q_dead") == 1
    with_gateway(test, automatic=False)


@pytest.mark.parametrize(
    "command", [b"QUEUE PURGE q ALL", b"QUEUE DELETE q FORCE", b"KICK q 2000", b"QUEUE MOVE q p"],
)
@pytest.mark.parametrize(("number", "answer"), [(b"", b""), (b"REQ 2 ", b"504 Outcome Unknown\r\n")])
def test_refused_in_the_middle_is_not_refused_whole(command: bytes, number: bytes, answer: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        await put(gateway, client)
        if command.startswith(b"KICK"):
            client.send(b"GET q COUNT 1500 EXPIRE 1 THEN DEAD\r\n")
            gateway.cluster.commit()
            gateway.cluster.pass_time(2)
            gateway.cluster.pass_time(1)
            client.take()
        client.send(number + command + b"\r\n")
        await gateway.settle()
        gateway.cluster.commit()
        await gateway.settle()
        assert len(gateway.cluster.in_flight) == 1, "the second portion"
        gateway.cluster.refuse()
        await gateway.settle()
        assert client.take() == answer
        assert client.closed
    with_gateway(test, automatic=False)


def test_refused_at_once_is_refused() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"QUEUE PURGE q ALL\r\n")
        await gateway.settle()
        gateway.cluster.refuse()
        await gateway.settle()
        assert client.take() == b"500 Offline Mode\r\n"
    with_gateway(test, automatic=False)


@pytest.mark.parametrize("command", [b"REQ 1 QUEUE PURGE q ALL\r\n", b"REQ 1 QUEUE MOVE q p\r\n"])
@pytest.mark.parametrize("executed", [1, 2, 3])
def test_a_numbered_command_that_is_repeated_has_the_same_sum(executed: int, command: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        await put(gateway, client)
        client.send(command)
        for _ in range(executed):
            await gateway.settle()
            gateway.cluster.commit()
        client.vanish()             # the client does not know what became of it
        await settle(gateway)
        again = gateway.connect()
        again.send(b"SESSION 1_9f3c5a7e11d0c2b4\r\n")
        await settle(gateway)
        again.take()
        for _ in range(2):
            again.send(command)
            await settle(gateway)
            assert again.take() == b"200 OK %d\r\n" % JOBS
        parts = [request.part for request in gateway.cluster.operations(Request) if isinstance(request, Request)]
        assert parts[-3:] == [0, 1, 2]
    with_gateway(test, automatic=False)
