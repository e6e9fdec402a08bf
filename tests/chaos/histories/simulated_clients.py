"""The clients of a simulated cluster, and the drain that ends a run; `true_history` makes one."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from sockpqd import core
from tests.chaos.checker.evidence.moments import SECOND
from tests.chaos.checker.facts import Facts, Node, Running
from tests.chaos.histories.simulated import LEASE_LATE_MS, THEN, Call, Knobs, World
from tests.chaos.workload.history import Command, Done, Finished, Get, Handed, History, Later, Outcome, Put, Record

QUEUES = ("a", "b", "c")
ATTEMPTS_MAX = 12


def true_history(seed: int, knobs: Knobs = Knobs()) -> tuple[History, Facts]:   # noqa: B008
    """Return a history in which nothing went wrong, and the facts of its run."""
    world = World(seed, knobs)
    live(world)
    return world.history, _facts(world)


def live(world: World) -> None:
    """Run the world's clients and drain it."""
    knobs = world.knobs
    world.lead()
    clients = [Client(world, f"p{number}", None) for number in range(knobs.clients)]
    for number in range(knobs.session_clients):
        [opened] = world.apply([core.OpenSession(number, 900_000)])
        assert isinstance(opened, core.SessionOpened)
        clients.append(Client(world, f"s{number}", int(opened.sid.partition("_")[0])))
    for client in clients:
        client.step()
    end_ns = world.now + round(knobs.seconds * SECOND)
    if knobs.failover_s:
        def fail() -> None:
            if world.leader is not None:
                world.fail()
            world.after(world.random.uniform(0.5, 1.5) * knobs.failover_s * 1000, fail)
        world.after(world.random.uniform(0.5, 1.5) * knobs.failover_s * 1000, fail)
    world.run(lambda: world.now >= end_ns)
    for client in clients:
        client.stopping = True
    patience_ns = world.now + 2 * SECOND
    world.run(lambda: world.now >= patience_ns and world.leader is not None)
    for client in clients:
        client.abandon()
    drain = Drain(world)
    drain.step()
    world.run(lambda: drain.finished)


def _facts(world: World) -> Facts:
    machine = world.machine
    total = machine.total(None)
    counts = (total.queues, total.priorities, total.jobs, total.running)
    return Facts(
        start_ns=5 * SECOND,
        lease_late_ms=LEASE_LATE_MS,
        lease_slack_ms=1,
        wake_slack_ms=1000,
        drained=True,
        running=tuple(Running(job.id, job.data.decode()) for job in machine.running()),
        waiting=total.jobs,
        nodes=tuple(Node(name, machine.index, "same", counts) for name in ("n1", "n2", "n3")),
    )


