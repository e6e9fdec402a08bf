"""Programs that use two clusters as one: each has its own copy of the map, which may be old."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sockpq import ClusterMap

from sockpqd.core import (
    AttachSession,
    Done,
    Elsewhere,
    Get,
    Handed,
    OpenSession,
    Operation,
    Put,
    Request,
    SessionOpened,
    Stored,
    Then,
)
from tests.sim.clients.outcomes import Outcome
from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.clusters.world import TwoClusters

SESSION_MS = 3_600_000
PATIENCE_S = 1.0                # for an answer; then the command is repeated
BACKOFF_S = (0.02, 0.3)
THINK_S = (0.02, 0.2)
CUT = 0.05                      # so often the connection breaks before an answer arrives
LOOKS = 0.05                    # so often a program reads the map without a reason
LEASE_MS = 3000


class Link:
    """A program's connection to one cluster, with a session: an operation is repeated there until it is answered."""

    def __init__(self, pair: TwoClusters, name: str, rng: random.Random) -> None:
        self._pair, self._name, self._rng = pair, name, rng
        self._session: int | None = None
        self._secret = rng.getrandbits(64)
        self._attached = False
        self._number = 0
        self._operation: Any = None
        self._then: Callable[[Any], None] = lambda reply: None
        self._pending: Outcome | None = None
        self._target: str | None = None

    def ask(self, operation: Operation, then: Callable[[Any], None]) -> None:
        """Have an operation executed exactly once; `then` gets the reply."""
        self._number += 1
        self._operation, self._then = operation, then
        self._say()

    def _say(self) -> None:
        cluster = self._pair.clusters[self._name]
        said: Operation
        if self._session is None:
            said = OpenSession(self._secret, SESSION_MS)
        elif not self._attached:
            said = AttachSession(self._session, self._secret)
        else:
            said = Request(self._session, self._number, b"%016d" % self._number, 0, False, self._operation)
        pending = self._pending = Outcome(said, self._told)
        cluster.outcomes.append(pending)
        if self._target is None:
            serving = [node.name for node in cluster.nodes.values() if node.serving]
            self._target = self._rng.choice(serving or list(cluster.nodes))
        cluster.nodes[self._target].propose([pending])
        self._pair.events.after(PATIENCE_S, lambda: self._again() if self._pending is pending else None)

    def _again(self) -> None:
        """Repeat the operation on another connection."""
        self._pending, self._target, self._attached = None, None, False
        self._pair.events.after(self._rng.uniform(*BACKOFF_S), self._say)

    def _told(self, outcome: Outcome) -> None:
        self._pair.told(self._name, outcome)
        if outcome is not self._pending:
            return
        if outcome.state != "applied" or self._rng.random() < CUT:
            self._again()
            return
        self._pending = None
        reply: Any = outcome.reply
        if isinstance(outcome.operation, Request):
            self._then(reply)
        else:
            if isinstance(reply, SessionOpened):
                self._session = int(reply.sid.partition("_")[0])
            self._attached = True
            self._say()


class Program:
    """A program that has a map, and a link to each cluster."""

    def __init__(self, pair: TwoClusters) -> None:
        self.pair = pair
        self.rng = random.Random(pair.rng.random())
        self.known = ClusterMap()
        self.links = {name: Link(pair, name, self.rng) for name in pair.clusters}

    def act(self) -> None:
        """Begin the next operation of the program."""
        raise NotImplementedError

    def later(self, action: Callable[[], None], span_s: tuple[float, float] = THINK_S) -> None:
        """Schedule an action after a random time in this span, in seconds."""
        self.pair.events.after(self.rng.uniform(*span_s), action)

    def refresh(self) -> None:
        """Read the map at any node of any cluster, and keep the newest version."""
        name = self.rng.choice(list(self.pair.clusters))
        read = self.pair.newest_of(name, self.rng.choice(list(self.pair.clusters[name].nodes)))
        self.known = max(self.known, read, key=lambda one: one.version)


class Producer(Program):
    """Puts one job after the other, each until it is accepted. `content`: it has no open question."""

    def __init__(self, pair: TwoClusters, name: str) -> None:
        super().__init__(pair)
        self._name = name
        self._count = 0
        self.content = False

    def act(self) -> None:
        """Put the next job into a random queue, or end."""
        if self.pair.stopping:
            self.content = True
            return
        if self.pair.enough:
            self.later(self.act)
            return
        self._count += 1
        data = b"%s-%d" % (self._name.encode(), self._count)
        self.pair.asked.add(data)
        self._put(Put(self.rng.choice(self.names()), 0, data))

    def names(self) -> tuple[str, ...]:
        """The queues it puts jobs into."""
        from tests.sim.clusters.world import NAMES

        return NAMES

    def _put(self, job: Put) -> None:
        if self.rng.random() < LOOKS:
            self.refresh()
        owner = self.known.owner(job.queue)
        if owner is None:
            self.refresh()
            self.later(lambda: self._put(job))
        else:
            self.links[owner].ask(job, lambda reply: self._answered(job, owner, reply))

    def _answered(self, job: Put, owner: str, reply: Any) -> None:
        if isinstance(reply, Elsewhere):
            self.pair.trace.seen["elsewhere"] += 1
            self.refresh()
            self.later(lambda: self._put(job))
        elif isinstance(reply, Stored):
            self.pair.answered[bytes(job.data)] = owner
            self.later(self.act)
        else:
            raise Violation(f"a PUT was answered {reply}")


class Consumer(Program):
    """Takes jobs by name, where the map points, and finishes them."""

    def act(self) -> None:
        """Look for the next job of one queue."""
        from tests.sim.clusters.world import NAMES

        if self.rng.random() < LOOKS or not self.known.version:
            self.refresh()
        name = self.rng.choice(NAMES)
        self._take(name, self._places(name))

    def _places(self, name: str) -> list[str]:
        """Return the clusters that may have jobs of the queue, in the order in which they are asked."""
        owner = self.known.owner(name)
        for length in range(len(name), 0, -1):
            moving = self.known.moving.get(name[:length])
            if moving is not None:
                return [moving.source, moving.to]
            if name[:length] in self.known.rules:
                break
        return [] if owner is None else [owner]

    def _take(self, name: str, places: list[str]) -> None:
        if not places:
            self.later(self.act)
            return
        link = self.links[places[0]]

        def taken(reply: Any) -> None:
            if isinstance(reply, Handed):
                link.ask(Done(reply.id), lambda _: self.later(self.act))
            else:
                self._take(name, places[1:])
        link.ask(Get((name,), LEASE_MS, Then.LATER), taken)
