"""Waiting clients get jobs in the right order, exactly once, and are never forgotten."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sockpqd.core import Effects, Get, Put
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.protocol.responses import ITEM_CANCELLED
from sockpqd.gateway.waiting import job_waiters
from tests.gateway.helpers.memory import MemoryGateway, with_gateway
from tests.gateway.helpers.waiting_model import CLIENTS, STEPS, Comparison, assert_nobody_is_forgotten, line


@given(steps=st.lists(STEPS, max_size=40))
@settings(max_examples=200, deadline=None)
def test_jobs_go_to_those_the_model_says(steps: list[tuple]) -> None:   # type: ignore[type-arg]
    async def run() -> None:
        await Comparison(Path("unused")).run(steps)
    asyncio.run(run())


LOOSE_STEPS = st.one_of(STEPS, st.tuples(st.just("commit"), st.integers(0, 6), st.none()))


@given(steps=st.lists(LOOSE_STEPS, max_size=60))
@settings(max_examples=200, deadline=None)
def test_nobody_is_forgotten_however_commits_come(steps: list[tuple]) -> None:     # type: ignore[type-arg]
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), automatic=False)
        clients = [gateway.connect(str(number)) for number in range(CLIENTS)]
        for kind, client, detail in steps:
            if kind == "commit":
                gateway.cluster.commit(client)
            elif kind == "leave":
                clients[client].vanish()
                clients[client] = gateway.connect(str(client))
            else:
                clients[client].send(line(kind, detail))
            await gateway.settle()
        while gateway.cluster.in_flight:
            gateway.cluster.commit()
            await gateway.settle()
        assert_nobody_is_forgotten(gateway)
        await gateway.close()
    asyncio.run(run())


def test_a_hand_off_costs_one_commit() -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), automatic=False)
        worker, producer = gateway.connect(), gateway.connect()
        worker.send(b"GETB q\r\n")
        gateway.cluster.commit()
        producer.send(b"PUT q 0 1\r\nx")
        assert gateway.cluster.in_flight == [Put("q", 0, b"x"), Get(("q",))]
        gateway.cluster.commit()
        assert worker.take() == b"200 OK q 1 0 1\r\nx"
        assert gateway.cluster.in_flight == []
        await gateway.close()
    asyncio.run(run())


def test_a_get_that_comes_back_empty_leaves_the_waiter_at_its_place() -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), automatic=False)
        first, second, thief, producer = (gateway.connect() for _ in range(4))
        producer.send(b"PUT q 0 1 NEW\r\nx")
        producer.send(b"GET q\r\n")
        gateway.cluster.commit()
        first.send(b"GETB q\r\n")
        second.send(b"GETB q\r\n")
        producer.send(b"LATER 1\r\n")
        thief.send(b"GET q\r\n")          # stands right behind LATER; the waiter's Get comes with the next entry
        gateway.cluster.commit(1)
        gateway.cluster.commit()
        assert thief.take() == b"200 OK q 2 0 1 IS i1\r\nx"
        assert (first.take(), second.take()) == (b"", b"")
        producer.send(b"PUT q 0 1\r\ny")
        gateway.cluster.commit()
        assert first.take() == b"200 OK q 3 0 1\r\ny"
        assert second.take() == b""
        await gateway.close()
    asyncio.run(run())


def test_a_waiter_that_took_a_job_of_another_queue_leaves_its_claim_to_the_next() -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), automatic=False)
        owner = gateway.connect()
        others = 0
        for _ in range(20):     # which queue is taken is chance
            both, only = gateway.connect(), gateway.connect()
            owner.send(b"PUT a 0 1\r\naPUT b 0 1\r\nbGET a\r\nGET b\r\n")
            gateway.cluster.commit()
            a, b = [job.id for job in gateway.cluster.machine.running()]
            owner.take()
            both.send(b"GETB a|b\r\n")
            only.send(b"GETB b\r\n")
            gateway.cluster.commit()
            owner.send(b"LATER %d\r\n" % b)
            gateway.cluster.commit()                # the Get of `both` is sent for b ..
            owner.send(b"LATER %d\r\n" % a)
            gateway.cluster._in_flight.reverse()    # .. but finds a job in a as well
            gateway.cluster.commit()
            others += both.take().startswith(b"200 OK a")
            while gateway.cluster.in_flight:
                gateway.cluster.commit()
            assert_nobody_is_forgotten(gateway)
            both.vanish()
            only.vanish()
            for queue in (b"a", b"b"):
                owner.send(b"GET %s EXPIRE 1 THEN DONE\r\n" % queue)
            gateway.cluster.commit()
            for job in gateway.cluster.machine.running():
                owner.send(b"DONE %d\r\n" % job.id)
            await gateway.settle()
            gateway.cluster.commit()
        assert 0 < others < 20
        await gateway.close()
    asyncio.run(run())


def calls_of(action: Callable[[], object]) -> int:
    """Return how many Python functions are called."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def cost_of_a_hand_off(waiters: int, name: Callable[[int], str], kind: str = "GETB") -> int:
    """Return the calls for one PUT to a queue with a waiter and for one DONE, among many waiters."""
    async def run() -> int:
        gateway = MemoryGateway(Path("unused"), Limits(connections_max=40_000), automatic=False)
        producer = gateway.connect()
        producer.send(b"PUT busy 0 0\r\nGET busy\r\nPUT other 0 0\r\nGET other\r\n")
        gateway.cluster.commit()
        for number in range(waiters):
            gateway.connect().send(f"{kind} {name(number)}\r\n".encode())
            gateway.cluster.commit()
        assert len(gateway.hub.job_waiters) == waiters

        def work() -> None:
            producer.send(b"PUT q0 0 0\r\n")
            gateway.cluster.commit()
            producer.send(b"DONE 3\r\nDONE 2\r\n")
            gateway.cluster.commit()
        calls = calls_of(work)
        assert len(gateway.hub.job_waiters) == waiters - 1
        return calls
    return asyncio.run(run())