class Client:
    """A client that issues commands at random; in a session it repeats each command until it has an answer."""

    def __init__(self, world: World, name: str, session: int | None) -> None:
        self.stopping = False
        self._world = world
        self._random = world.random
        self._name = name
        self._session = session
        self._number = 0
        self._bodies = 0
        self._held: list[int] = []
        self._under_way: Record | None = None
        self._wait: Record | None = None        # the second answer of a PUT .. WAIT

    # ---- what to do next

    def step(self) -> None:
        """Issue one command, then the next."""
        if self.stopping:
            return
        dice = self._random.random()
        if self._held and dice < 0.6:
            number = self._held.pop(self._random.randrange(len(self._held)))
            if self._random.random() < 0.05 and self._world.knobs.lost:
                self._held.append(number)       # once more, later: it will find nothing
            end = Done(number) if self._random.random() < 0.75 else Later(number)
            self._do(end, core.Done(number) if isinstance(end, Done) else core.Later(number))
        elif self._random.random() < self._world.knobs.puts:
            self._put()
        else:
            self._get()

    def _put(self) -> None:
        self._bodies += 1
        body, queue = f"{self._name}-{self._bodies}", self._random.choice(QUEUES)
        item = self._random.choice([None, None, None, "x", "y"])
        new = item is None and self._random.random() < 0.15
        priority = self._random.choice([0, 0, 0, 5])
        operation = core.Put(queue, priority, body.encode(), item, new)
        self._do(Put(body, queue, priority, item), operation)

    def _get(self) -> None:
        random, knobs = self._random, self._world.knobs
        queues = tuple(random.sample(QUEUES, random.choice([1, 1, 2])))
        expire_ms = None if random.random() < knobs.leaseless else random.choice([150, 400, 1000])
        then_done = expire_ms is not None and random.random() < knobs.then_done
        item = random.choice(["x", "y"]) if random.random() < 0.1 and self._session is None else None
        queues = queues if item is None else queues[:1]
        blocks = item is not None or random.random() < knobs.blocks
        policy = random.choice(knobs.policies) if item is None else None
        get = Get(queues, expire_ms, then_done, blocks, item is None and blocks and random.random() < 0.3, item, policy)
        operation = core.Get(queues, expire_ms, THEN[then_done], item)
        self._do(get, operation if policy is None else core.GetWith(operation, None, core.Policy[policy.upper()]))

    # ---- doing it

    def _do(self, command: Command, operation: core.Operation) -> None:
        self._under_way = Record(
            self._name, command, self._world.now, None, Outcome.UNKNOWN, session=self._session is not None,
        )
        get = command if isinstance(command, Get) else None
        if self._session is None:
            self._world.send(Call(operation, self._settled(self._under_way), get))
            return
        self._number += 1
        digest = self._number.to_bytes(16, "big")
        assert isinstance(operation, core.Put | core.Get | core.GetWith | core.Done | core.Later)
        blocks, finished = (get.blocks, get.until_finished) if get is not None else (False, False)
        request = core.Request(self._session, self._number, digest, 0, blocks, operation, finished)
        self._attempt(self._under_way, request, get, ATTEMPTS_MAX)

    def _attempt(self, record: Record, request: core.Operation, get: Get | None, left: int) -> None:
        settled = self._settled(record)

        def settle(outcome: Outcome, reply: core.Reply | None, server: str | None) -> None:
            if record is not self._under_way:
                return
            if outcome is Outcome.OK:
                settled(outcome, reply, server)
            elif left:
                pause_ms = self._random.uniform(10, 100)
                self._world.after(pause_ms, lambda: self._attempt(record, request, get, left - 1))
            else:
                settled(Outcome.UNKNOWN, None, None)

        if record is self._under_way:
            self._world.send(Call(request, settle, get))

    def _settled(self, record: Record) -> Callable[[Outcome, core.Reply | None, str | None], None]:
        def settle(outcome: Outcome, reply: core.Reply | None, server: str | None) -> None:
            if record is self._under_way:
                self._under_way = None
                self._world.history.add(answered(record, outcome, reply, server, self._world.now))
                if isinstance(reply, core.Handed):
                    self._take(record, reply.id)
                self._world.after(self._random.expovariate(1 / self._world.knobs.think_ms), self.step)

        return settle

    def _take(self, record: Record, number: int) -> None:
        get = record.command
        assert isinstance(get, Get)
        if get.expire_ms is None or self._random.random() < 0.9:    # or forget it
            self._held.append(number)

    def abandon(self) -> None:
        """End the run for this client; a command in flight stays unanswered."""
        if self._under_way is not None:
            record, self._under_way = self._under_way, None
            self._world.history.add(replace(record, end_ns=self._random.choice([None, self._world.now])))


def answered(record: Record, outcome: Outcome, reply: core.Reply | None, server: str | None, now: int) -> Record:
    """The record with its end."""
    command, handed, finished, missing = record.command, None, None, False
    match reply:
        case core.Stored() if isinstance(command, Put) and reply.item is not None:
            command = replace(command, item=reply.item)
        case core.Handed():
            handed = Handed(reply.id, reply.queue, reply.priority, reply.data.decode(), reply.item)
        case core.Finished():
            finished = Finished(reply.queue_done, reply.item_done)
        case core.NotFound():
            missing = True
    return replace(
        record, command=command, end_ns=now, outcome=outcome, server=server, handed=handed, finished=finished,
        missing=missing,
    )


class Drain:
    """Takes and finishes all remaining jobs, until the queues have been empty for long enough."""

    def __init__(self, world: World) -> None:
        self.finished = False
        self._world = world
        self._empty_since: int | None = None

    def step(self) -> None:
        """Issue a GET of any queue."""
        self._do(Get((), 2000), core.Get(None, 2000, core.Then.LATER))

    def _do(self, command: Command, operation: core.Operation) -> None:
        record = Record("drain", command, self._world.now, None, Outcome.UNKNOWN)

        def settle(outcome: Outcome, reply: core.Reply | None, server: str | None) -> None:
            world = self._world
            world.history.add(answered(record, outcome, reply, server, world.now))
            if isinstance(reply, core.Handed):
                self._empty_since = None
                world.after(1, lambda: self._do(Done(reply.id), core.Done(reply.id)))
                return
            if isinstance(reply, core.Empty):
                if self._empty_since is None:
                    self._empty_since = world.now
                left = world.machine.total(None).jobs
                left += sum(job.deadline_ms is not None for job in world.machine.running())
                self.finished = not left and world.now - self._empty_since > 3 * SECOND
            world.after(100 if isinstance(reply, core.Empty) else 2, self.step)

        self._world.send(Call(operation, settle, command if isinstance(command, Get) else None))
