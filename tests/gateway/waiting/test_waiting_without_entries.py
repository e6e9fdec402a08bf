"""A client that comes when there is nothing waits without an entry of the log; its job is requested when there is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import cast

import pytest

from sockpqd.cluster.api import Cluster
from sockpqd.core import Get, GetWith, Machine, Put, PutWith, Request
from sockpqd.core import limits as core_limits
from sockpqd.core.rules import fair_choice
from sockpqd.gateway.limits import CLOSED_LOOKED_AT_MAX, Limits
from sockpqd.gateway.waiting.pending_puts import PendingPuts
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway, attached, with_gateway
from tests.gateway.helpers.waiting_model import assert_nobody_is_forgotten

WORKERS = 200
IDLE = ["GETB q", "GETB a|q", "GETB", "GETB * IS x", "GETB q IS x COUNT 5", "GETB q COUNT 100", "GETB q WITHIN 60"]


def entries(gateway: MemoryGateway) -> int:
    """Return how many entries were committed."""
    return len(gateway.cluster.log)


def gets(gateway: MemoryGateway) -> int:
    """Return how many jobs, or portions of jobs, were asked for in the log."""
    return len(gateway.cluster.operations(Get)) + len(gateway.cluster.operations(GetWith))


async def commit_all(gateway: MemoryGateway) -> None:
    """Wait until nothing is in flight."""
    for _ in range(20):
        gateway.cluster.commit()
        await gateway.settle()
        if not gateway.cluster.in_flight:
            return
    raise AssertionError("somebody spins")


# ---- nothing is written

def test_two_hundred_idle_workers_write_nothing_and_one_job_is_one_get() -> None:
    async def test(gateway: MemoryGateway) -> None:
        before = entries(gateway)
        workers = [gateway.connect(str(number)) for number in range(WORKERS)]
        for number, worker in enumerate(workers):
            worker.send(f"{IDLE[number % len(IDLE)]}\r\n".encode())
        await asyncio.sleep(0.05)
        assert entries(gateway) == before
        assert gateway.cluster.in_flight == []
        assert len(gateway.hub.job_waiters) == WORKERS
        gateway.connect().send(b"PUT q 0 1\r\nx")
        await gateway.settle()
        assert len(gateway.cluster.operations(Get)) == 1
        assert [bool(worker.take()) for worker in workers] == [True] + [False] * (WORKERS - 1)
    with_gateway(test, Limits(connections_max=1000))


def test_the_log_decides_where_very_many_queues_have_jobs_of_closed_groups_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = 0
    offering = Machine.offering

    def counting(machine: Machine, queues: tuple[str, ...] | None, item: str | None) -> Iterator[str | None]:
        nonlocal looked
        for name in offering(machine, queues, item):
            looked += 1
            yield name
    monkeypatch.setattr(Machine, "offering", counting)

    async def test(gateway: MemoryGateway) -> None:
        owner = gateway.connect()
        owner.send(b"GROUP PAUSE tenant\r\n")
        for number in range(2 * CLOSED_LOOKED_AT_MAX):
            owner.send(b"QUEUE CREATE q%d SCHED GROUPS\r\nPUT q%d 0 0 GROUP tenant\r\n" % (number, number))
        await gateway.settle()
        worker = gateway.connect()
        worker.send(b"GETB\r\n")
        await gateway.settle()
        assert looked <= CLOSED_LOOKED_AT_MAX
        assert len(gateway.cluster.operations(Get)) == 1
        assert (worker.take(), len(gateway.hub.job_waiters)) == (b"", 1), "it waits as ever"
        owner.send(b"PUT open 0 1\r\nx")
        await gateway.settle()
        assert worker.take() == b"200 OK open 1 0 1\r\nx"
        worker.send(b"GETB\r\n")
        await gateway.settle()
        owner.send(b"GROUP RESUME tenant\r\n")
        await gateway.settle()
        assert worker.take().startswith(b"200 OK q")
    with_gateway(test)


def test_the_log_decides_where_an_item_has_jobs_of_very_many_closed_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_choice, "LOOKS", 1)

    async def test(gateway: MemoryGateway) -> None:
        owner, worker = gateway.connect(), gateway.connect()
        owner.send(b"QUEUE CREATE q SCHED GROUPS\r\n")
        for number in range(CLOSED_LOOKED_AT_MAX + 1):
            owner.send(b"GROUP PAUSE g%d\r\nPUT q 0 1 IS x GROUP g%d\r\nx" % (number, number))
        await commit_all(gateway)
        worker.send(b"GETB q IS x\r\n")
        await commit_all(gateway)
        assert len(gateway.cluster.operations(Get)) == 1
        assert (worker.take(), len(gateway.hub.job_waiters)) == (b"", 1), "it waits as ever"
        owner.send(b"GROUP RESUME g%d\r\n" % CLOSED_LOOKED_AT_MAX)
        await commit_all(gateway)
        assert worker.take() == b"200 OK q 1 0 1 IS x\r\nx"
        worker.send(b"GETB q IS x\r\n")
        await commit_all(gateway)
        assert worker.take() == b""
        assert_nobody_is_forgotten(gateway)
    with_gateway(test)


@pytest.mark.parametrize("queues", ["*", "|".join([*(f"q{number:02}" for number in range(20)), "z"])])
@pytest.mark.parametrize("policy", ["RANDOM", "ORDER", "PRIORITY"])
def test_a_job_behind_very_many_closed_queues_takes_one_get(
    policy: str, queues: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it was left out with them, its waiter was sent again and again, for ever by ORDER."""
    monkeypatch.setattr(core_limits, "CLOSED_QUEUES_MAX", 4)

    async def test(gateway: MemoryGateway) -> None:
        owner, worker = gateway.connect(), gateway.connect()
        owner.send(b"CONFIG POLICY %b\r\nGROUP PAUSE tenant\r\n" % policy.encode())
        for number in range(20):
            owner.send(b"QUEUE CREATE q%02d SCHED GROUPS\r\nPUT q%02d 9 0 GROUP tenant\r\n" % (number, number))
        await gateway.settle()
        worker.send(f"GETB {queues}\r\n".encode())
        await gateway.settle()
        before = gets(gateway)
        owner.send(b"PUT z 0 1\r\nx")
        await gateway.settle()
        assert worker.take() == b"200 OK z 1 0 1\r\nx"
        assert gets(gateway) == before + 1
    with_gateway(test)


