"""No answer tells a user whether a number belongs to a job in another user's queue."""

from __future__ import annotations

import pytest

from sockpqd.core import JobState, Number
from tests.gateway.auth.test_rights_when_told import users
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway, with_gateway

COMMANDS = (
    "PEEK NUMBER {n}", "JOB STAT NUMBER {n}", "CHANGE NUMBER {n} PRI 5", "CHANGE NUMBER {n} DATA 3\r\nnew",
    "DELETE NUMBER {n}", "DELETE NUMBER {n} UNTAKEN", "KICK JOB NUMBER {n}", "GET NUMBER {n}", "GET NUMBER {n} META",
    "REQ {r} CHANGE NUMBER {n} PRI 5", "REQ {r} DELETE NUMBER {n}", "REQ {r} GET NUMBER {n} BOUND",
    "BEGIN\r\nDELETE NUMBER {n}\r\nCOMMIT", "BEGIN\r\nCHANGE NUMBER {n} PRI 5\r\nKICK JOB NUMBER {n}\r\nCOMMIT",
)


async def numbered(gateway: MemoryGateway, client: MemoryClient, line: bytes) -> int:
    """Put a job; returns its number."""
    client.send(line)
    await gateway.settle()
    return int(client.take().split()[3])


@pytest.mark.parametrize("serving", [True, False])
def test_a_job_of_others_is_answered_like_one_that_is_gone(*, serving: bool) -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, ann = gateway.connect("boss", "boss"), gateway.connect("ann", "ann")
        gone = await numbered(gateway, boss, b"PUT theirs 0 1 NUMBER\r\nx")
        ready = await numbered(gateway, boss, b"PUT theirs 0 1 NUMBER\r\nx")
        running = await numbered(gateway, boss, b"PUT theirs 0 1 NUMBER\r\nx")
        own = await numbered(gateway, boss, b"PUT ann 0 1 NUMBER\r\nx")
        boss.send(b"GET NUMBER %d\r\nDELETE NUMBER %d\r\n" % (running, gone))
        ann.send(b"SESSION\r\n")
        await gateway.settle()
        assert boss.take().endswith(b"200 OK\r\n")
        ann.take()
        before = gateway.cluster.machine.total("theirs")
        if not serving:
            gateway.cluster.follow("n2")
        request = 0
        for command in COMMANDS if serving else COMMANDS[:2]:      # which any node answers
            answers = []
            for number in (gone, ready, running):
                request += 1
                ann.send(command.format(n=number, r=request).encode() + b"\r\n")
                await gateway.settle()
                answers.append(ann.take())
            assert answers[0] == answers[1] == answers[2] != b"", command
            assert b"403" not in answers[0]
        assert gateway.cluster.machine.total("theirs") == before
        if serving:
            ann.send(b"PEEK NUMBER %d\r\nGET NUMBER %d\r\nCHANGE NUMBER %d PRI 5\r\n" % (own, own, own))
            await gateway.settle()
            assert ann.take().count(b"200 OK") == 3, "what is the user's is as ever"
    with_gateway(test, users=users(boss="admin", ann="queue:ann*,get:ann*"))


ENDED = (
    "PEEK NUMBER {n}", "PEEK NUMBER {n} ENDED", "PEEK NUMBER {n} ENDED HEAD LIFE", "PEEK NUMBER {n} RESULT",
    "PEEK NUMBER {n} ERROR", "JOB STAT NUMBER {n}", "DELETE NUMBER {n} ENDED", "KICK JOB NUMBER {n} ENDED",
    "AWAIT NUMBER {n} WITHIN 0",
)


