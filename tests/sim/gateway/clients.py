"""Clients of simulated gateways: they wait for turns and jobs, report results, vanish, and reconnect elsewhere.

The life of a client is a generator: it yields how many seconds pass before it continues, and `ask` waits for an answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeAlias

from tests.sim.gateway.answers import Answer, Asked, Form
from tests.sim.gateway.connections import Line

if TYPE_CHECKING:
    from tests.sim.gateway.world import GatewayWorld

FOR_EVER = float("inf")
PATIENCE_S = 5.0                # for an answer that should come at once
BACKOFF_S = (0.02, 0.4)
AWAY_S = 7.0                    # some come back to their session later
DELAYS_S = (0.0002, 0.0002, 0.001, 0.005, 0.08)
KNOWS = 0.8                     # so often a client dials the node that serves
SESSION_TTL_S = 120
READY_MAX = 5                   # producers hold back then

Life: TypeAlias = Generator[float, "Answer | None", None]
Asking: TypeAlias = Generator[float, "Answer | None", "Answer | None"]


class GatewayClient:
    """A client with one connection at a time."""

    def __init__(self, world: GatewayWorld, number: int, life: Callable[[GatewayClient], Life]) -> None:
        self.world = world
        self.rng = random.Random(world.rng.random())
        self.number = number
        self.session = Session()
        self._life = life(self)
        self._line: Line | None = None
        self._waits = 0                 # counts what it has waited for
        world.events.after(self.rng.random(), lambda: self._go_on(None))

    # For its life

    @property
    def open(self) -> bool:
        """True if it is connected as far as it knows."""
        return self._line is not None and self._line.open

    def dial(self, *, anywhere: bool = False) -> None:
        """Connect to a node, mostly to the one that serves, or `anywhere`."""
        nodes = list(self.world.nodes.values())
        serving = [node for node in nodes if node.serving]
        choice = serving if serving and not anywhere and self.rng.random() < KNOWS else nodes
        self._line = Line(self.world.gateway(self.rng.choice(choice)), self, self.rng.choice(DELAYS_S))

    def leave(self) -> None:
        """End the connection in some way."""
        line, self._line = self._line, None
        if line is not None and line.open:
            self.rng.choice((line.finish, line.vanish, line.fall_silent))()

    def hang_up(self) -> None:
        """End the connection so that the server notices."""
        line, self._line = self._line, None
        if line is not None and line.open:
            line.finish()

    def ask(self, command: str, asked: Asked = Asked(), *, patience_s: float = PATIENCE_S) -> Asking:  # noqa: B008
        """Send a command; returns None if there was no answer and the connection is gone."""
        line = self._line
        if line is None or not line.open:
            return None
        line.ask(command.encode() + b"\r\n", asked)
        answer = yield patience_s
        if answer is None:
            self.leave()
        return answer

    # Caller

    def heard(self, line: Line, answer: Answer) -> None:
        """Implement Caller."""
        if line is self._line:
            self._go_on(answer)

    def cut_off(self, line: Line) -> None:
        """Implement Caller."""
        if line is self._line:
            self._line = None
            self._go_on(None)

    def _go_on(self, answer: Answer | None) -> None:
        self._waits += 1
        waits = self._waits
        seconds = self._life.send(answer)
        if seconds < FOR_EVER:
            self.world.events.after(seconds, lambda: self._go_on(None) if self._waits == waits else None)


class Session:
    """A client's knowledge of its session."""

    sid: str = ""
    number: int = 0             # of the last command


def accepted(answer: Answer | None) -> bool:
    """Return whether the answer was 200."""
    return answer is not None and answer.line.startswith(b"200")


def _attached(client: GatewayClient) -> Generator[float, Answer | None, bool]:
    """Open a session, or return to it."""
    session = client.session
    answer = yield from client.ask(f"SESSION {session.sid}" if session.sid else f"SESSION TTL {SESSION_TTL_S}")
    if answer is not None and answer.line.startswith(b"404"):
        session.sid = ""
    if answer is None or not accepted(answer):
        return False
    if not session.sid:
        session.sid, session.number = answer.line.split()[3].decode(), 0
    return True


def _repeats(client: GatewayClient, command: str, asked: Asked, patience_s: float) -> Asking:
    """Repeat a request in the session until there is an answer; None: the session is gone."""
    session = client.session
    session.number += 1
    while session.sid:
        answer = yield from client.ask(f"REQ {session.number} {command}", asked, patience_s=patience_s)
        if answer is not None and not answer.line.startswith((b"500", b"503", b"504")):
            return answer
        client.leave()
        yield AWAY_S if client.rng.random() < 0.2 else client.rng.uniform(*BACKOFF_S)
        client.dial()
        if not (yield from _attached(client)):
            client.leave()
    return None


