"""A model of who should get which job, and a gateway that is compared with it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from tests.gateway.helpers.memory import MemoryClient, MemoryGateway

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
        """Give the job that has just become ready to a waiter for its item, or else to the first of the others."""
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
        """Return the GETBE waiters that are notified of the end."""
        over = [one for one in self.waiting if one.kind == "getbe" and not self.unfinished(one.queues)]
        self.waiting = [one for one in self.waiting if one not in over]
        return over


def handed(answer: bytes) -> tuple[int, str, bytes] | None:
    """Return id, queue and data of the hand-out at the end of an answer."""
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
        self.expected: dict[int, bytes | set[Job]] = {}     # the expected answer of each client, or one of these jobs

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


def line(kind: str, detail: object) -> bytes:
    """Draw a command of the loose test; ids are guessed."""
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
    machine, waiters = gateway.cluster.machine, gateway.hub.job_waiters
    for waiter in waiters._queued.values():
        get = waiter.wants.get
        queues = list(machine.nonempty()) if get.queues is None else get.queues
        if get.item is not None:
            assert not any(machine.ready_of_item(queue, get.item) for queue in queues)
        else:
            assert not any(machine.ready(queue) for queue in queues)
        if waiter.wants.until_finished:
            assert any(machine.unfinished(queue, get.item) for queue in get.queues or [None])
    assert not waiters._claims
    if not len(waiters):
        lines = waiters._wait_lists
        for kept in (lines._queues, lines._items, waiters._requests, waiters._watchers._by_watched):
            assert kept == {}