def test_a_record_of_others_is_answered_like_one_that_is_gone() -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, ann = gateway.connect("boss", "boss"), gateway.connect("ann", "ann")
        boss.send(b"QUEUE CREATE theirs RETAIN 900\r\n")
        await gateway.settle()
        boss.take()
        gone, ended, ready = [
            await numbered(gateway, boss, b"PUT %b 0 1 NUMBER\r\nx" % queue)
            for queue in (b"other", b"theirs", b"theirs")
        ]
        for number in (ended, ready):
            boss.send(b"GET NUMBER %d\r\n" % number)
            await gateway.settle()
            id_ = int(boss.take().split(b"\r\n")[-2].split()[3])
            boss.send(b"LATER %d ERROR 6\r\nsecret" % id_)
            await gateway.settle()
            assert boss.take() == b"200 OK\r\n"
        boss.send(b"DELETE NUMBER %d\r\nGET NUMBER %d\r\n" % (gone, ended))
        await gateway.settle()
        id_ = int(boss.take().split(b"\r\n")[-2].split()[3])
        boss.send(b"DONE %d RESULT 6\r\nsecret" % id_)
        await gateway.settle()
        boss.take()
        boss.send(b"PEEK NUMBER %d ERROR\r\nPEEK NUMBER %d ERROR\r\n" % (ended, ready))
        await gateway.settle()
        assert boss.take().count(b"secret") == 2
        for command in ENDED:
            answers = []
            for number in (gone, ended, ready):
                ann.send(command.format(n=number).encode() + b"\r\n")
                await gateway.settle()
                answers.append(ann.take())
            assert answers[0] == answers[1] == answers[2] != b"", command
        assert gateway.cluster.machine.retained("theirs")[0] == 1
    with_gateway(test, users=users(boss="admin", ann="queue:ann*,get:ann*"))


@pytest.mark.parametrize("command", [
    b"GET NUMBER %d", b"DELETE NUMBER %d", b"CHANGE NUMBER %d DATA 3\r\nnew", b"BEGIN\r\nDELETE NUMBER %d\r\nCOMMIT",
])
def test_a_record_is_hidden_while_an_entry_brings_its_job_back(command: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, ann = gateway.connect("boss", "boss"), gateway.connect("ann", "ann")
        boss.send(b"QUEUE CREATE theirs RETAIN 900\r\n")
        await gateway.settle()
        boss.take()
        ended = await numbered(gateway, boss, b"PUT theirs 0 1 NUMBER\r\nx")
        boss.send(b"GET NUMBER %d\r\nDONE 1\r\n" % ended)
        await gateway.settle()
        assert boss.take().endswith(b"x200 OK FINQ\r\n")
        boss.send(b"KICK JOB NUMBER %d ENDED\r\n" % ended)
        ann.send(command % ended + b"\r\n")           # before the entry is executed
        await gateway.settle()
        assert boss.take() == b"200 OK 1\r\n"
        assert b"404 Job Not Found" in ann.take()
        job = gateway.cluster.machine.peek(Number(ended))
        assert job is not None
        assert (job.state, job.body()) == (JobState.READY, b"x")
    with_gateway(test, users=users(boss="admin", ann="queue:ann*,get:ann*"))


def test_a_job_that_is_no_longer_the_users_when_a_transaction_ends_is_hidden() -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, ann = gateway.connect("boss", "boss"), gateway.connect("ann", "ann")
        own = await numbered(gateway, boss, b"PUT ann 0 1 NUMBER\r\nx")
        ann.send(b"BEGIN\r\nDELETE NUMBER %d\r\n" % own)
        await gateway.settle()
        gateway.hub.access.file_users = users(boss="admin", ann="queue:other*")
        ann.send(b"COMMIT\r\n")
        await gateway.settle()
        assert ann.take().endswith(b"409 Aborted 1 404 Job Not Found\r\n")
        assert gateway.cluster.machine.ready("ann") == 1
    with_gateway(test, users=users(boss="admin", ann="queue:ann*"))


def test_without_the_right_for_any_queue_nothing_is_looked_for() -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, ann = gateway.connect("boss", "boss"), gateway.connect("ann", "ann")
        theirs = await numbered(gateway, boss, b"PUT theirs 0 1 NUMBER\r\nx")
        for number in (theirs, 5, theirs + 1):
            ann.send(b"PEEK NUMBER %d\r\nDELETE NUMBER %d\r\n" % (number, number))
            await gateway.settle()
            assert ann.take() == b"403 Forbidden\r\n" * 2
    with_gateway(test, users=users(boss="admin", ann="get"))