@pytest.mark.parametrize("queues", ["*", "|".join([*(f"q{number:02}" for number in range(20)), "z"])])
@pytest.mark.parametrize("policy", ["RANDOM", "ORDER", "PRIORITY", "WEIGHT"])
def test_so_does_a_job_of_an_item(policy: str, queues: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_limits, "CLOSED_QUEUES_MAX", 4)

    async def test(gateway: MemoryGateway) -> None:
        owner, worker = gateway.connect(), gateway.connect()
        owner.send(b"CONFIG POLICY %b\r\nGROUP PAUSE tenant\r\n" % policy.encode())
        for number in range(20):
            owner.send(b"QUEUE CREATE q%02d SCHED GROUPS\r\nPUT q%02d 9 0 IS x GROUP tenant\r\n" % (number, number))
        await gateway.settle()
        worker.send(f"GETB {queues} IS x\r\n".encode())
        await gateway.settle()
        before = gets(gateway)
        owner.send(b"PUT z 0 1 IS x\r\nx")
        await gateway.settle()
        assert worker.take() == b"200 OK z 1 0 1 IS x\r\nx"
        assert gets(gateway) == before + 1
    with_gateway(test)


@pytest.mark.parametrize("line", ["GETB q BOUND", "REQ 1 GETB q", "REQ 1 GETB q COUNT 3 BOUND"])
def test_nor_do_those_in_a_session_until_it_has_to_be_used(line: str) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        before = entries(gateway)
        client.send(f"{line}\r\n".encode())
        await gateway.settle()
        assert entries(gateway) == before
        assert gateway.cluster.machine.sessions()[0].newest == 0, "a number counts from its proposal"
        gateway.connect().send(b"PUT q 0 1\r\nx")
        await gateway.settle()
        assert b"q 1 0 1" in client.take()
        assert gateway.cluster.machine.sessions()[0].newest == int("REQ" in line)
    with_gateway(test)


