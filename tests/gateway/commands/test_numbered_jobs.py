"""Commands on jobs with numbers and on buried ones, as lines and answers."""

from __future__ import annotations

import pytest

from sockpqd.core import Kick
from sockpqd.gateway.limits import PORTION_MAX
from tests.gateway.helpers.many_jobs import settle
from tests.gateway.helpers.memory import MemoryGateway, attached, with_gateway
from tests.gateway.helpers.parsing import without_reasons


async def _put(gateway: MemoryGateway, line: bytes) -> bytes:
    """Put a numbered job; returns its number."""
    answer = await gateway.talk(b"PUT " + line + b" NUMBER\r\n")
    assert answer.startswith(b"200 OK NUMBER ")
    return answer.split()[3]


def test_a_job_is_taken_by_its_number_with_a_lease_and_bound() -> None:
    async def test(gateway: MemoryGateway) -> None:
        number = await _put(gateway, b"q 0 0 DELAY 50")
        client = await attached(gateway)
        client.send(b"GET NUMBER %s EXPIRE 30 META BOUND\r\nTAKEN\r\n" % number)
        client.send(b"GET NUMBER %s\r\nGET NUMBER 7\r\n" % number)
        await gateway.settle()
        lines = client.take().split(b"\r\n")
        assert lines[0].startswith(b"200 OK q 1 0 0 NUMBER %s TRY 1 AT " % number)
        assert lines[1] == b"200 OK 1"
        assert lines[3:5] == [b"409 Job Running", b"404 Job Not Found"]
    with_gateway(test)


def test_repeated_it_is_the_same_job() -> None:
    async def test(gateway: MemoryGateway) -> None:
        number = await _put(gateway, b"q 0 0")
        client = await attached(gateway)
        client.send(b"REQ 1 GET NUMBER %s\r\nREQ 1 GET NUMBER %s\r\nREQ 2 KICK JOB NUMBER %s\r\n" % ((number,) * 3))
        await gateway.settle()
        assert client.take() == b"200 OK q 1 0 0\r\n" * 2 + b"404 Job Not Found\r\n"
    with_gateway(test)


def test_buried_here_and_kicked() -> None:
    async def test(gateway: MemoryGateway) -> None:
        number = await _put(gateway, b"q 0 0")
        assert await gateway.talk(b"GET q\r\nBURY 1 HERE PRI 5 REASON broken\r\nPEEK q BURIED\r\nQUEUE LIST\r\n") == (
            b"200 OK q 1 0 0\r\n200 OK FINQ\r\n"
            b"200 OK 1\r\nq - 5 0 BURIED NUMBER %s TRY 1 REASON broken\r\n200 OK 1\r\nq 0 0 0 0 1\r\n" % number)
        assert await gateway.talk(b"KICK q 9 HERE\r\nKICK q 9 HERE\r\nKICK JOB NUMBER %s\r\n" % number) == (
            b"200 OK 1\r\n200 OK 0\r\n404 Job Not Found\r\n")
    with_gateway(test)


def test_in_transactions() -> None:
    async def test(gateway: MemoryGateway) -> None:
        number = await _put(gateway, b"q 0 0")
        assert await gateway.talk(
            b"GET q\r\nBEGIN\r\nBURY 1 HERE\r\nKICK JOB NUMBER %s\r\nDONE 99\r\nCOMMIT\r\n"
            b"BEGIN\r\nBURY 1 HERE\r\nKICK JOB NUMBER %s\r\nCOMMIT\r\n" % (number, number)
        ) == (
            b"200 OK q 1 0 0\r\n200 OK\r\n202 Queued\r\n202 Queued\r\n202 Queued\r\n409 Aborted 3 404 Job Not Found\r\n"
            b"200 OK\r\n202 Queued\r\n202 Queued\r\n200 OK 2\r\n200 OK FINQ\r\n200 OK 1\r\n")
    with_gateway(test)


def test_a_large_kick_goes_on_in_portions_of_one_state() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client, jobs = gateway.connect(), PORTION_MAX + 5
        client.send(b"PUT q 0 0 DELAY 50\r\n")
        for job in range(1, jobs + 1):
            client.send(b"PUT q 0 0\r\nGET q\r\nBURY %d HERE\r\n" % job)
        await settle(gateway)
        client.take()
        client.send(b"KICK q 9999 HERE\r\nKICK q 9999 HERE\r\n")
        await settle(gateway)
        assert client.take() == b"200 OK %d\r\n200 OK 1\r\n" % jobs
        assert gateway.cluster.operations(Kick)[:2] == [
            Kick("q", 9999, here=True), Kick("q", 8999, here=True, buried=True),
        ]
    with_gateway(test, automatic=False)