def test_a_hand_off_among_thousands_of_waiters_costs_no_more_than_among_ten() -> None:
    for name, kind in [
        (lambda number: "q0", "GETB"),
        (lambda number: f"q{number}", "GETB"),
        (lambda number: f"q0|a{number}|b{number}", "GETB"),
        (lambda number: "q0|busy|other", "GETBE"),
    ]:
        few, many = cost_of_a_hand_off(10, name, kind), cost_of_a_hand_off(2_000, name, kind)
        assert many < few * 1.5, (kind, few, many)


def cost_of_a_return(waiters: int, comes_back: str) -> int:
    """Return the calls until a returned job is handed to the one waiter for its item, among many for other items."""
    async def run() -> int:
        gateway = MemoryGateway(Path("unused"), Limits(connections_max=40_000), automatic=False)
        owner = gateway.connect()
        owner.send(b"PUT o 0 1 IS i7\r\nxGET o EXPIRE 60 THEN LATER\r\n")
        gateway.cluster.commit()
        clients = [gateway.connect() for _ in range(waiters)]
        for number, client in enumerate(clients):
            client.send(f"PUT w 0 0 IS i{number} WAIT o\r\n".encode())
            gateway.cluster.commit()
            client.take()
        thief = gateway.connect()

        def work() -> None:
            if comes_back == "LATER":
                owner.send(b"LATER 1\r\n")
            elif comes_back == "its lease ends":
                gateway.cluster.pass_time(61)
            else:
                owner.send(b"LATER 1\r\n")
                thief.send(b"GET o\r\n")
                thief._connection.connection_lost(None)
            while gateway.cluster.in_flight:
                gateway.cluster.commit()
        calls = calls_of(work)
        assert clients[7].take().endswith(b" 0 1 IS i7\r\nx")
        assert not any(client.take() for client in clients)
        assert len(gateway.hub.job_waiters) == waiters - 1
        await gateway.close()
        return calls
    return asyncio.run(run())


@pytest.mark.parametrize("comes_back", ["LATER", "its lease ends", "its new holder has gone"])
def test_a_job_that_comes_back_finds_the_waiter_for_its_item_at_once_among_very_many(comes_back: str) -> None:
    few, many = cost_of_a_return(10, comes_back), cost_of_a_return(2_000, comes_back)
    assert many < few * 1.5, (few, many)


