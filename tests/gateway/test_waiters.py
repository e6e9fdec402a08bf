"""Who waits gets a job in the right order, exactly once, and is never forgotten."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import Get, Put
from gateway.limits import Limits
from tests.gateway.memory import MemoryClient, MemoryGateway

CLIENTS = 6
QUEUES = ["a", "b", "c"]
ITEMS = ["x", "y"]

SETS = st.sampled_from([None, ("a",), ("b",), ("a", "b"), ("b", "c"), ("a", "b", "c")])
CLIENT = st.integers(0, CLIENTS - 1)
STEPS = st.one_of(
    st.tuples(st.just("getb"), CLIENT, SETS),
    st.tuples(st.just("getb"), CLIENT, SETS),
    st.tuples(st.just("getbe"), CLIENT, SETS),
    st.tuples(st.just("wait"), CLIENT, st.tuples(st.sampled_from(QUEUES), st.sampled_from(ITEMS))),
    st.tuples(st.just("put"), CLIENT, st.tuples(st.sampled_from(QUEUES), st.sampled_from([None, *ITEMS]))),
    st.tuples(st.just("put"), CLIENT, st.tuples(st.sampled_from(QUEUES), st.sampled_from([None, *ITEMS]))),
    st.tuples(st.just("later"), CLIENT, st.integers(0, 5)),
    st.tuples(st.just("done"), CLIENT, st.integers(0, 5)),
    st.tuples(st.just("leave"), CLIENT, st.none()),
)
WORK = "w"      # where PUT .. WAIT puts its jobs; only those who wait for any queue take them


class Job:
    def __init__(self, number: int, queue: str, item: str | None) -> None:
        self.data = b"%d" % number
        self.queue = queue
        self.item = item


class Waiting:
    def __init__(self, client: int, kind: str, queues: tuple[str, ...] | None, item: str | None = None) -> None:
        self.client = client
        self.kind = kind
        self.queues = queues
        self.item = item

    def takes(self, job: Job) -> bool:
        return (self.queues is None or job.queue in self.queues) and (self.item is None or self.item == job.item)


class Model:
    """One queue server that does everything at once, in the obvious way."""

    def __init__(self) -> None:
        self.ready: list[Job] = []
        self.running: dict[int, Job] = {}
        self.waiting: list[Waiting] = []
        self.number = 0

    def new_job(self, queue: str, item: str | None) -> Job:
        self.number += 1
        return Job(self.number, queue, item)

    def blocked(self, client: int) -> bool:
        return any(waiting.client == client for waiting in self.waiting)

    def offer(self, job: Job) -> Waiting | None:
        """Who gets the job that has just become ready: a waiter for its item before the others, in order of arrival."""
        takers = [waiting for waiting in self.waiting if waiting.takes(job)]
        takers.sort(key=lambda waiting: waiting.item is None)       # stable: keeps the order of arrival
        if not takers:
            self.ready.append(job)
            return None
        self.waiting.remove(takers[0])
        return takers[0]

    def unfinished(self, queues: tuple[str, ...] | None) -> bool:
        return any(queues is None or job.queue in queues for job in [*self.ready, *self.running.values()])

    def finished(self) -> list[Waiting]:
        """The GETBE waiters that learn the end."""
        over = [one for one in self.waiting if one.kind == "getbe" and not self.unfinished(one.queues)]
        self.waiting = [one for one in self.waiting if one not in over]
        return over


def handed(answer: bytes) -> tuple[int, str, bytes] | None:
    """Id, queue and data of the hand-out at the end of an answer."""
    line, _, data = answer.rpartition(b"\r\n")
    words = line.rpartition(b"\r\n")[2].split()
    if len(words) < 6 or words[:2] != [b"200", b"OK"]:
        return None
    return int(words[3]), words[2].decode(), data


class Comparison:
    """Runs steps against a gateway and the model, and compares who gets what."""

    def __init__(self, folder: Path) -> None:
        self.gateway = MemoryGateway(folder)
        self.clients = [self.connect(number) for number in range(CLIENTS)]
        self.model = Model()
        self.expected: dict[int, bytes | set[Job]] = {}     # who should hear what: an answer, or one of these jobs

    def connect(self, number: int) -> MemoryClient:
        return self.gateway.connect(str(number))

    async def run(self, steps: list[tuple]) -> None:     # type: ignore[type-arg]
        for kind, client, detail in steps:
            self.expected = {}
            if kind == "leave":
                self.leave(client)
            elif not self.model.blocked(client):
                getattr(self, kind)(client, detail)
            await self.gateway.settle()
            self.compare()
        await self.gateway.close()

    def leave(self, client: int) -> None:
        self.clients[client].vanish()
        self.clients[client] = self.connect(client)
        self.model.waiting = [one for one in self.model.waiting if one.client != client]

    def getb(self, client: int, queues: tuple[str, ...] | None, kind: str = "getb") -> None:
        names = b"" if queues is None else b" " + "|".join(queues).encode()
        self.clients[client].send(kind.upper().encode() + names + b"\r\n")
        waiting = Waiting(client, kind, queues)
        candidates = [job for job in self.model.ready if waiting.takes(job)]
        if candidates:
            firsts = {job.queue: job for job in reversed(candidates)}
            self.expected = {client: set(firsts.values())}
        elif kind == "getbe" and not self.model.unfinished(queues):
            self.expected = {client: b"404 Queue Empty\r\n"}
        else:
            self.model.waiting.append(waiting)

    def getbe(self, client: int, queues: tuple[str, ...] | None) -> None:
        self.getb(client, queues, "getbe")

    def wait(self, client: int, detail: tuple[str, str]) -> None:
        queue, item = detail
        job = self.model.new_job(WORK, item)
        self.clients[client].send(f"PUT {WORK} 0 {len(job.data)} IS {item} WAIT {queue}\r\n".encode() + job.data)
        self.expected = {client: b"206 Wait for output\r\n"}
        self.give(job)
        candidates = [job for job in self.model.ready if job.queue == queue and job.item == item]
        if candidates:
            self.expected[client] = {candidates[0]}
        else:
            self.model.waiting.append(Waiting(client, "wait", (queue,), item))

    def put(self, client: int, detail: tuple[str, str | None]) -> None:
        queue, item = detail
        job = self.model.new_job(queue, item)
        tail = "" if item is None else f" IS {item}"
        self.clients[client].send(f"PUT {queue} 0 {len(job.data)}{tail}\r\n".encode() + job.data)
        self.expected = {client: b"200 OK\r\n"}
        self.give(job)

    def give(self, job: Job) -> None:
        taker = self.model.offer(job)
        if taker is not None:
            self.expected[taker.client] = {job}
            self.model.ready.append(job)        # compare() takes it from there

    def later(self, client: int, which: int) -> None:
        id_ = self.some_id(which)
        self.clients[client].send(b"LATER %d\r\n" % id_)
        self.expected = {client: b"404 Job Not Found\r\n"}
        if id_ in self.model.running:
            self.expected = {client: b"200 OK\r\n"}
            self.give(self.model.running.pop(id_))

    def done(self, client: int, which: int) -> None:
        id_ = self.some_id(which)
        self.clients[client].send(b"DONE %d\r\n" % id_)
        self.expected = {client: b"200 OK" if id_ in self.model.running else b"404"}
        self.model.running.pop(id_, None)

    def some_id(self, which: int) -> int:
        ids = sorted(self.model.running)
        return ids[which % len(ids)] if ids else 10**9

    def compare(self) -> None:
        for waiting in self.model.finished():
            self.expected[waiting.client] = b"404 Queue Empty\r\n"
        for number, client in enumerate(self.clients):
            answer, expected = client.take(), self.expected.get(number, b"")
            if isinstance(expected, bytes):
                assert answer.startswith(expected), (number, answer, expected)
                assert bool(answer) == bool(expected), (number, answer, expected)
            else:
                self.delivered(answer, expected)

    def delivered(self, answer: bytes, jobs: set[Job]) -> None:
        hand_out = handed(answer)
        assert hand_out is not None, (answer, jobs)
        id_, queue, data = hand_out
        job = next(job for job in jobs if job.data == data)
        assert job.queue == queue
        self.model.ready.remove(job)
        self.model.running[id_] = job


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


def line(kind: str, detail: object) -> bytes:
    """A command of the loose test; ids are guessed."""
    match kind, detail:
        case ("getb" | "getbe"), None:
            return kind.encode() + b"\r\n"
        case ("getb" | "getbe"), tuple(queues):
            return f"{kind} {'|'.join(queues)}\r\n".encode()
        case "wait", (queue, item):
            return f"PUT {WORK} 0 1 IS {item} WAIT {queue}\r\nx".encode()
        case "put", (queue, None):
            return f"PUT {queue} 0 1\r\nx".encode()
        case "put", (queue, item):
            return f"PUT {queue} 0 1 IS {item}\r\nx".encode()
        case _:
            return f"{kind} {detail}\r\n".encode()


def assert_nobody_is_forgotten(gateway: MemoryGateway) -> None:
    machine, waiters = gateway.cluster.machine, gateway.hub.waiters
    for waiter in waiters._standing.values():
        get = waiter.wanted.get
        queues = list(machine.nonempty()) if get.queues is None else get.queues
        if get.item is not None:
            assert not any(machine.ready_of_item(queue, get.item) for queue in queues)
        else:
            assert not any(machine.ready(queue) for queue in queues)
        if waiter.wanted.until_finished:
            assert any(machine.unfinished(queue, get.item) for queue in get.queues or [None])
    assert not waiters._claims
    if not len(waiters):
        lines = waiters._lines
        assert not lines._any
        for kept in (lines._queues, lines._items, waiters._requests, waiters._watchers._by_watched):
            assert kept == {}


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
        first.send(b"GETB q\r\n")
        second.send(b"GETB q\r\n")
        producer.send(b"PUT q 0 1 NEW\r\nx")
        producer.send(b"GET q\r\n")
        gateway.cluster.commit()
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
    """How many Python functions are called."""
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
    """Calls for one PUT to a queue with a waiter and for one DONE, among many waiters."""
    async def run() -> int:
        gateway = MemoryGateway(Path("unused"), Limits(connections_max=40_000), automatic=False)
        producer = gateway.connect()
        producer.send(b"PUT busy 0 0\r\nGET busy\r\nPUT other 0 0\r\nGET other\r\n")
        gateway.cluster.commit()
        for number in range(waiters):
            gateway.connect().send(f"{kind} {name(number)}\r\n".encode())
            gateway.cluster.commit()
        assert len(gateway.hub.waiters) == waiters

        def work() -> None:
            producer.send(b"PUT q0 0 0\r\n")
            gateway.cluster.commit()
            producer.send(b"DONE 3\r\nDONE 2\r\n")
            gateway.cluster.commit()
        calls = calls_of(work)
        assert len(gateway.hub.waiters) == waiters - 1
        return calls
    return asyncio.run(run())


def test_a_hand_off_among_ten_thousand_waiters_costs_no_more_than_among_ten() -> None:
    for name, kind in [
        (lambda number: "q0", "GETB"),
        (lambda number: f"q{number}", "GETB"),
        (lambda number: f"q0|a{number}|b{number}", "GETB"),
        (lambda number: "q0|busy|other", "GETBE"),
    ]:
        few, many = cost_of_a_hand_off(10, name, kind), cost_of_a_hand_off(10_000, name, kind)
        assert many < few * 1.5, (kind, few, many)


def cost_of_a_return(waiters: int, comes_back: str) -> int:
    """Calls until a job that comes back is handed to the one waiter for its item, among many for other items."""
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
        assert len(gateway.hub.waiters) == waiters - 1
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