def test_job_stat() -> None:
    async def test(gateway: MemoryGateway) -> None:
        number = await _put(gateway, b"tube/a+b 5 0 DELAY 9.5 LEASE 60")
        await gateway.talk(b"GET NUMBER %s\r\nLATER 1 PRI 6 DELAY 20\r\nKICK tube/a+b 1 HERE\r\n" % number)
        answer = await gateway.talk(b"JOB STAT NUMBER %s\r\nJOB STAT NUMBER 7\r\nJOB STAT 7\r\nJOB STAT\r\n" % number)
        first, *lines = answer.split(b"\r\n")
        figures = dict(line.split(b" ") for line in lines[:17])
        assert first == b"200 OK 17"
        assert int(figures.pop(b"CREATED")) > 0
        assert figures == {
            b"QUEUE": b"tube/a+b", b"STATE": b"READY", b"PRI": b"6", b"LENGTH": b"0", b"AGE_S": b"0", b"LEASE": b"60",
            b"DELAY": b"20", b"LEFT_S": b"0", b"ATTEMPTS": b"1", b"RESERVES": b"1", b"TIMEOUTS": b"0",
            b"RELEASES": b"1", b"BURIES": b"0", b"KICKS": b"1", b"ERROR_LENGTH": b"0", b"DIED": b"-",
        }
        assert lines[17:] == [
            b"404 Job Not Found", *[b"400 Bad Arguments: JOB STAT takes NUMBER and the number of a job"] * 2, b"",
        ]
    with_gateway(test)


def test_place_is_for_named_queues_only() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.talk(b"PUT b 0 1\r\n1PUT a 0 1\r\n2PUT b 0 1\r\n3")
        assert await gateway.talk(b"GET a|b COUNT 9 BY PLACE\r\n") == (
            b"200 OK 3\r\nb 1 0 1\r\na 2 0 1\r\nb 3 0 1\r\n123")
        policies = b"RANDOM, PRIORITY, WEIGHT, RR, ORDER, SORTED, OLDEST or FAIR"
        assert await gateway.talk(b"GET * BY PLACE\r\nPOLICY PLACE\r\nCONFIG POLICY PLACE\r\n") == (
            b"400 Bad Arguments: BY PLACE is for named queues, not for *\r\n"
            b"400 Bad Arguments: expected %s, not 'PLACE'\r\n"
            b"400 Bad Arguments: POLICY wants %s, not 'PLACE'\r\n") % (policies, policies)
    with_gateway(test)


def test_whoever_waits_by_place_is_woken() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"GETB a|b BY PLACE\r\n")
        await gateway.settle()
        assert client.take() == b""
        await gateway.talk(b"PUT b 0 1\r\nx")
        await gateway.settle()
        assert client.take() == b"200 OK b 1 0 1\r\nx"
    with_gateway(test)


def test_a_pause_that_ends_wakes_who_waits() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        assert await gateway.talk(b"PUT q 0 1\r\nxQUEUE PAUSE q OUT FOR 2\r\n") == b"200 OK\r\n" * 2
        client.send(b"GETB q\r\n")
        await gateway.settle()
        assert client.take() == b""
        gateway.cluster.pass_time(2.1)
        await gateway.settle()
        assert client.take() == b"200 OK q 1 0 1\r\nx"
        for line in b"QUEUE PAUSE q IN FOR 2", b"QUEUE PAUSE q OUT FOR", b"QUEUE PAUSE q OUT FOR 4294967296":
            assert (await gateway.talk(line + b"\r\n")).startswith(b"400 Bad Arguments: ")
    with_gateway(test)


@pytest.mark.parametrize("name", [b"a+b", b".hidden", b"/x", b";$()", b"$", b"Default/mails"])
def test_names_as_beanstalkd_has_them(name: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        assert await gateway.talk(b"PUT %s 0 1\r\nxGET %s|none\r\nQUEUE STAT %s\r\n" % (name, name, name)) != b""
        assert gateway.cluster.machine.queue_names("") == [name.decode()]
    with_gateway(test)


def test_one_line_keeps_several_sessions() -> None:
    async def test(gateway: MemoryGateway) -> None:
        sids = [(await gateway.talk(b"SESSION TTL 10\r\n")).split()[3] for _ in range(3)]
        wrong = sids[0][:-1] + (b"0" if sids[0][-1:] != b"0" else b"1")
        for _ in range(4):
            gateway.cluster.pass_time(5)
            line = b"SESSION KEEP %s %s %s 99_0123456789abcdef\r\n" % (sids[1], sids[2], wrong)
            assert await gateway.talk(line) == b"200 OK 2\r\n"
        assert await gateway.talk(b"SESSION %s\r\n" % sids[0]) == b"404 Session Not Found\r\n"
        assert (await gateway.talk(b"SESSION %s\r\n" % sids[1])).startswith(b"200 OK SESSION")
        assert without_reasons(await gateway.talk(b"SESSION KEEP\r\nSESSION KEEP x\r\n")) == (
            b"400 Bad Arguments\r\n" * 2)
    with_gateway(test)
