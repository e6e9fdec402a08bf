"""Commands of many jobs that are several operations: one answer, and each part executed once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sockpqd.core import (
    OPERATION_BYTES_MAX,
    OPERATION_WORK_MAX,
    Batch,
    BindQueue,
    CloseSession,
    DeleteQueue,
    End,
    Get,
    GetWith,
    HandedMany,
    How,
    Machine,
    Operation,
    Policy,
    Put,
    PutWith,
    Request,
    Results,
    Spread,
    ToTopic,
    Touch,
    cost,
)
from sockpqd.core.handlers.cost import RANKED
from sockpqd.gateway.commands.context.splitting import AHEAD, split
from sockpqd.gateway.limits import QUEUES_MAX, Limits
from tests.core.helpers.logs import ask
from tests.gateway.helpers.many_jobs import put, settle
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway, attached, with_gateway
from tests.gateway.helpers.parsing import parser_of

JOBS = 4096                                     # with all that a job can have: more than one operation
PUTS = b"PUTS %d\r\n" % JOBS + b"".join(b"q 0 1 KEY k%d TTL 99\r\nx" % number for number in range(JOBS))
STORED = b"200 OK %d\r\n" % JOBS + b"200 OK\r\n" * JOBS


def ids_of(part: Operation) -> tuple[int, ...]:
    assert isinstance(part, End | Touch)
    assert not isinstance(part.ids, int)
    return part.ids


@pytest.mark.parametrize("operation", [
    Batch((Put("q", 0, bytes(10)),) * 10_000, False),
    Batch((PutWith(Put("q", 0, bytes(10)), key="k"),) * 10_000, False),
    Batch(tuple(PutWith(Put(f"q{number}", 0, b""), group=f"g{number}") for number in range(10_000)), False),
    Batch((PutWith(Put("q", 0, b""), after=tuple(f"i{number}" for number in range(100))),) * 10_000, False),
    Batch((Put("q", 0, bytes(8 << 20)),) * 3, False),
    Batch((Put("q", 0, bytes(1 << 20)), *[Put("q", 0, bytes(1500))] * 9999), False),
    End(tuple(range(10_000)), How.DONE),
    End((2**64 - 1,) * 7001, How.LATER),
    End((7,), How.DONE),
], ids=lambda operation: type(operation).__name__)
def test_no_part_costs_too_much_and_together_they_are_the_whole(operation: Batch | End) -> None:
    parts = split(operation, Machine().known_work)
    for part in parts:
        size, work = cost(part)
        assert size <= OPERATION_BYTES_MAX
        assert work <= OPERATION_WORK_MAX
        assert type(part) is type(operation)
    if isinstance(operation, Batch):
        assert [one for part in parts if isinstance(part, Batch) for one in part.operations] == [*operation.operations]
        assert not any(part.atomic for part in parts if isinstance(part, Batch))
    else:
        assert [number for part in parts for number in ids_of(part)] == [*ids_of(operation)]
    total_bytes, total_work = cost(operation)
    assert len(parts) <= 2 + 2 * max(total_bytes // OPERATION_BYTES_MAX, total_work // OPERATION_WORK_MAX)


def test_what_costs_little_is_one_operation() -> None:
    operation = Batch((Put("q", 0, b""),) * 100, False)
    assert split(operation, Machine().known_work) == [operation]


def test_jobs_for_a_topic_count_with_its_queues_and_patterns() -> None:
    machine = Machine()
    ask(machine, *[BindQueue("t", "bound", f"#.a{number}.#") for number in range(1000)])
    put = PutWith(Put("", 0, b""), targets=ToTopic("t", ".".join(["b"] * 60)))
    parts = split(Batch((put,) * 10, False), machine.known_work)
    assert sum(len(part.operations) for part in parts if isinstance(part, Batch)) == 10
    assert all(machine.known_work(part) + cost(part)[1] <= OPERATION_WORK_MAX for part in parts)
    answers = [answer for part in parts for reply in ask(machine, part) if isinstance(reply, Results)
               for answer in reply.replies]
    assert answers == [Spread(0)] * 10


@pytest.mark.parametrize("many", [Touch, lambda ids: End(ids, How.DONE)])
def test_jobs_count_with_the_queues_in_which_their_groups_move(many: Callable[[tuple[int, ...]], End | Touch]) -> None:
    machine, groups, queues, plain = Machine(), 30, 200, 300
    for number in range(queues):
        ask(machine, *[PutWith(Put(f"q{number}", 0, b""), group=f"g{group}") for group in range(groups)])
    ask(machine, *[Put("plain", 0, b"")] * plain)
    ids: list[int] = []
    for queue, count in (("q0", groups), ("plain", groups + plain)):
        while len(ids) < count:
            (reply,) = ask(machine, GetWith(Get((queue,)), count - len(ids), policy=Policy.FAIR))
            assert isinstance(reply, HandedMany)
            ids += [job.id for job in reply.jobs]
    parts = split(many(tuple(ids)), machine.known_work)
    assert all(machine.known_work(part) + cost(part)[1] <= OPERATION_WORK_MAX for part in parts)
    assert [number for part in parts for number in ids_of(part)] == ids
    assert groups * queues * RANKED / OPERATION_WORK_MAX < len(parts) < 10
    assert len(split(many(tuple(ids[groups:])), machine.known_work)) == 1


def test_puts_of_many_has_one_answer() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        assert await client_says(gateway, client, PUTS + b"PING\r\n") == STORED + b"200 OK\r\n"
        assert len(gateway.cluster.operations(Batch)) > 1
        assert gateway.cluster.machine.ready("q") == JOBS
    with_gateway(test, automatic=False)


def test_puts_into_more_queues_than_one_command_may_are_refused_from_there_on() -> None:
    lines = [b"|".join(b"q%d_%d" % (line, number) for number in range(1000)) + b" 0 1\r\nx" for line in range(11)]

    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        answer = await client_says(gateway, client, b"PUTS 12\r\n" + b"".join(lines) + b"last 0 1\r\nx")
        assert answer == b"200 OK 12\r\n" + b"200 OK 1000\r\n" * 10 + b"413 Data Too Large\r\n200 OK\r\n"
        assert len(gateway.cluster.operations(Batch)) > 1
        assert gateway.cluster.machine.ready("q10_0") == 0
        assert gateway.cluster.machine.ready("last") == 1
    with_gateway(test, automatic=False)


def test_done_and_later_of_many_have_one_answer() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        await put(gateway, client, 10_000)
        got = await client_says(gateway, client, b"GET q COUNT 10000\r\n")
        assert got.startswith(b"200 OK 10000\r\n")
        ids = b" ".join(b"%d" % number for number in range(1, 9001))
        answer = await client_says(gateway, client, b"LATER " + ids + b"\r\n")
        assert answer == b"200 OK 9000\r\n" + b"200 OK\r\n" * 9000
        answer = await client_says(gateway, client, b"DONE " + ids + b"\r\n")
        assert answer == b"200 OK 9000\r\n" + b"404 Job Not Found\r\n" * 9000
        assert len(gateway.cluster.operations(End)) > 1
    with_gateway(test, automatic=False)


def test_few_parts_are_in_flight_and_nothing_that_comes_behind_goes_before_the_others() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(PUTS + b"PUT behind 0 1\r\nx")
        stored, held = 0, []
        while stored < JOBS:
            await gateway.settle()
            assert 0 < len(gateway.cluster.in_flight) <= AHEAD + 1
            held.append(gateway.hub.account.held_bytes)
            gateway.cluster.commit(1)
            before, stored = stored, gateway.cluster.machine.ready("q")
            assert stored > before
            assert gateway.cluster.machine.ready("behind") == 0
        await settle(gateway, 3)
        assert client.take() == STORED + b"200 OK\r\n"
        assert held[0] > 100 * JOBS / 2             # what is not proposed yet is in the account
        assert held[0] > held[1] > gateway.hub.account.held_bytes == 0
    with_gateway(test, automatic=False)


def test_what_is_held_for_the_parts_is_summed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    additions = 0

    class Counted(int):
        """Counts the bytes of a part."""

        def __radd__(self, other: int) -> int:
            nonlocal additions
            additions += 1
            return int(self) + other

    def counted_cost(operation: Operation) -> tuple[int, int]:
        size, work = cost(operation)
        return Counted(size), work

    ids = b" ".join(b"%d" % number for number in range(9000))
    monkeypatch.setattr("sockpqd.gateway.commands.context.splitting.OPERATION_WORK_MAX", 500)
    monkeypatch.setattr("sockpqd.gateway.commands.context.splitting.cost", counted_cost)

    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"DONE " + ids + b"\r\n")
        await settle(gateway, 200)
        assert client.take().count(b"404 Job Not Found") == 9000
        assert len(gateway.cluster.operations(End)) - AHEAD <= additions <= len(gateway.cluster.operations(End))
    with_gateway(test, automatic=False)


@pytest.mark.parametrize("committed", [1, 2])
def test_a_numbered_one_that_is_repeated_is_executed_once(committed: int) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        client.send(b"REQ 1 " + PUTS)
        await gateway.settle()
        gateway.cluster.commit(committed)
        await gateway.settle()
        gateway.cluster.lose()
        for _ in range(3):                  # one for each part that is not proposed any more, and the answer
            await gateway.settle()
        assert client.take() == b"504 Outcome Unknown\r\n"
        again = gateway.connect()
        await client_says(gateway, again, b"SESSION 1_9f3c5a7e11d0c2b4\r\n")
        for _ in range(2):
            assert await client_says(gateway, again, b"REQ 1 " + PUTS) == STORED
        assert gateway.cluster.machine.ready("q") == JOBS
        requests = [one for one in gateway.cluster.operations(Request) if isinstance(one, Request)]
        parts = 1 + max(one.part for one in requests)
        assert parts > 2
        assert [one.part for one in requests[-parts:]] == [*range(parts)]
    with_gateway(test, automatic=False)


@pytest.mark.parametrize(("number", "answer"), [(b"", b""), (b"REQ 1 ", b"504 Outcome Unknown\r\n")])
def test_refused_in_part_is_not_refused(number: bytes, answer: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        client.send(number + PUTS)
        await gateway.settle()
        gateway.cluster.commit(1)
        gateway.cluster.refuse()
        await gateway.settle()
        assert client.take() == answer
        assert client.closed
    with_gateway(test, automatic=False)


def test_refused_whole_is_refused() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(PUTS)
        await gateway.settle()
        gateway.cluster.refuse()
        await gateway.settle()
        assert client.take() == b"500 Offline Mode\r\n"
        assert not client.closed
    with_gateway(test, automatic=False)


def test_a_transaction_that_would_cost_too_much_is_refused() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        items = b"|".join(b"i%d" % number for number in range(100))
        jobs = b"".join(b"PUT q 0 1 AFTER %s\r\nx" % items for _ in range(200))
        answer = await client_says(gateway, client, b"BEGIN\r\n" + jobs + b"COMMIT\r\n")
        assert b"413 Data Too Large\r\n" in answer
        assert answer.rpartition(b"409 Aborted ")[2].endswith(b"413 Data Too Large\r\n")
        assert not gateway.cluster.machine.unfinished(None)
    with_gateway(test, automatic=False)


def test_more_queues_than_one_operation_may_look_at_are_an_error() -> None:
    for count, refused in ((QUEUES_MAX, False), (QUEUES_MAX + 1, True)):
        parser = parser_of(Limits(line_bytes_max=16 << 20))
        parser.feed(b"GET " + b"|".join(b"q%d" % number for number in range(count)) + b"\r\n")
        command = parser.next()
        assert command is not None
        assert command.answer == (b"400 Bad Arguments: more than %d names\r\n" % QUEUES_MAX if refused else None)


def test_a_queue_with_many_running_jobs_is_deleted_in_portions() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        await put(gateway, client, 2500)
        await client_says(gateway, client, b"GET q COUNT 2500\r\nQUEUE CONFIG q WEIGHT 2\r\n")
        assert await client_says(gateway, client, b"QUEUE DELETE q FORCE\r\n") == b"200 OK\r\n"
        assert len(gateway.cluster.operations(DeleteQueue)) == 3
        assert gateway.cluster.machine.total(None).running == 0
        assert gateway.cluster.machine.queue_settings("q") is None
    with_gateway(test, automatic=False)


def test_a_session_with_many_jobs_is_closed_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.limits.UNBOUND_MAX", 2)

    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        await put(gateway, client, 5)
        await client_says(gateway, client, b"GET q COUNT 5 BOUND\r\n")
        assert await client_says(gateway, client, b"SESSION CLOSE\r\nTAKEN\r\n") == (
            b"200 OK\r\n404 Session Not Found\r\n")
        assert len(gateway.cluster.operations(CloseSession)) == 3
        assert len(gateway.cluster.machine.running()) == 5
        assert gateway.cluster.machine.session_count == 0
    with_gateway(test, automatic=False)


async def client_says(gateway: MemoryGateway, client: MemoryClient, data: bytes) -> bytes:
    """Send it, let everything be committed, and return the answers."""
    client.send(data)
    await settle(gateway, 12)
    return client.take()