def takes_turns(pulse: str, *, numbered: bool) -> Callable[[GatewayClient], Life]:
    """Wait for a turn, work, and report the result."""
    def life(client: GatewayClient) -> Life:
        rng, asked = client.rng, Asked(Form.TURN, pulse)
        while True:
            client.dial()
            going = (yield from _attached(client)) if numbered else True
            while going:
                within = rng.choice(("", "", " WITHIN 0", " WITHIN 0.3", " WITHIN 10", " WITHIN 10"))
                patience_s = rng.choice((0.2, 3.0, FOR_EVER, FOR_EVER, FOR_EVER, FOR_EVER))
                command = f"PULSE WAIT {pulse}{within}"
                if numbered:
                    answer = yield from _repeats(client, command, asked, min(patience_s, 20.0))
                else:
                    answer = yield from client.ask(command, asked, patience_s=patience_s)
                if answer is not None and answer.ticket is not None:
                    yield rng.choice((0.0, 0.0, 0.05, 0.5))
                    yield from _tells(client, f"PULSE RESULT {answer.ticket}", "OK")
                elif answer is None or not answer.line.startswith(b"408"):
                    going = False
                elif within == " WITHIN 0":
                    yield rng.choice((0.2, 2.0))
            client.leave()
            yield rng.uniform(*BACKOFF_S)
    return life


def takes_jobs(queue: str, *, numbered: bool) -> Callable[[GatewayClient], Life]:
    """Wait for jobs and finish them."""
    def life(client: GatewayClient) -> Life:
        rng, asked = client.rng, Asked(Form.JOBS)
        while not client.world.prepared:
            yield 0.1
        while True:
            client.dial()
            going = (yield from _attached(client)) if numbered else True
            while going:
                verb = rng.choice(("GET", "GETB", "GETB", "GETB"))
                within = rng.choice(("", " WITHIN 0.3", " WITHIN 10")) if verb == "GETB" else ""
                command = f"{verb} {queue} EXPIRE 30 COUNT {rng.choice((1, 1, 2, 50))}{within}"
                patience_s = rng.choice((0.2, 3.0, 20.0, 20.0, 20.0, 20.0))
                if numbered:
                    answer = yield from _repeats(client, command, asked, patience_s)
                else:
                    answer = yield from client.ask(command, asked, patience_s=patience_s)
                for _, number in () if answer is None else answer.jobs:
                    yield rng.choice((0.0, 0.0, 0.02))
                    yield from _tells(client, f"{rng.choice(('DONE', 'DONE', 'LATER'))} {number}", "")
                going = answer is not None and answer.line.startswith((b"200", b"404"))
                yield 0.0 if accepted(answer) else rng.choice((0.1, 1.0))
            client.leave()
            yield rng.uniform(*BACKOFF_S)
    return life


def _tells(client: GatewayClient, command: str, well: str) -> Asking:
    """Report the result of some work; some clients vanish before that."""
    draw = client.rng.random()
    if draw < 0.05:
        client.leave()
        return None
    word = client.world.mood(client.rng) or well
    return (yield from client.ask(f"{command} {word}".rstrip()))


def puts_jobs(queue: str) -> Callable[[GatewayClient], Life]:
    """Put jobs all the time."""
    def life(client: GatewayClient) -> Life:
        while True:
            client.dial()
            going = True
            while going:
                while client.world.ready(queue) > READY_MAX:
                    yield 0.5
                going = accepted((yield from client.ask(f"PUT {queue} {client.rng.randrange(3)} 1\r\nx")))
                yield 0.02
            client.leave()
            yield client.rng.uniform(*BACKOFF_S)
    return life


def operates(commands: list[str]) -> Callable[[GatewayClient], Life]:
    """Execute these commands, one after the other, until each is done."""
    def life(client: GatewayClient) -> Life:
        for command in commands:
            done = False
            while not done:
                client.dial()
                answer = yield from client.ask(command)
                done = answer is not None and answer.line.startswith((b"200", b"409", b"404"))
                client.leave()
                yield client.rng.uniform(*BACKOFF_S)
        client.world.prepared = True
        while True:
            yield FOR_EVER
    return life