def test_a_waiter_for_an_item_that_comes_too_late_leaves_other_jobs_to_the_others() -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), automatic=False)
        owner, of_item, thief, general = (gateway.connect() for _ in range(4))
        owner.send(b"PUT o 0 1 IS it\r\nxGET o\r\nPUT o 0 1\r\nyGET o\r\n")
        gateway.cluster.commit()
        of_item.send(b"PUT w 0 0 IS it WAIT o\r\n")
        general.send(b"GETB o\r\n")
        gateway.cluster.commit()
        owner.send(b"LATER 1\r\n")
        thief.send(b"GET o\r\n")
        owner.send(b"LATER 2\r\n")
        gateway.cluster.commit(1)       # the one for the item is sent, behind the thief ..
        gateway.cluster.commit(2)       # .. who takes the job; the other job seems to be claimed by the one sent ..
        assert gateway.cluster.in_flight == [Get(("o",), item="it")]
        gateway.cluster.commit()        # .. who comes back empty
        gateway.cluster.commit()
        assert thief.take() == b"200 OK o 3 0 1 IS it\r\nx"
        assert general.take() == b"200 OK o 4 0 1\r\ny"
        assert_nobody_is_forgotten(gateway)
        await gateway.close()
    asyncio.run(run())


def test_a_clone_wakes_those_for_whom_it_brings_something() -> None:
    async def run() -> None:
        source = MemoryGateway(Path("unused"))
        await source.talk(b"PUT q 0 1\r\nxPUT o 0 1 IS it\r\ny")
        snapshot = b"".join(source.cluster.machine.snapshot())
        await source.close()
        gateway = MemoryGateway(Path("unused"))
        general, waiting, ending, owner = (gateway.connect() for _ in range(4))
        owner.send(b"PUT r 0 1\r\nzGET r\r\n")
        general.send(b"GETB a|q\r\n")
        waiting.send(b"PUT w 0 1 IS it WAIT o\r\nw")
        ending.send(b"GETBE r\r\n")
        await gateway.settle()
        waiting.take()
        owner.send(b"CLONE %d\r\n" % len(snapshot) + snapshot)
        await gateway.settle()
        assert general.take().endswith(b" 0 1\r\nx")
        assert waiting.take().endswith(b" 0 1 IS it\r\ny")
        assert ending.take() == b"404 Queue Empty\r\n"
        await gateway.close()
    asyncio.run(run())


def test_a_wait_for_output_that_a_cancel_has_ended_takes_no_later_job_of_the_item() -> None:
    async def test(gateway: MemoryGateway) -> None:
        waits, other = gateway.connect(), gateway.connect()
        waits.send(b"PUT w 0 1 IS x WAIT out\r\nz")
        await gateway.settle()
        waits.take()
        other.send(b"ITEM CANCEL x\r\n")
        await gateway.settle()
        assert waits.take() == ITEM_CANCELLED
        assert not len(gateway.hub.job_waiters)
        other.send(b"PUT out 0 1 IS x\r\nj")
        await gateway.settle()
        other.take()
        other.send(b"GET out\r\n")
        await gateway.settle()
        assert other.take() == b"200 OK out 1 0 1 IS x\r\nj"
    with_gateway(test)


def test_a_cancelled_item_ends_the_waits_for_its_output_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_waiters, "ENDS_TOLD_AT_ONCE", 3)

    async def test(gateway: MemoryGateway) -> None:
        waiting = [gateway.connect(str(number)) for number in range(10)]
        for client in waiting:
            client.send(b"PUT w 0 1 IS x WAIT out\r\nz")
        taker, stays = gateway.connect(), gateway.connect()
        taker.send(b"GETB out IS x\r\n")            # this is no wait for output
        stays.send(b"PUT w 0 1 IS y WAIT out\r\nz")
        await gateway.settle()
        for client in (*waiting, stays):
            client.take()
        waiters = gateway.hub.job_waiters
        waiters.effects(Effects(cancelled_items={"x": None}))
        left = [len(waiters)]
        while waiters._cancelled:
            waiters._end_cancelled()
            left.append(len(waiters))
        assert left == [9, 6, 3, 2]
        await gateway.settle()
        assert [client.take() for client in waiting] == [ITEM_CANCELLED] * 10
        assert (taker.take(), stays.take()) == (b"", b"")
        assert not waiters._of_outputs.numbers("x")
    with_gateway(test)


def test_a_cancelled_item_costs_nothing_for_waits_for_other_items() -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.connect().send(b"GETB %b IS y\r\n" % b"|".join(b"q%d" % number for number in range(5000)))
        await gateway.settle()
        waiters, steps = gateway.hub.job_waiters, 0

        def count(frame: FrameType, event: str, argument: object) -> None:
            nonlocal steps
            steps += 1
        sys.setprofile(count)
        try:
            waiters.effects(Effects(cancelled_items={f"i{number}": None for number in range(100)}))
        finally:
            sys.setprofile(None)
        assert steps < 2000
    with_gateway(test)


