"""The ends of jobs that clients of simulated gateways wait for while leaders fail: each is what the log says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.sim.gateway.answers import Asked, Form
from tests.sim.gateway.clients import BACKOFF_S, FOR_EVER, GatewayClient, Life, operates
from tests.sim.gateway.world import GatewayWorld
from tests.sim.world.trace import Violation

END, JOBS = Asked(Form.END), Asked(Form.JOBS)
QUEUE = "sums"
WAITING_MAX = 8                 # jobs that are not done: then the producer holds back
ASKERS, WORKERS = 8, 3


class AwaitWorld(GatewayWorld):
    """A producer of numbered jobs, workers that return results, and clients that wait for these."""

    def __init__(self, seed: int, **fixed: Any) -> None:
        self.numbers: list[int] = []                # of the jobs put, as far as that is known
        self.answered: dict[int, float] = {}        # when each asker had its last answer
        self.told: Counter[str] = Counter()
        super().__init__(seed, seconds=25.0, failovers=4, spread=False, **fixed)

    def result(self, number: int) -> bytes | None:
        """Return the job's result in the log."""
        found = self.checks.model.machine.result(number)
        assert found is None or isinstance(found, bytes)
        return found

    def _lives(self) -> list[Any]:
        return [
            operates([f"QUEUE CONFIG {QUEUE} RETAIN 3600"]), puts(self), *[works(self)] * WORKERS,
            *[asks(self)] * ASKERS,
        ]

    def _well(self, since: float) -> bool:
        """Return whether some node serves, and each asker has had an answer."""
        answered = self.answered.values()
        return self.serving() is not None and len(answered) == ASKERS and min(answered) > since


def puts(world: AwaitWorld) -> Callable[[GatewayClient], Life]:
    """Return the life of a client that puts numbered jobs while few are waiting."""
    def life(client: GatewayClient) -> Life:
        while not world.prepared:
            yield 0.1
        while True:
            client.dial()
            going = True
            while going:
                while world.ready(QUEUE) >= WAITING_MAX:
                    yield 0.1
                answer = yield from client.ask(f"PUT {QUEUE} 0 1 NUMBER\r\nx")
                going = answer is not None and answer.line.startswith(b"200")
                if answer is not None and going:
                    world.numbers.append(int(answer.line.split()[3]))
                yield client.rng.choice((0.0, 0.02, 0.1))
            client.leave()
            yield client.rng.uniform(*BACKOFF_S)
    return life


def works(world: AwaitWorld) -> Callable[[GatewayClient], Life]:
    """Take jobs, and end them with a result that no other hand-out has."""
    def life(client: GatewayClient) -> Life:
        while True:
            client.dial()
            going = True
            while going:
                answer = yield from client.ask(
                    f"GETB {QUEUE} EXPIRE 3 COUNT 2 WITHIN 1", JOBS, patience_s=3.0)
                for _, number in () if answer is None else answer.jobs:
                    yield client.rng.choice((0.0, 0.02, 0.3))
                    result = f"of {number}"
                    done = f"DONE {number} RESULT {len(result)}\r\n{result}"
                    yield from client.ask(client.rng.choice((done, done, done, f"LATER {number}")))
                going = answer is not None and answer.line.startswith((b"200", b"404"))
            client.leave()
            yield client.rng.uniform(*BACKOFF_S)
    return life


def asks(world: AwaitWorld) -> Callable[[GatewayClient], Life]:
    """Wait for the end of some job, repeatedly and at any node, until there is an answer."""
    def life(client: GatewayClient) -> Life:
        rng = client.rng
        while True:
            while not world.numbers:
                yield 0.1
            number = rng.choice(world.numbers[-WAITING_MAX:])
            ended = False
            while not ended:
                if not client.open:
                    yield rng.uniform(*BACKOFF_S)
                    client.dial()
                within = rng.choice(("", "", " WITHIN 0", " WITHIN 0.5"))
                answer = yield from client.ask(
                    f"AWAIT NUMBER {number}{within}", END, patience_s=rng.choice((0.3, 5.0, FOR_EVER, FOR_EVER)))
                if answer is None or answer.line.startswith(b"500"):
                    world.told["nothing, as the node does not serve" if answer else "nothing"] += 1
                    client.leave()
                elif answer.line.startswith(b"408"):
                    world.told["that it has not ended"] += 1
                    yield rng.choice((0.0, 0.1))
                else:
                    judge(world, number, answer.line, answer.data)
                    ended = True
            world.answered[client.number] = world.events.now
            yield rng.choice((0.0, 0.0, 0.2))
    return life


def judge(world: AwaitWorld, number: int, line: bytes, data: bytes) -> None:
    """Check that all clients that ask get the answer in the log."""
    truth = world.result(number)
    if line != b"200 OK DONE %d" % len(data) or data != truth:
        raise Violation(f"of the end of {number} a client hears {line!r} {data!r}, but the log has {truth!r}")
    world.told["the end"] += 1


def test_the_ends_of_jobs_are_those_of_the_log_while_leaders_fail() -> None:
    told: Counter[str] = Counter()
    for seed in range(3):
        world = AwaitWorld(seed)
        world.run()
        assert world.trace.seen["failovers"] == 4
        told += world.told
    assert told["the end"] > 300
    assert told["nothing, as the node does not serve"] > 20
    assert told["that it has not ended"] > 20


def test_who_is_not_told_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation notices when the end of a job is lost, or another one is given."""
    monkeypatch.setattr("sockpqd.gateway.waiting.end_waiters.EndWaiters.ended", lambda self, outcomes: None)
    with pytest.raises(Violation):
        AwaitWorld(1).run()
