"""Transactions in memory: one operation, limits, who is refused, and the answers. The dialogue is in transcripts/."""

from __future__ import annotations

import logging

import pytest

from sockpqd.core import Batch, Done, End, How, Put, Request
from sockpqd.gateway.limits import BATCH_DATA_BYTES_MAX, MIB, TRANSACTION_COMMANDS_MAX
from tests.gateway.helpers.memory import MemoryGateway, attached, with_gateway

BEGIN = b"BEGIN\r\n"
COMMIT = b"COMMIT\r\n"


def test_a_transaction_is_one_operation_and_nothing_before_its_commit() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(BEGIN + b"PUT q 0 1\r\naDONE 7\r\nBURY 8 REASON x\r\n")
        assert gateway.cluster.in_flight == []
        client.send(COMMIT + b"PUT q 0 1\r\nb")
        batch = Batch((Put("q", 0, b"a"), Done(7), End(8, How.BURY, reason="x")), atomic=True)
        assert gateway.cluster.in_flight == [batch, Put("q", 0, b"b")]
    with_gateway(test, automatic=False)


def test_a_whole_transaction_may_be_sent_at_once_in_any_pieces() -> None:
    stream = BEGIN + b"PUT q 0 1\r\naCHANGE KEY q k DATA 3\r\nxyzPUT q 0 1\r\nb" + COMMIT + b"TOTAL\r\n"

    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        for size in (1, 7, len(stream)):
            for at in range(0, len(stream), size):
                client.send(stream[at:at + size])
            await gateway.settle()
            assert client.take() == (b"200 OK\r\n202 Queued\r\n202 Queued\r\n202 Queued\r\n"
                                     b"409 Aborted 2 404 Job Not Found\r\n200 OK 0 0 0 0\r\n")
    with_gateway(test)


def test_there_may_be_so_many_commands_and_no_more() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(BEGIN + b"PUT q 0 1\r\na" * TRANSACTION_COMMANDS_MAX + COMMIT)
        await gateway.settle()
        expected = b"200 OK\r\n" + b"202 Queued\r\n" * 1000 + b"200 OK 1000\r\n" + b"200 OK\r\n" * 1000
        assert client.take() == expected
        client.send(BEGIN + b"PUT q 0 1\r\na" * (TRANSACTION_COMMANDS_MAX + 2) + COMMIT)
        await gateway.settle()
        expected = (b"200 OK\r\n" + b"202 Queued\r\n" * 1000 + b"413 Data Too Large\r\n202 Queued\r\n"
                    b"409 Aborted 1001 413 Data Too Large\r\n")
        assert client.take() == expected
        assert gateway.cluster.machine.ready("q") == 1000
    with_gateway(test)


def test_there_may_be_so_many_bytes_and_no_more() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        put = b"PUT q 0 %d\r\n" % MIB + bytes(MIB)
        count = BATCH_DATA_BYTES_MAX // MIB
        client.send(BEGIN + put * count + b"CHANGE 1 DATA 1\r\na" + put + COMMIT)
        await gateway.settle()
        assert client.take().endswith(b"202 Queued\r\n" * count + b"413 Data Too Large\r\n202 Queued\r\n"
                                      b"409 Aborted %d 413 Data Too Large\r\n" % (count + 1))
        client.send(BEGIN + put * count + COMMIT)
        await gateway.settle()
        assert client.take().endswith(b"200 OK %d\r\n" % count + b"200 OK\r\n" * count)
    with_gateway(test)


def test_what_is_refused_is_not_kept() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(BEGIN + b"PUT q 0 1\r\naGET q\r\nPUT q 0 1\r\nb")
        transaction = client._connection._conversation.pipeline.state.transaction     # type: ignore[union-attr]
        assert transaction is not None
        assert transaction.operations == ()
        client.vanish()
        await gateway.settle()
        assert gateway.cluster.log[1:] == []
    with_gateway(test)


@pytest.mark.parametrize("full_at", [0, 1, 2])
def test_without_room_nothing_is_executed(full_at: int) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        for position, line in enumerate((BEGIN, b"PUT q 0 1\r\na", COMMIT)):
            gateway.cluster.full = gateway.cluster.full or position == full_at
            client.send(line)
        await gateway.settle()
        queued = (b"202 Queued\r\n503 Busy\r\n" if full_at == 2
                  else b"503 Busy\r\n409 Aborted 1 503 Busy\r\n")
        assert client.take() == b"200 OK\r\n" + queued
        assert gateway.cluster.machine.ready("q") == 0
        client.send(BEGIN + b"DONE 99\r\n" + COMMIT)        # what adds nothing is executed
        await gateway.settle()
        assert client.take().endswith(b"409 Aborted 1 404 Job Not Found\r\n")
    with_gateway(test)