@pytest.mark.parametrize("wait", [b"GETB *", b"GETB %b" % b"|".join(b"q%d" % number for number in range(10))])
def test_waiters_for_a_group_that_opens_in_many_queues_are_sent_in_portions(
    wait: bytes, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_waiters, "QUEUES_OPENED_AT_ONCE", 3)
    monkeypatch.setattr(job_waiters, "OPENED_RESTS", 0)

    async def test(gateway: MemoryGateway) -> None:
        worker, waits = gateway.connect(), gateway.connect()
        names = [b"q%d" % number for number in range(10)]
        worker.send(b"".join(b"QUEUE CREATE %b SCHED FAIR\r\n" % name for name in names))
        worker.send(b"GROUP CONFIG g LIMIT 1\r\n")
        worker.send(b"".join(b"PUT %b 0 1 GROUP g\r\nx" % name for name in names))
        await gateway.settle()
        worker.take()
        worker.send(b"GET q9 META\r\n")
        await gateway.settle()
        running = worker.take().split()[3].decode()
        others = [gateway.connect(str(number)) for number in range(2)]      # who wait for what never comes
        for client in others:
            client.send(wait + b" IS nothing\r\n")
        waits.send(wait + b"\r\n")
        await gateway.settle()
        waiters, looked, portions = gateway.hub.job_waiters, list[str](), list[int]()
        original = waiters.reopened
        monkeypatch.setattr(waiters, "reopened", lambda queue: (looked.append(queue), original(queue)))
        some = waiters._open_some
        monkeypatch.setattr(waiters, "_open_some", lambda: (portions.append(len(looked)), some()))
        worker.send(f"DONE {running}\r\n".encode())
        await gateway.settle()
        while waiters._opened:
            await gateway.settle()
        assert waits.take().startswith(b"200 OK q0 ")
        assert portions[:3] == [3, 6, 9]
        waiters._group_opened("g")          # and again before the end
        waiters._group_opened("g")
        looked.clear()
        while waiters._opened:
            await gateway.settle()
        assert looked.count("q8") == 2
        assert not waiters._opened_again
    with_gateway(test)


def test_a_cancelled_wait_takes_no_job_of_a_new_item_before_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_waiters, "ENDS_TOLD_AT_ONCE", 1)

    async def test(gateway: MemoryGateway) -> None:
        waiting = [gateway.connect() for _ in range(3)]
        for client in waiting:
            client.send(b"PUT calls 0 1 IS x WAIT answers\r\nc")
            await gateway.settle()
            client.take()
        waiters = gateway.hub.job_waiters
        monkeypatch.setattr(waiters, "_end_cancelled", lambda: None)       # its turn has not come
        waiters.effects(Effects(cancelled_items={"x": None}))
        gateway.connect().send(b"PUT answers 0 1 IS x\r\na")
        await gateway.settle()
        assert [client.take() for client in waiting] == [ITEM_CANCELLED] * 3
        assert gateway.hub.cluster.machine.ready("answers") == 1
    with_gateway(test)


def test_a_group_that_opens_again_and_again_is_looked_at_with_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_waiters, "QUEUES_OPENED_AT_ONCE", 3)
    rests: list[float] = []

    async def test(gateway: MemoryGateway) -> None:
        client, waits = gateway.connect(), gateway.connect()
        for number in range(5):
            client.send(b"QUEUE CREATE q%d SCHED FAIR\r\nPUT q%d 0 1 GROUP g\r\nx" % (number, number))
        client.send(b"GROUP PAUSE g\r\n")
        await gateway.settle()
        waits.send(b"GETB *\r\n")
        await gateway.settle()
        waiters = gateway.hub.job_waiters
        original = waiters._open_soon
        monkeypatch.setattr(waiters, "_open_soon", lambda rest_s=0.0: (rests.append(rest_s), original(rest_s)))
        waiters._group_opened("g")
        for _ in range(20):
            waiters._group_opened("g")
            waiters._open_some()
        assert [rest_s > 0 for rest_s in rests] == [False] + [True] * 20
    with_gateway(test)