def test_a_worker_that_says_done_and_getb_in_one_packet_writes_one_operation() -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker = gateway.connect()
        worker.send(b"PUT q 0 1\r\nxGETB q\r\n")
        await commit_all(gateway)
        worker.take()
        worker.send(b"DONE 1\r\nGETB q\r\n")
        assert len(gateway.cluster.in_flight) == 1
        gateway.cluster.commit()
        assert worker.take() == b"200 OK FINQ\r\n"
        assert gateway.cluster.in_flight == []
    with_gateway(test, automatic=False)


def test_put_wait_writes_its_put_only() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client, worker = gateway.connect(), gateway.connect()
        client.send(b"PUT w 0 1 NEW WAIT o\r\nx")
        assert gateway.cluster.in_flight == [Put("w", 0, b"x", None, True)]
        gateway.cluster.commit()
        assert client.take() == b"206 Wait for output IS i1\r\n"
        assert gateway.cluster.in_flight == []
        worker.send(b"PUT o 0 1 IS i1\r\ny")
        assert gateway.cluster.in_flight == [Put("o", 0, b"y", "i1"), Get(("o",), item="i1")]
        gateway.cluster.commit()
        assert client.take() == b"200 OK o 1 0 1 IS i1\r\ny"
    with_gateway(test, automatic=False)