@pytest.mark.parametrize(("behind", "answers"), [
    (b"PUT q 0 1\r\nxDONE 7\r\nCOMMIT\r\n", b"500 Offline Mode\r\n" * 3),
    (b"PUT q 0 1\r\nxROLLBACK\r\n", b"500 Offline Mode\r\n" * 2),
    (b"PUT q 0 1\r\nxREQ 7 COMMIT\r\n", b"500 Offline Mode\r\n" * 2),
    (b"NONSENSE\r\nPUT q 0 1\r\nxCOMMIT\r\n", b"400 Bad Command\r\n" + b"500 Offline Mode\r\n" * 2),
    (b"BURY 7 REASON x\r\nCOMMIT\r\n", b"500 Offline Mode\r\n" * 2),
    (b"BEGIN\r\nDONE 7\r\nCOMMIT\r\n", b"200 OK\r\n202 Queued\r\n409 Aborted 1 404 Job Not Found\r\n"),
    (b"PING\r\nDONE 7\r\nROLLBACK\r\n", b"200 OK\r\n404 Job Not Found\r\n"
     b"400 Bad Arguments: ROLLBACK without BEGIN\r\n"),
    (b"TOTAL\r\nDONE 7\r\n", b"200 OK 0 0 0 0\r\n404 Job Not Found\r\n"),
    (b"REQ 7 DONE 7\r\nDONE 7\r\n", b"404 Session Not Found\r\n404 Job Not Found\r\n"),
])
def test_what_is_behind_a_refused_begin_is_refused_even_if_it_could_be_executed(behind: bytes, answers: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.hub.offline_close = False
        gateway.cluster.follow("n2")
        client = gateway.connect()
        client.send(BEGIN)
        gateway.cluster.lead()
        client.send(behind)
        await gateway.settle()
        assert client.take() == b"500 Offline Mode\r\n" + answers
        client.send(b"PUT q 0 1\r\nx")
        await gateway.settle()
        assert client.take() == b"200 OK\r\n", "the rest is executed as ever"
        assert gateway.cluster.machine.ready("q") == 1
    with_gateway(test)


def test_a_commit_on_a_node_that_serves_no_more_is_refused() -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.hub.offline_close = False
        client = gateway.connect()
        client.send(BEGIN + b"PUT q 0 1\r\na")
        gateway.cluster.follow("n2")
        client.send(COMMIT + b"DONE 1\r\n")
        await gateway.settle()
        assert client.take() == b"200 OK\r\n202 Queued\r\n500 Offline Mode\r\n500 Offline Mode\r\n"
    with_gateway(test)


def test_the_digest_of_a_numbered_commit_covers_the_queued_commands() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        digests = []
        for queued in (b"DONE 7\r\n", b"DONE 7\r\n", b"DONE 8\r\n", b"LATER 7\r\n", b"DONE 7\r\nDONE 7\r\n",
                       b"PUT q 0 1\r\na", b"PUT q 0 1\r\nb", b"PUT q 0 1 KEY a\r\nb", b""):
            client.send(BEGIN + queued + b"REQ 1 COMMIT\r\n")
            request = gateway.cluster.in_flight[-1]
            assert isinstance(request, Request)
            assert (request.session, request.number, request.part) == (1, 1, 0)
            digests.append(request.digest)
        assert digests[0] == digests[1]
        assert len(set(digests)) == len(digests) - 1
    with_gateway(test, automatic=False)


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_reason_of_a_burial_is_logged_when_the_job_is_dead(
    wrapped: bool, caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT q 0 1\r\naGET q\r\n")
        await gateway.settle()
        caplog.set_level(logging.INFO)
        for _ in range(2):          # the second time there is no such job
            bury = b"BURY 1 REASON no_such_address\r\n"
            client.send(BEGIN + bury + COMMIT if wrapped else bury)
            await gateway.settle()
        lines = [record.getMessage() for record in caplog.records if "no_such_address" in record.getMessage()]
        assert lines == ["client:1: job 1 is dead, no_such_address"]
        assert caplog.records[0].levelno == logging.INFO
    with_gateway(test)
