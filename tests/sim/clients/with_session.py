"""Clients that work in a session: they number their commands, and repeat one until it is answered, at whatever leader.

Connections are handled as in the gateway: a client that connects to another node first names its session. A client
whose answer was lost repeats the command; so does one that has received it, at times, and every client does at the
end.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, TypeGuard

from msgspec.structs import replace

from sockpqd.core import (
    AttachSession,
    BeatWorker,
    CloseSession,
    ConfigureQueue,
    Get,
    GetWith,
    Later,
    OpenSession,
    Operation,
    Put,
    Reply,
    Request,
    Requested,
    Return,
    SessionNotFound,
    SessionOpened,
    Stored,
    TakeTurn,
    TouchSession,
)
from tests.sim.clients.outcomes import Outcome, waits
from tests.sim.clients.without_session import BACKOFF_S, PATIENCE_S, Client

if TYPE_CHECKING:
    from tests.sim.world.world import World

TTLS_MS = (100, 400, 2000, 60_000)      # shorter ones than the product allows become longer
PATIENCES_S = (0.3, PATIENCE_S)         # an impatient client has several attempts in flight at once
IDLE = 0.02                     # the chance that a client sends nothing for a while,
IDLE_S = (0.1, 1.5)             # in which its session may end
CUT = 0.03                      # so often the connection breaks before an answer arrives
REPEATED = 0.15                 # so often a command is repeated that was answered:
REMEMBERED = 8                  # one of so many
BOUND = 0.4                     # so many hand-outs are bound to the session
QUEUE_BOUND = 0.5               # and so many queues are
BLOCKED = 0.3                   # so many wait for a job
WAITS_MAX = 5                   # which look so often whether there is one
TOUCHED = 0.02                  # so often a client only uses its session,
CLOSED = 0.02                   # or closes it,
MISTAKEN = 0.02                 # or uses a number for a second command


class Command:
    """A numbered command in all its attempts: its operations by place, and those without a final answer yet."""

    __slots__ = ("left", "number", "operations", "waits")

    def __init__(self, number: int, operations: list[Operation]) -> None:
        self.number = number
        self.operations = dict(enumerate(operations))
        self.begin()

    def begin(self) -> None:
        """Begin an attempt: the whole command is sent."""
        self.left = dict(self.operations)
        self.waits = 0

    @property
    def over(self) -> bool:
        """True if everything is answered; data of a CLONE are no request of their own."""
        return not any(isinstance(operation, Request) for operation in self.left.values())


class SessionClient(Client):
    """Uses one session after the other, with several commands at once."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._session: int | None = None
        self._secret = 0
        self._attached = False              # does the present connection belong to the session?
        self._number = 0                    # the last one that was used
        self._serial = 0                    # identifies each of its commands
        self._commands: list[Command] = []  # not answered yet
        self._answered: deque[Command] = deque(maxlen=REMEMBERED)
        self._pending: dict[Outcome, tuple[Command, int] | None] = {}
        self._patience_s = self._rng.choice(PATIENCES_S)
        self._stopping = False

    @property
    def content(self) -> bool:
        """True if all its requests are answered, also those repeated at the end."""
        return self._stopping and not self._commands

    def act(self) -> None:
        """Send the next request on this connection, if the previous one has been answered."""
        world, rng = self._world, self._rng
        now = world.events.now
        if self._pending and now - self._asked_at < self._patience_s:
            world.events.after(world.plan.think_s, self.act)
            return
        if self._pending:
            self._disconnect()
        if world.clients_stopped and not self._stopping:
            self._stop()
        if self.content:
            return
        node = world.nodes[self._choose()]
        self._asked_at = now
        self._pending = {Outcome(operation, self._told): place for operation, place in self._next()}
        outcomes = list(self._pending)
        world.outcomes += outcomes
        node.propose(outcomes)
        pause_s = rng.expovariate(1 / (BACKOFF_S if self._target is None else world.plan.think_s))
        if rng.random() < IDLE and not self._stopping:
            pause_s += rng.uniform(*IDLE_S)
        world.events.after(pause_s, self.act)

    def _stop(self) -> None:
        """Repeat all repeatable requests, and wait until all are answered: in fragments it takes long."""
        self._stopping, self._patience_s = True, PATIENCE_S
        for command in self._answered:
            command.begin()
        self._commands = [*self._answered, *self._commands]

    def _disconnect(self) -> None:
        """Give up the connection: everything without an answer is repeated on another one."""
        self._target, self._attached = None, False
        self._pending = {}
        for command in self._commands:
            command.begin()

    # Requests

    def _next(self) -> list[tuple[Operation, tuple[Command, int] | None]]:
        rng = self._rng
        if self._session is None:
            self._secret = rng.getrandbits(64)
            return [(OpenSession(self._secret, rng.choice(TTLS_MS)), None)]
        if not self._attached:
            return [(AttachSession(self._session, self._secret), None)]
        if not self._stopping:
            if rng.random() < CLOSED and not self._commands:
                return [(CloseSession(self._session, rng.random() < 0.5), None)]
            if rng.random() < TOUCHED:
                return [(TouchSession(self._session), None)]
            self._find_work()
        return [
            (operation, (command, place)) for command in self._commands for place, operation in command.left.items()
        ]

    def _find_work(self) -> None:
        """Draw new commands when the old ones are answered, and now and then when they are not."""
        rng = self._rng
        if self._answered and rng.random() < REPEATED:
            again = rng.choice(self._answered)
            self._answered.remove(again)
            again.begin()
            self._commands.append(again)
        if not self._commands or rng.random() < 0.3:
            for _ in range(rng.choice(self._world.plan.pipeline)):
                self._commands.append(self._command())

    def _command(self) -> Command:
        rng = self._rng
        assert self._session is not None
        if self._answered and rng.random() < MISTAKEN:
            number = rng.choice(self._answered).number
        else:
            number = self._number = self._number + 1
        self._serial += 1
        digest = b"%8b%08d" % (self._name.encode(), self._serial)
        blocked, until_finished = rng.random() < BLOCKED, rng.random() < 0.3
        operations: list[Operation] = []
        for operation in self._request():
            if isinstance(operation, Return):
                operation = Later(operation.id)
            if isinstance(operation, Requested):
                behind = isinstance(operation, Get) and operation.item_of_put
                if _may_wait(operation) and rng.random() < BOUND and not behind:
                    operation = self._bound(operation)
                if isinstance(operation, BeatWorker):
                    operation = replace(operation, session=self._session)
                creates = isinstance(operation, ConfigureQueue) and operation.create
                if self.passing and creates and rng.random() < QUEUE_BOUND:
                    operation = replace(operation, session=self._session)
                waits = behind or (blocked and (_may_wait(operation) or isinstance(operation, TakeTurn)))
                operations.append(
                    Request(self._session, number, digest, int(behind), waits, operation, until_finished and not behind)
                )
            else:
                operations.append(operation)
        return Command(number, operations)

    def _bound(self, operation: Get | GetWith) -> Get | GetWith:
        if isinstance(operation, GetWith):
            return replace(operation, get=replace(operation.get, session=self._session))
        return replace(operation, session=self._session)

    # Answers

    def _told(self, outcome: Outcome) -> None:
        self._world.told(outcome)
        if outcome not in self._pending:
            return
        if outcome.state != "applied":
            self._disconnect()
        elif self._rng.random() < CUT:
            self._world.trace.seen["answers cut off"] += 1
            self._disconnect()
        else:
            place = self._pending.pop(outcome)
            if place is None:
                self._heard(outcome.operation, outcome.reply)
            else:
                self._answer(*place, outcome.reply)

    def _heard(self, operation: Operation, reply: Any) -> None:
        """Handle the answer to a command about the session itself."""
        if isinstance(reply, SessionOpened):
            self._session, self._attached, self._number = int(reply.sid.partition("_")[0]), True, 0
        elif isinstance(reply, SessionNotFound) or isinstance(operation, CloseSession):
            self._lose_session()
        else:
            self._attached = True

    def _answer(self, command: Command, place: int, reply: Reply | None) -> None:
        """Handle the answer to a part of a command."""
        request = command.left.get(place)
        if request is None:             # no client waits for the answer to a refused PUT .. WAIT
            return
        if isinstance(reply, SessionNotFound):
            self._lose_session()        # the outcomes of all these commands stay unknown
            return
        if isinstance(request, Request) and waits(request, reply):
            command.waits += 1
            if command.waits < WAITS_MAX and not self._stopping:
                return
        self._hold(reply)
        del command.left[place]
        behind = command.left.get(place + 1)
        if isinstance(reply, Stored) and isinstance(behind, Request) and isinstance(behind.operation, Get):
            named = replace(behind.operation, item=reply.item, item_of_put=False)
            command.left[place + 1] = replace(behind, operation=named)
        elif behind is not None and place == 0 and isinstance(request, Request) and isinstance(request.operation, Put):
            del command.left[place + 1]
        if command.over:
            self._commands.remove(command)
            if not self._stopping:
                self._answered.append(command)

    def _lose_session(self) -> None:
        """Forget the session: a new one is needed, in which nothing of the old one can be repeated."""
        self._session = None
        self._pending = {}
        self._commands.clear()
        self._answered.clear()


def _may_wait(operation: Requested) -> TypeGuard[Get | GetWith]:
    """Return whether it is a GET that may wait for a job: without turns, grants or a number."""
    if isinstance(operation, GetWith):
        return operation.turn is None and operation.free is None and operation.number is None
    return isinstance(operation, Get)