@pytest.mark.parametrize("line", [b"PUT w 0 1 IS it WAIT o\r\nx", b"PUT o 1 1 IS it WAIT o\r\nx"])
def test_put_wait_has_its_output_by_one_entry_when_it_is_there(line: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT o 0 1 IS it\r\ny")
        gateway.cluster.commit()
        client.take()
        client.send(line)
        gateway.cluster.commit()
        assert client.take().startswith(b"206 Wait for output\r\n200 OK o 1 ")
    with_gateway(test, automatic=False)


def test_put_wait_finds_an_output_that_came_in_the_entry_of_its_put() -> None:
    async def test(gateway: MemoryGateway) -> None:
        first, second, worker = gateway.connect(), gateway.connect(), gateway.connect()
        first.send(b"PUT w 0 1 IS it WAIT o\r\nx")
        gateway.cluster.commit()
        assert first.take() == b"206 Wait for output\r\n"
        second.send(b"PUT w 0 1 IS it WAIT o\r\nx")
        worker.send(b"PUTS 1\r\no 0 1 IS it\r\ny")         # nobody is sent right behind it
        await commit_all(gateway)
        assert first.take() == b"200 OK o 1 0 1 IS it\r\ny", "the one that came first"
        assert second.take() == b"206 Wait for output\r\n"
        worker.send(b"PUTS 1\r\no 0 1 IS it\r\nz")
        await commit_all(gateway)
        assert second.take() == b"200 OK o 2 0 1 IS it\r\nz"
    with_gateway(test, automatic=False)


@pytest.mark.parametrize("line", ["GETB q", "GETB p|q", "GETB", "GETB q IS x", "REQ 1 GETB q COUNT 3"])
def test_who_comes_behind_a_put_whose_entry_is_open_is_in_that_entry(line: str) -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker, second, other = await attached(gateway), gateway.connect(), gateway.connect()
        gateway.cluster.automatic = False
        before = entries(gateway)
        gateway.connect().send(b"PUT q 0 1 IS x\r\nj")
        worker.send(f"{line}\r\n".encode())
        second.send(b"GETB q\r\n")
        other.send(b"GETB q IS y\r\n")
        assert len(gateway.cluster.in_flight) == 2, "one Get for one job"
        await commit_all(gateway)
        assert b"q 1 0 1" in worker.take()
        assert second.take() + other.take() == b""
        assert entries(gateway) == before + 1
        gateway.connect().send(b"PUT q 0 1\r\nk")
        await commit_all(gateway)
        assert second.take() == b"200 OK q 2 0 1\r\nk"
        assert_nobody_is_forgotten(gateway)
    with_gateway(test)


def test_nothing_is_asked_for_behind_a_put_once_its_entry_is_closed() -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker, producer = gateway.connect(), gateway.connect()
        producer.send(b"PUT q 0 1\r\nx")
        gateway.cluster.log.append([])          # as when its entry is sent and not applied yet
        worker.send(b"GETB q\r\n")
        assert gateway.cluster.in_flight == [Put("q", 0, b"x")]
        await commit_all(gateway)
        assert worker.take() == b"200 OK q 1 0 1\r\nx"
    with_gateway(test, automatic=False)


def test_who_came_behind_a_put_that_is_refused_waits_in_line() -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker, producer = gateway.connect(), gateway.connect()
        producer.send(b"PUT q 0 1 KEY k\r\nxGET q\r\n")
        await commit_all(gateway)
        producer.send(b"PUT q 0 1 KEY k\r\ny")
        worker.send(b"GETB q\r\n")
        await commit_all(gateway)
        assert worker.take() == b""
        assert len(gateway.hub.job_waiters) == 1
        producer.send(b"PUT q 0 1\r\nz")
        await commit_all(gateway)
        assert worker.take() == b"200 OK q 2 0 1\r\nz"
        assert_nobody_is_forgotten(gateway)
    with_gateway(test, automatic=False)


# ---- who is sent

def test_of_many_workers_that_come_for_one_job_one_is_sent() -> None:
    async def test(gateway: MemoryGateway) -> None:
        workers = [gateway.connect() for _ in range(5)]
        gateway.connect().send(b"PUT q 0 1\r\nx")
        gateway.cluster.commit()
        for worker in workers:
            worker.send(b"GETB q|p\r\n")
        assert gateway.cluster.in_flight == [Get(("q", "p"))]
        gateway.cluster.commit()
        assert [worker.take() for worker in workers] == [b"200 OK q 1 0 1\r\nx", b"", b"", b"", b""]
        assert_nobody_is_forgotten(gateway)
    with_gateway(test, automatic=False)


def test_when_the_one_that_was_sent_takes_another_job_the_next_gets_this_one() -> None:
    async def test(gateway: MemoryGateway) -> None:
        both, only, producer = gateway.connect(), gateway.connect(), gateway.connect()
        producer.send(b"PUT q 0 1\r\nx")
        gateway.cluster.commit()
        producer.send(b"PUT p 5 1\r\ny")
        both.send(b"GETB q|p BY PRIORITY\r\n")      # sent for q, and takes the job of p
        only.send(b"GETB q\r\n")
        assert [type(operation) for operation in gateway.cluster.in_flight] == [Put, GetWith]
        await commit_all(gateway)
        assert both.take() == b"200 OK p 1 5 1\r\ny"
        assert only.take() == b"200 OK q 2 0 1\r\nx"
    with_gateway(test, automatic=False)


def test_when_the_job_was_stolen_both_wait_in_the_order_of_their_coming() -> None:
    async def test(gateway: MemoryGateway) -> None:
        thief, first, second = gateway.connect(), gateway.connect(), gateway.connect()
        thief.send(b"PUT q 0 1\r\nx")
        gateway.cluster.commit()
        thief.send(b"GET q\r\n")
        first.send(b"GETB q\r\n")           # is sent, behind the thief
        second.send(b"GETB q\r\n")          # stands
        gateway.cluster.commit()
        thief.send(b"PUT q 0 1\r\nyPUT q 0 1\r\nz")
        await commit_all(gateway)
        assert first.take() == b"200 OK q 2 0 1\r\ny"
        assert second.take() == b"200 OK q 3 0 1\r\nz"
    with_gateway(test, automatic=False)


def test_a_get_that_has_no_turn_leaves_its_job_to_the_next() -> None:
    async def test(gateway: MemoryGateway) -> None:
        leaver, other = gateway.connect(), gateway.connect()
        leaver.send(b"PUT q 0 1\r\nx")
        gateway.cluster.commit()
        leaver.send(b"GETB q\r\n")
        other.send(b"GETB q\r\n")
        leaver.end()
        gateway.cluster.neglect()
        await commit_all(gateway)
        assert other.take() == b"200 OK q 1 0 1\r\nx"
        assert_nobody_is_forgotten(gateway)
    with_gateway(test, automatic=False)


BEFORE = b"PUT q 0 1 IS x\r\na" b"GET q EXPIRE 5 THEN LATER\r\n"


@pytest.mark.parametrize(("before", "then", "seconds"), [
    (b"", b"PUTS 1\r\nq 0 1 IS x\r\na", 0),
    (b"", b"PUT q 0 1 IS x DELAY 5\r\na", 6),
    (b"", b"PUT q 0 1 IS x AFTER it\r\na" b"PUT i 0 1 IS it\r\nb" b"GET i\r\n" b"DONE 1\r\n", 0),
    (BEFORE, b"LATER 1\r\n", 0),
    (BEFORE, b"", 6),
    (BEFORE, b"BEGIN\r\nMOVE 1 q\r\nCOMMIT\r\n", 0),
    (b"QUEUE CREATE q DEADLETTER d\r\n" + BEFORE + b"BURY 1\r\n", b"KICK q 5\r\n", 0),
    (b"QUEUE PAUSE q OUT\r\nPUT q 0 1 IS x\r\na", b"QUEUE RESUME q\r\n", 0),
    (b"QUEUE CREATE q LIMIT 1\r\n" + BEFORE + b"PUT q 0 1 IS x\r\na", b"DONE 1\r\n", 0),
    (b"QUEUE CREATE q LIMIT 1\r\n" + BEFORE + b"PUT q 0 1 IS x\r\na", b"QUEUE CONFIG q LIMIT 2\r\n", 0),
    (b"QUEUE CREATE q ITEMLIMIT 1\r\n" + BEFORE + b"PUT q 0 1 IS x\r\na", b"DONE 1\r\n", 0),
    (b"PUT q 0 1 IS x KEY k DELAY 100\r\na", b"CHANGE KEY q k DELAY 0\r\n", 0),
])
@pytest.mark.parametrize("line", ["GETB q", "GETB p|q COUNT 3", "GETB q IS x", "GETB p|q IS x"])
def test_whatever_makes_a_job_available_wakes_who_never_asked(
    line: str, before: bytes, then: bytes, seconds: int,
) -> None:
    async def test(gateway: MemoryGateway) -> None:
        owner, worker = gateway.connect(), gateway.connect()
        owner.send(before)
        await commit_all(gateway)
        worker.send(f"{line}\r\n".encode())
        await gateway.settle()
        assert gateway.cluster.in_flight == []
        assert worker.take() == b""
        owner.send(then)
        await commit_all(gateway)
        if seconds:
            gateway.cluster.pass_time(seconds)
            await gateway.settle()
            await commit_all(gateway)
        assert worker.take().startswith(b"200 OK "), owner.take()
        assert_nobody_is_forgotten(gateway)
    with_gateway(test, automatic=False)


def test_a_job_whose_ttl_is_over_is_nothing_to_be_sent_for() -> None:
    async def test(gateway: MemoryGateway) -> None:
        owner, worker = gateway.connect(), gateway.connect()
        owner.send(b"QUEUE CREATE q CAPACITY 1\r\nQUEUE PAUSE q OUT\r\nPUT q 0 1 TTL 5\r\nx")
        await commit_all(gateway)
        worker.send(b"GETB q\r\n")
        gateway.cluster.pass_time(6)
        owner.send(b"QUEUE RESUME q\r\nPUT q 0 1\r\ny")
        await commit_all(gateway)
        owner.take()
        assert worker.take() == b"200 OK q 1 0 1\r\ny"
    with_gateway(test, automatic=False)


def test_a_put_that_is_refused_leaves_the_waiter_waiting() -> None:
    async def test(gateway: MemoryGateway) -> None:
        owner, worker = gateway.connect(), gateway.connect()
        owner.send(b"QUEUE CREATE q CAPACITY 1\r\nQUEUE PAUSE q OUT\r\nPUT q 0 1\r\nx")
        await commit_all(gateway)
        worker.send(b"GETB q\r\n")
        owner.send(b"PUT q 0 1\r\ny")
        await commit_all(gateway)
        assert owner.take().endswith(b"503 Queue Full\r\n")
        assert len(gateway.hub.job_waiters) == 1
        owner.send(b"QUEUE RESUME q\r\n")
        await commit_all(gateway)
        assert worker.take() == b"200 OK q 1 0 1\r\nx"
    with_gateway(test, automatic=False)


# ---- what the log decides

def test_the_end_of_within_is_a_get_whose_outcome_is_the_answer() -> None:
    async def test(gateway: MemoryGateway) -> None:
        empty, lucky = gateway.connect(), gateway.connect()
        empty.send(b"GETB q WITHIN 0.01\r\n")
        assert gateway.cluster.in_flight == []
        await asyncio.sleep(0.03)
        assert gateway.cluster.in_flight == [Get(("q",))]
        assert empty.take() == b""
        gateway.cluster.commit()
        assert empty.take() == b"404 Queue Empty\r\n"
        lucky.send(b"GETB q WITHIN 0.01\r\n")
        gateway.connect().send(b"PUTS 1\r\nq 0 1\r\nx")        # nobody is sent right behind it
        await asyncio.sleep(0.03)
        gateway.cluster.commit()
        assert lucky.take() == b"200 OK q 1 0 1\r\nx"
        assert len(gateway.hub.job_waiters) == 0
    with_gateway(test, automatic=False)


def test_so_it_is_with_put_wait_also_before_its_put_is_done() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT w 0 1 NEW WAIT o WITHIN 0.01\r\nx")
        gateway.cluster.commit()
        await asyncio.sleep(0.03)
        assert gateway.cluster.in_flight == [Get(("o",), item="i1")]
        gateway.cluster.commit()
        assert client.take() == b"206 Wait for output IS i1\r\n408 Wait Timeout\r\n"
        client.send(b"PUT w 0 1 NEW WAIT o WITHIN 0.01\r\nx")
        await asyncio.sleep(0.03)
        gateway.cluster.commit()
        assert gateway.cluster.in_flight == [Get(("o",), item="i2")]
        gateway.cluster.commit()
        assert client.take() == b"206 Wait for output IS i2\r\n408 Wait Timeout\r\n"
    with_gateway(test, automatic=False)


def test_that_all_work_is_finished_is_said_by_the_log() -> None:
    async def test(gateway: MemoryGateway) -> None:
        early, worker, late = gateway.connect(), gateway.connect(), gateway.connect()
        worker.send(b"PUT q 0 1\r\nxGET q\r\n")
        gateway.cluster.commit()
        worker.take()
        early.send(b"GETBE q\r\n")
        assert gateway.cluster.in_flight == []
        worker.send(b"DONE 1\r\n")
        gateway.cluster.commit()
        assert worker.take() == b"200 OK FINQ\r\n"
        assert early.take() == b""
        late.send(b"GETBE q|p\r\n")
        assert gateway.cluster.in_flight == [Get(("q",)), Get(("q", "p"))]
        gateway.cluster.commit()
        assert early.take() == late.take() == b"404 Queue Empty\r\n"
    with_gateway(test, automatic=False)


# ---- sessions

def test_a_session_that_has_ended_is_told_at_once() -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = [await attached(gateway) for _ in range(2)]
        other = gateway.connect()
        for session in gateway.cluster.machine.sessions():
            other.send(b"SESSION END %d\r\n" % session.number)
        await gateway.settle()
        clients[0].send(b"REQ 1 GETB q\r\n")
        clients[1].send(b"GETB q BOUND\r\n")
        await gateway.settle()
        assert [client.take() for client in clients] == [b"404 Session Not Found\r\n"] * 2
    with_gateway(test)


def test_a_session_near_its_end_is_used_by_who_begins_to_wait() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway, b"SESSION TTL 60\r\n")
        gateway.cluster.now_ms += 29_000
        client.send(b"GETB q BOUND\r\n")
        assert gateway.cluster.in_flight == []
        client = await attached(gateway, b"SESSION TTL 60\r\n")
        gateway.cluster.now_ms += 31_000
        client.send(b"GETB q BOUND\r\n")
        assert gateway.cluster.in_flight == [Get(("q",), session=2)]
        gateway.cluster.commit()
        assert gateway.cluster.machine.sessions()[1].deadline_ms == gateway.cluster.now_ms + 60_000
    with_gateway(test, automatic=False)


