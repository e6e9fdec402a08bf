"""Waiters that take many jobs, wait for an item of several queues, or for a time, before queues that withhold jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sockpqd.core import Get, GetWith, Machine, Put
from sockpqd.gateway.limits import FINISHED_LOOKED_AT_MAX
from sockpqd.gateway.waiting.job_waiter import JobWaiter
from tests.gateway.helpers.fake_cluster import returned
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway, with_gateway
from tests.gateway.helpers.waiting_model import assert_nobody_is_forgotten

WAIT_S = 60.0
CLIENTS = 5
WORKER = CLIENTS        # one more, who never waits

WAITING = [
    "GETB a", "GETB", "GETBE a|b", "GETB * COUNT 2", "GETB a COUNT 3", "GETB a|b COUNT 10", "GETBE b COUNT 2",
    "GETB a|b IS x", "GETB * IS x", "GETB * IS y COUNT 2", "GETBE a|b IS x", "GETBE * IS y", "GETBE * COUNT 3",
    "GETB a WITHIN 1000", "GETB * IS x WITHIN 1000", "GETBE b WITHIN 0", "GETB b COUNT 2 WITHIN 1000",
    "GETB a|b BY PRIORITY", "GETB * META", "PUT w 0 1 IS x WAIT a\r\nz", "PUT w 0 1 IS y WAIT b WITHIN 1000\r\nz",
]
# Of one session, which all clients have: whoever says the same number asks for the same answer.
WAITING += [
    "REQ 1 GETB a COUNT 2", "REQ 2 GETB * IS x", "REQ 3 GETBE b COUNT 3 WITHIN 1000", "REQ 4 GETB a|b IS x COUNT 2",
    "REQ 5 PUT w 0 1 IS x WAIT a WITHIN 1000\r\nz", "REQ 1 GETB a COUNT 2", "GETB a|b BOUND COUNT 2",
]
SESSION = b"SESSION 1_9f3c5a7e11d0c2b4\r\n"
OTHERS = [
    "PUT a 0 1\r\n1", "PUT b 0 1 IS x\r\n2", "PUT a 0 1 IS x\r\n3", "PUT a 0 1 IS y\r\n4",
    "PUTS 3\r\na 0 1\r\n5a 0 1 IS x\r\n6b 0 1\r\n7", "PUT a 0 1 DELAY 5\r\n8", "PUT a 0 1 IS x DELAY 5\r\n9",
    "PUT b 0 1 IS y TTL 3\r\n0", "PUT b 0 1 IS x\r\n2", "PUT a 0 1 IS x\r\n3",
    "QUEUE PAUSE a OUT", "QUEUE RESUME a", "QUEUE CONFIG a LIMIT 1", "QUEUE CONFIG a LIMIT 0",
    "QUEUE CONFIG b ITEMLIMIT 1", "QUEUE CONFIG b ITEMLIMIT 0", "QUEUE CONFIG a BATCH 1", "QUEUE PURGE a READY",
    "QUEUE DELETE a FORCE", "GET a", "GET * COUNT 2", "PUT b 0 1 IS x KEY k ONDUP REPLACE\r\nk",
    "CHANGE KEY b k DELAY 3", "CHANGE KEY b k IS y", "DELETE KEY b k",
]
STEPS = st.one_of(
    st.tuples(st.just("say"), st.integers(0, CLIENTS - 1), st.sampled_from(WAITING)),
    st.tuples(st.just("say"), st.just(WORKER), st.sampled_from(OTHERS)),
    st.tuples(st.just("say"), st.just(WORKER), st.sampled_from(OTHERS)),
    st.tuples(st.sampled_from(["DONE", "LATER", "BURY"]), st.just(WORKER), st.integers(1, 12)),
    st.tuples(st.just("commit"), st.integers(0, 4), st.none()),
    st.tuples(st.just("commit"), st.just(None), st.none()),
    st.tuples(st.just("time"), st.integers(1, 6), st.none()),
    st.tuples(st.just("over"), st.integers(0, 3), st.none()),
    st.tuples(st.just("leave"), st.integers(0, CLIENTS - 1), st.none()),
)
# So many entries in a row may only serve waiters that were sent for nothing: above it somebody spins.
ENTRIES_MAX = 30


@given(steps=st.lists(STEPS, min_size=20, max_size=60))
@settings(max_examples=300, deadline=None)
def test_nobody_is_forgotten_and_nobody_spins(steps: list[tuple[str, Any, object]]) -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), automatic=False)
        clients = [gateway.connect(str(number)) for number in range(CLIENTS + 1)]
        for line in (b"SESSION\r\n", SESSION):
            for client in clients if line == SESSION else clients[:1]:
                client.send(line)
            await gateway.settle()
            gateway.cluster.commit()
            await gateway.settle()
        for kind, number, detail in steps:
            step(gateway, clients, kind, number, detail)
            await gateway.settle()
        for _ in range(ENTRIES_MAX):
            gateway.cluster.commit()
            await gateway.settle()
            if not gateway.cluster.in_flight:
                break
        assert not gateway.cluster.in_flight, "somebody spins"
        assert_nobody_is_forgotten(gateway)
        await gateway.close()
    asyncio.run(run())


def step(gateway: MemoryGateway, clients: list[MemoryClient], kind: str, number: Any, detail: object) -> None:
    """Execute a step of a script: `kind` says which, the others are its arguments."""
    cluster = gateway.cluster
    if kind == "commit":
        cluster.commit(number)
    elif kind == "time":
        cluster.pass_time(number)
    elif kind == "over":
        waiting = [waiter for waiter in gateway.hub.job_waiters._queued.values() if waiter.timer is not None]
        if waiting:
            waiter = waiting[number % len(waiting)]
            assert waiter.timer is not None
            waiter.timer.cancel()
            gateway.hub.job_waiters._time_out(waiter)
    elif kind == "leave":
        clients[number].vanish()
        clients[number] = gateway.connect(str(number))
        clients[number].send(SESSION)
    else:
        line = detail if kind == "say" else f"{kind} {detail}"
        clients[number].send(f"{line}\r\n".encode() if "\r\n" not in str(line) else str(line).encode())


# ---- COUNT

def test_one_waiter_with_count_is_sent_for_all_that_is_there() -> None:
    async def test(gateway: MemoryGateway) -> None:
        first, second = gateway.connect(), gateway.connect()
        first.send(b"GETB q COUNT 10\r\n")
        second.send(b"GETB q\r\n")
        gateway.cluster.commit()
        await gateway.settle()
        gateway.connect().send(b"PUTS 3\r\nq 0 1\r\naq 0 1\r\nbq 0 1\r\nc")
        gateway.cluster.commit()
        await gateway.settle()
        assert gateway.cluster.in_flight == [GetWith(Get(("q",)), 10)]
        gateway.cluster.commit()
        await gateway.settle()
        assert first.take() == b"200 OK 3\r\nq 1 0 1\r\nq 2 0 1\r\nq 3 0 1\r\nabc"
        assert second.take() == b""
        assert gateway.cluster.in_flight == []
    with_gateway(test, automatic=False)


def test_what_it_does_not_take_is_for_the_next() -> None:
    async def test(gateway: MemoryGateway) -> None:
        first, second, producer = gateway.connect(), gateway.connect(), gateway.connect()
        producer.send(b"QUEUE CREATE q BATCH 2\r\n")
        await gateway.settle()
        first.send(b"GETB q COUNT 10\r\n")
        await gateway.settle()
        second.send(b"GETB q COUNT 10\r\n")
        await gateway.settle()
        producer.send(b"PUTS 3\r\nq 0 1\r\naq 0 1\r\nbq 0 1\r\nc")
        await gateway.settle()
        assert first.take() == b"200 OK 2\r\nq 1 0 1\r\nq 2 0 1\r\nab"
        assert second.take() == b"200 OK 1\r\nq 3 0 1\r\nc"
    with_gateway(test)


def test_who_takes_more_than_he_was_sent_for_leaves_the_others_waiting() -> None:
    async def test(gateway: MemoryGateway) -> None:
        greedy, other = gateway.connect(), gateway.connect()
        greedy.send(b"GETB q COUNT 10\r\n")
        gateway.cluster.commit()
        other.send(b"GETB q\r\n")
        gateway.cluster.commit()
        gateway.connect().send(b"PUT q 0 1\r\naPUT q 0 1\r\nb")         # one is sent behind each
        puts_and_gets = gateway.cluster.in_flight
        assert [type(operation) for operation in puts_and_gets] == [Put, GetWith, Put, Get]
        gateway.cluster.commit()
        await gateway.settle()
        assert greedy.take() == b"200 OK 1\r\nq 1 0 1\r\na"
        assert other.take() == b"200 OK q 2 0 1\r\nb"
    with_gateway(test, automatic=False)


def test_many_jobs_that_cannot_be_delivered_go_back() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUTS 3\r\nq 0 1\r\naq 0 1\r\nbq 0 1\r\nc")
        gateway.cluster.commit()
        client.send(b"GET q COUNT 3\r\n")
        client.vanish()
        await gateway.settle()
        gateway.cluster.commit()
        await gateway.settle()
        gateway.cluster.commit()
        assert returned(gateway.cluster) == [1, 2, 3]
        assert gateway.cluster.machine.ready("q") == 3
    with_gateway(test, automatic=False)


def test_those_of_a_waiter_as_well() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"GETB q COUNT 3\r\n")
        gateway.cluster.commit()
        gateway.connect().send(b"PUT q 0 1\r\naPUT q 0 1\r\nb")
        client.vanish()
        await gateway.settle()
        for _ in range(2):
            gateway.cluster.commit()
            await gateway.settle()
        assert returned(gateway.cluster) == [1]
        assert gateway.cluster.machine.ready("q") == 2
        assert not gateway.hub.job_waiters._claims
    with_gateway(test, automatic=False)


# ---- IS

@pytest.mark.parametrize("names", [b"a|b", b"*"])
def test_who_waits_for_an_item_comes_before_the_others(names: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        plain, picky, producer = gateway.connect(), gateway.connect(), gateway.connect()
        plain.send(b"GETB b\r\n")
        await gateway.settle()
        picky.send(b"GETB " + names + b" IS x\r\n")
        await gateway.settle()
        producer.send(b"PUT b 0 1 IS x\r\n1")
        await gateway.settle()
        assert picky.take() == b"200 OK b 1 0 1 IS x\r\n1"
        producer.send(b"PUT b 0 1 IS y\r\n2")
        await gateway.settle()
        assert plain.take() == b"200 OK b 2 0 1 IS y\r\n2"
    with_gateway(test)


def test_getbe_of_an_item_ends_with_the_item() -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = {names: gateway.connect() for names in (b"a|b", b"*", b"c")}
        worker = gateway.connect()
        worker.send(b"PUT a 0 1 IS x\r\n1PUT b 0 1 IS x\r\n2PUT b 0 1 IS y\r\n3GET a\r\nGET b IS x\r\nGET b\r\n")
        await gateway.settle()
        for names, client in clients.items():
            client.send(b"GETBE " + names + b" IS x\r\n")
        await gateway.settle()
        assert [client.take() for client in clients.values()] == [b"", b"", b"404 Queue Empty\r\n"]
        worker.send(b"DONE 1\r\n")
        await gateway.settle()
        assert [client.take() for client in clients.values()] == [b"", b"", b""]
        worker.send(b"DONE 2\r\n")
        await gateway.settle()
        assert [client.take() for client in clients.values()] == [b"404 Queue Empty\r\n", b"404 Queue Empty\r\n", b""]
    with_gateway(test)


def test_waiters_whose_queue_has_finished_look_for_another_one_in_portions() -> None:
    names, clients = 1500, 12

    async def test(gateway: MemoryGateway) -> None:
        line, portions = gateway.hub.job_waiters, [0]
        watch, watch_some = line._watchers.watch, line._watch_some

        def watching(waiter: JobWaiter, machine: Machine) -> bool:
            portions[-1] += len(waiter.wants.get.queues or ())
            return watch(waiter, machine)

        def watching_some() -> None:
            portions.append(0)
            watch_some()

        waiters, other = [gateway.connect() for _ in range(clients)], gateway.connect()
        other.send(b"PUT x 0 0 DELAY 50\r\nPUT y 0 0 DELAY 50\r\n")
        await gateway.settle()
        for waiter in waiters:
            waiter.send(f"GETBE {'|'.join(f'q{number}' for number in range(names))}|x|y\r\n".encode())
        await gateway.settle()
        line._watchers.watch, line._watch_some = watching, watching_some      # type: ignore[method-assign]
        async def looked() -> None:
            async with asyncio.timeout(WAIT_S):
                while line._unwatched:
                    await asyncio.sleep(0.001)
            await gateway.settle()

        other.send(b"QUEUE PURGE x ALL\r\n")
        await gateway.settle()
        await looked()
        assert sum(portions) == clients * (names + 2), "each has looked once"
        assert max(portions) <= FINISHED_LOOKED_AT_MAX + names
        assert [waiter.take() for waiter in waiters] == [b""] * clients
        waiters[0].vanish()
        other.send(b"QUEUE PURGE y ALL\r\n")
        await gateway.settle()
        await looked()
        assert [waiter.take() for waiter in waiters[1:]] == [b"404 Queue Empty\r\n"] * (clients - 1)
        assert not line._watchers._by_watched
    with_gateway(test)


# ---- GETBE and jobs that are not there yet, or not any more

@pytest.mark.parametrize(("put", "end"), [
    (b"PUT q 0 1 KEY k DELAY 50\r\nx", b"DELETE KEY q k\r\n"),
    (b"PUT q 0 1 DELAY 50\r\nx", b"QUEUE PURGE q ALL\r\n"),
    (b"QUEUE PAUSE q OUT\r\nPUT q 0 1\r\nx", b"QUEUE DELETE q FORCE\r\n"),
    (b"PUT q 0 1\r\nxGET q\r\n", b"BURY 1\r\n"),
    (b"PUT q 0 1\r\nxGET q\r\n", b"MOVE 1 other\r\n"),
    (b"QUEUE PAUSE q OUT\r\nPUT q 0 1 KEY k\r\nx", b"DELETE KEY q k\r\n"),
])
def test_getbe_ends_whatever_ended_the_last_job(put: bytes, end: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        waiter, other = gateway.connect(), gateway.connect()
        other.send(put)
        await gateway.settle()
        waiter.send(b"GETBE q\r\n")
        await gateway.settle()
        assert waiter.take() == b""
        other.send(end)
        await gateway.settle()
        assert waiter.take() == b"404 Queue Empty\r\n"
    with_gateway(test)


@pytest.mark.parametrize(("before", "free"), [
    (b"QUEUE PAUSE q OUT\r\n", b"QUEUE RESUME q\r\n"),
    (b"QUEUE CREATE q LIMIT 1\r\nPUT q 9 1\r\n0GET q\r\n", b"DONE 1\r\n"),
    (b"QUEUE CREATE q LIMIT 1\r\nPUT q 9 1\r\n0GET q\r\n", b"QUEUE CONFIG q LIMIT 2\r\n"),
    (b"QUEUE CREATE q ITEMLIMIT 1\r\nPUT q 9 1 IS x\r\n0GET q\r\n", b"DONE 1\r\n"),
    (b"QUEUE CREATE q ITEMLIMIT 1\r\nPUT q 9 1 IS x\r\n0GET q\r\n", b"QUEUE CONFIG q ITEMLIMIT 0\r\n"),
])
@pytest.mark.parametrize("get", [b"GETB q", b"GETBE q", b"GETB *", b"GETB q IS x", b"GETB * IS x", b"GETB q COUNT 2"])
def test_a_withheld_job_is_given_when_it_may_be(before: bytes, free: bytes, get: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        waiter, other = gateway.connect(), gateway.connect()
        other.send(before + b"PUT q 0 1 IS x\r\na")
        await gateway.settle()
        waiter.send(get + b"\r\n")
        await gateway.settle()
        assert waiter.take() == b""
        other.send(free)
        await gateway.settle()
        assert waiter.take().endswith(b"\r\na")
    with_gateway(test)


def test_a_delayed_job_wakes_its_waiter_when_it_is_due() -> None:
    async def test(gateway: MemoryGateway) -> None:
        waiter, other = gateway.connect(), gateway.connect()
        waiter.send(b"GETB q\r\n")
        await gateway.settle()
        other.send(b"PUT q 0 1 DELAY 10\r\nx")
        await gateway.settle()
        assert gateway.cluster.log[-1] != [Get(("q",))], "nobody is sent for a job that is not there"
        assert waiter.take() == b""
        gateway.cluster.pass_time(10)
        await gateway.settle()
        assert waiter.take() == b"200 OK q 1 0 1\r\nx"
    with_gateway(test)


# ---- WITHIN

def test_a_waiter_leaves_when_its_time_is_over() -> None:
    async def test(gateway: MemoryGateway) -> None:
        waiter, caller = gateway.connect(), gateway.connect()
        waiter.send(b"GETB q WITHIN 0.3\r\nPING\r\n")
        caller.send(b"PUT w 0 1 NEW WAIT q WITHIN 0.3\r\nx")
        await gateway.settle()
        assert (waiter.take(), caller.take()) == (b"", b"206 Wait for output IS i1\r\n")
        assert len(gateway.hub.job_waiters) == 2
        while len(gateway.hub.job_waiters):
            await asyncio.sleep(0.01)
        await gateway.settle()
        assert waiter.take() == b"404 Queue Empty\r\n200 OK\r\n"
        assert caller.take() == b"408 Wait Timeout\r\n"
    with_gateway(test)


def test_who_is_in_flight_when_the_time_is_over_gets_what_that_brings() -> None:
    async def test(gateway: MemoryGateway) -> None:
        lucky, unlucky = gateway.connect(), gateway.connect()
        lucky.send(b"GETB q WITHIN 0\r\n")
        unlucky.send(b"PUT w 0 1 NEW WAIT q WITHIN 0\r\nx")
        gateway.connect().send(b"PUT q 0 1\r\na")
        await asyncio.sleep(0.01)
        gateway.cluster.commit()
        assert (lucky.take(), unlucky.take()) == (
            b"404 Queue Empty\r\n", b"206 Wait for output IS i1\r\n408 Wait Timeout\r\n",
        )
        lucky.send(b"GETB q WITHIN 0\r\n")
        gateway.cluster.commit()
        assert lucky.take() == b"200 OK q 1 0 1\r\na"
    with_gateway(test, automatic=False)


def test_a_timer_ends_with_its_command() -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = [gateway.connect() for _ in range(3)]
        for client in clients:
            client.send(b"GETB q WITHIN 100\r\n")
        await gateway.settle()
        timers = [waiter.timer for waiter in gateway.hub.job_waiters._queued.values()]
        gateway.connect().send(b"PUT q 0 1\r\na")
        clients[1].vanish()
        await gateway.settle()
        gateway.cluster.follow("n2")
        assert clients[2].take() == b"500 Offline Mode\r\n"
        assert all(timer is not None and timer.cancelled() for timer in timers)
    with_gateway(test)


def test_a_numbered_wait_that_is_over_may_be_repeated() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"SESSION\r\n")
        await gateway.settle()
        client.take()
        client.send(b"REQ 1 GETB q WITHIN 0\r\n")
        await gateway.settle()
        assert client.take() == b"404 Queue Empty\r\n"
        client.send(b"PUT q 0 1\r\na")
        await gateway.settle()
        client.take()
        for _ in range(2):
            client.send(b"REQ 1 GETB q WITHIN 0\r\n")
            await gateway.settle()
            assert client.take() == b"200 OK q 1 0 1\r\na"
    with_gateway(test)


# ---- a PUT .. WAIT whose PUT is refused

@pytest.mark.parametrize("number", [b"", b"REQ 7 "])
def test_nothing_is_handed_out_behind_a_refused_put(number: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"SESSION\r\nPUT o 0 1 IS it\r\nxPUT w 0 1 KEY k\r\ny")
        await gateway.settle()
        client.take()
        client.send(number + b"PUT w 0 1 IS it WAIT o KEY k\r\nz")
        await gateway.settle()
        assert client.take() == b"409 Job Exists\r\n"
        assert gateway.cluster.machine.next_id == 1
        assert gateway.cluster.machine.ready("o") == 1
        client.send(number + b"PUT w 0 1 IS none WAIT o KEY k\r\nz")
        await gateway.settle()
        expected = b"409 Request Mismatch\r\n" if number else b"409 Job Exists\r\n"
        assert client.take() == expected, "and it waits for nothing"
    with_gateway(test)
