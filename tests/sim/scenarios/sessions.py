"""Scripted histories of a session, as in members.py: failovers while it is unused, and a new node."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from sockpqd.core import (
    AttachSession,
    Done,
    Finished,
    Get,
    OpenSession,
    Operation,
    Put,
    Reply,
    Request,
    SessionNotFound,
)
from tests.sim.clients.outcomes import Outcome
from tests.sim.scenarios import members
from tests.sim.scenarios.members import joins, served_by, transfers, until
from tests.sim.world.node import SimNode
from tests.sim.world.trace import Violation
from tests.sim.world.world import World

SECRET, TTL_MS, GRACE_MS = 7, 1000, 3000
SCRIPTED: dict[str, Any] = {
    **members.SCRIPTED, "sessions": 1.0, "grace_ms": GRACE_MS, "segment_bytes": 4 << 10, "window_bytes": 500,
}

BODY = b"a job of the script"
QUEUE = "q"                     # which no client knows


def asks(world: World, operation: Operation) -> Generator[float, None, Reply]:
    """Propose until there is an answer, as a client that repeats does."""
    outcome = Outcome(operation, world.told)
    while outcome.state != "applied":
        yield from until(world, lambda: world.serving() is not None)
        node = world.serving()
        assert node is not None
        outcome = Outcome(operation, world.told)
        world.outcomes.append(outcome)
        node.propose([outcome])
        yield from until(world, lambda outcome=outcome: outcome.state != "open")
    assert outcome.reply is not None
    return outcome.reply


def request(session: int, number: int, operation: Any) -> Request:
    """Return the operation as request `number` of this session."""
    return Request(session, number, b"script  %8d" % number, 0, False, operation)


def works(world: World, ttl_ms: int = TTL_MS) -> Generator[float, None, tuple[int, list[tuple[Request, Reply]]]]:
    """Open a session and take a job bound to it; returns the session's number, the requests, and the answers."""
    yield from served_by(world)
    opened: Any = yield from asks(world, OpenSession(SECRET, ttl_ms))
    session = int(opened.sid.partition("_")[0])
    answers = []
    for number, operation in enumerate((Put(QUEUE, 0, BODY), Get((QUEUE,), session=session)), start=1):
        asked = request(session, number, operation)
        answers.append((asked, (yield from asks(world, asked))))
    return session, answers


def hears(world: World, operation: Operation, kind: type[Reply], answer: Reply | None = None) -> Iterator[float]:
    """Check that the answer is of this kind, and equals this one if one is given."""
    reply = yield from asks(world, operation)
    if not isinstance(reply, kind) or (answer is not None and reply != answer):
        raise Violation(f"{operation} is answered {reply} by the new leader, right is {answer or kind.__name__}")


def asks_again(world: World, answers: list[tuple[Request, Reply]]) -> Iterator[float]:
    """Repeat everything; each answer must be the first one."""
    for asked, answer in answers:
        yield from hears(world, asked, type(answer), answer)


def nobody_leads(world: World, seconds: float) -> Iterator[float]:
    """Kill the leader, and disable the others for this long."""
    nodes: list[SimNode] = list(world.members)
    for node in nodes:
        node.crash(power=True)
    world.trace.fault("script", "all nodes are down")
    yield seconds
    for node in nodes:
        node.start()
    yield from until(world, lambda: world.serving() is not None)


def a_failover_takes_longer_than_a_session_lives(world: World) -> Iterator[float]:
    """Its client cannot use it for longer than its TTL, and still finds it and the job at the new leader."""
    session, answers = yield from works(world)
    yield from nobody_leads(world, TTL_MS / 1000 + 0.5)
    yield from asks_again(world, answers)
    yield from hears(world, request(session, 3, Done(answers[1][1].id)), Finished)      # type: ignore[union-attr]


def leaders_change_while_nobody_uses_a_session(world: World) -> Iterator[float]:
    """It gets its grace once, not from each leader, so it ends, and another client may get the job."""
    session, _ = yield from works(world)
    for _ in range(3):
        yield from nobody_leads(world, 0.2)
        yield (GRACE_MS - TTL_MS) / 1000
    yield from asks(world, Get((QUEUE,)))
    yield from hears(world, AttachSession(session, SECRET), SessionNotFound)


def a_new_node_leads(world: World) -> Iterator[float]:
    """It knows the session and its answers only from a snapshot."""
    _, answers = yield from works(world, 60 * TTL_MS)
    leader = world.serving()
    assert leader is not None
    while leader.up.journal.first_index == 1:
        leader.up.replica.compact()
        yield 0.1
    yield from joins(world, world.nodes["n4"])
    yield from transfers(world, world.nodes["n4"])
    world.trace.fault("script", "the new node leads")
    yield from asks_again(world, answers)