def test_a_number_that_has_an_answer_gets_it_at_once() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        client.send(b"REQ 1 GETBE q\r\nREQ 2 GET q\r\n")
        await gateway.settle()
        assert client.take() == b"404 Queue Empty\r\n" * 2
        client.send(b"PUT q 0 1\r\nxGET q\r\nREQ 2 GETB q\r\nREQ 1 GETBE q\r\n")
        await gateway.settle()
        assert client.take().endswith(b"x409 Request Mismatch\r\n404 Queue Empty\r\n")
    with_gateway(test)


# ---- the end

@pytest.mark.parametrize("line", [b"GETB q\r\n", b"GETB q WITHIN 60\r\n", b"REQ 1 GETB q BOUND\r\n"])
def test_a_deposed_leader_refuses_who_never_asked(line: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        client.send(line)
        await gateway.settle()
        gateway.cluster.follow(None)
        await gateway.settle()
        assert client.take() == b"500 Offline Mode\r\n"
        assert len(gateway.hub.job_waiters) == 0
    with_gateway(test)


@pytest.mark.parametrize(("fate", "answer"), [
    ("refuse", b"500 Offline Mode\r\n"), ("lose", b""), ("neglect", b"503 Busy\r\n"),
])
def test_one_line_speaks_for_a_put_wait_whose_put_was_not_executed(fate: str, answer: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT w 0 1 NEW WAIT o\r\nx")
        getattr(gateway.cluster, fate)()
        await gateway.settle()
        assert client.take() == answer
        assert client.closed == (fate == "lose")
        assert gateway.cluster.in_flight == []
        if fate != "lose":
            client.send(b"PING\r\n")
            await gateway.settle()
            assert client.take() == b"200 OK\r\n", "it waits for nothing"
    with_gateway(test, automatic=False)


def test_put_wait_behind_a_leadership_is_refused_after_its_206() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT w 0 1 NEW WAIT o\r\nx")
        gateway.cluster.follow(None)
        gateway.cluster.commit()            # the PUT was on its way
        await gateway.settle()
        assert client.take() == b"206 Wait for output IS i1\r\n500 Offline Mode\r\n"
    with_gateway(test, automatic=False)


def vanished(gateway: MemoryGateway, line: bytes) -> MemoryClient:
    """Send this as a client and vanish."""
    client = gateway.connect()
    client.send(line)
    client.vanish()
    return client


@pytest.mark.parametrize("line", [b"GETB q\r\n", b"PUT w 0 1 IS it WAIT q\r\nx"])
def test_who_has_gone_is_asked_for_no_more(line: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        vanished(gateway, line)
        await gateway.settle()
        await commit_all(gateway)
        producer = gateway.connect()
        producer.send(b"PUT q 0 1 IS it\r\nx")
        await commit_all(gateway)
        handed = [*gateway.cluster.operations(Get), *gateway.cluster.operations(Request)]
        assert handed == []
        assert len(gateway.hub.job_waiters) == 0
    with_gateway(test, automatic=False)


def test_the_last_byte_cancels_who_waits_and_the_answers_before_are_still_sent() -> None:
    async def test(gateway: MemoryGateway) -> None:
        idle, maker, worker = gateway.connect(), gateway.connect(), gateway.connect()
        idle.send(b"GETB q\r\n")
        idle.end()
        assert idle.closed
        assert gateway.cluster.in_flight == []
        maker.send(b"PUTS 1\r\np 0 1\r\nxGETB p\r\nPING\r\n")
        maker.end()
        worker.send(b"DONE 77\r\nGETB r\r\n")
        worker.end()
        assert not worker.closed
        await commit_all(gateway)
        assert maker.take() == b"200 OK 1\r\n200 OK\r\n200 OK p 1 0 1\r\nx200 OK\r\n"
        assert worker.take() == b"404 Job Not Found\r\n"
        assert maker.closed
        assert worker.closed
    with_gateway(test, automatic=False)


def test_the_answers_before_a_waiter_that_was_sent_are_sent_as_well() -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker, producer = gateway.connect(), gateway.connect()
        worker.send(b"DONE 77\r\nGETB q\r\n")
        producer.send(b"PUT q 0 1\r\nx")        # the waiter's Get stands behind it
        worker.end()
        await commit_all(gateway)
        assert worker.take() == b"404 Job Not Found\r\n200 OK q 1 0 1\r\nx"
    with_gateway(test, automatic=False)


@pytest.mark.parametrize("comes", [True, False])
def test_a_number_that_was_sent_is_answered_behind_the_last_byte(comes: bool) -> None:
    """Its job would not be given back: a client that withdraws the command would hear of it only as its lease ends."""
    async def test(gateway: MemoryGateway) -> None:
        worker, producer = await attached(gateway), gateway.connect()
        worker.send(b"REQ 1 GETB q COUNT 10\r\n")
        assert gateway.cluster.in_flight == []
        if not comes:
            producer.send(b"PUT q 0 1\r\ny")
            producer.send(b"GET q\r\n")
            gateway.cluster._in_flight[1:] = reversed(gateway.cluster._in_flight[1:])      # the thief is first
        else:
            producer.send(b"PUT q 0 1\r\nx")
        worker.end()
        assert not worker.closed
        await commit_all(gateway)
        assert worker.take() == (b"200 OK 1\r\nq 1 0 1\r\nx" if comes else b"")
        assert worker.closed
        assert_nobody_is_forgotten(gateway)
    with_gateway(test, automatic=False)


def test_put_with_options_is_waited_for_in_the_same_way() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT w 0 1 IS it WAIT o KEY k\r\nx")
        assert [type(operation) for operation in gateway.cluster.in_flight] == [PutWith]
        gateway.cluster.commit()
        client.send(b"")
        assert client.take() == b"206 Wait for output\r\n"
        assert len(gateway.hub.job_waiters) == 1
    with_gateway(test, automatic=False)


# ---- jobs that are coming

class Turns:
    """A cluster that collects this entry; 0: clients take turns."""

    collecting = 1


def test_what_is_in_an_entry_is_not_coming_any_more() -> None:
    cluster = Turns()
    coming = PendingPuts(cast(Cluster, cluster))
    coming.turn_ended(cluster.collecting)
    coming.note(Put("q", 0, b"x"))
    coming.turn_ended(cluster.collecting)                     # a turn without an entry
    assert coming.queue_for(Get(("q",))) == "q"
    cluster.collecting = 2
    assert coming.queue_for(Get(("q",))) is None
    coming.turn_ended(cluster.collecting)
    assert coming.queue_for(Get(("q",))) is None


def test_nothing_piles_up_while_clients_take_turns() -> None:
    cluster = Turns()
    cluster.collecting = 0
    coming = PendingPuts(cast(Cluster, cluster))
    for _ in range(100):
        for _ in range(10):
            coming.note(Put("q", 0, b"x"))
        assert coming.queue_for(Get(("q",))) is None
        coming.turn_ended(cluster.collecting)
    assert len(coming) == 0
