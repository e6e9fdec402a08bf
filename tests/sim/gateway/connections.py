"""Simulated TCP connections between clients and the gateways of nodes.

What is sent arrives in order after the delay of the line. A paused process reads it when it resumes; when it
dies, or the other side breaks the connection, both sides notice after the delay. Nothing is lost on the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tests.gateway.helpers.memory import NoSocket
from tests.sim.gateway.answers import Answer, AnswerReader, Asked

if TYPE_CHECKING:
    from tests.sim.gateway.node import GatewayNode

HOST = "10.0.0.9"


class Caller(Protocol):
    """The side of a line that connects."""

    def heard(self, line: Line, answer: Answer) -> None:
        """Handle an answer that has arrived on this line."""

    def cut_off(self, line: Line) -> None:
        """Handle the end of a connection, or of an attempt to connect where no process listens."""


class Line:
    """A connection, as its client sees it."""

    def __init__(self, node: GatewayNode, caller: Caller, delay_s: float) -> None:
        """Connect to the process of this node; each direction takes `delay_s` simulated seconds."""
        self.node = node
        self.open = True                    # for the client
        self.answers = AnswerReader()
        self._caller = caller
        self._delay_s = delay_s
        self._arrives_at = 0.0              # what was sent last, in either direction
        self._end: SimTransport | None = None       # the other end
        self._later(self._dialed)

    def ask(self, command: bytes, asked: Asked) -> None:
        """Send a command; `asked` says what its answer looks like."""
        self.answers.expected.append(asked)
        self._later(lambda: self._arrives(command))

    def finish(self) -> None:
        """Send nothing more, and read nothing."""
        self.open = False
        self._later(lambda: self._tells(lambda end: end.ended_by_client()))

    def vanish(self) -> None:
        """Break the connection; the process notices after the delay."""
        self.open = False
        self._later(lambda: self._tells(lambda end: end.reset()))

    def fall_silent(self) -> None:
        """Read nothing more, without notice to the server."""
        self.open = False

    def _later(self, action: Callable[[], None]) -> None:
        events = self.node.world.events
        self._arrives_at = max(self._arrives_at, events.now + self._delay_s)
        events.at(self._arrives_at, action)

    # At the server

    def _dialed(self) -> None:
        if self.node.running:
            self._end = SimTransport(self)
            self.node.accept(self._end)
        else:
            self.broken()

    def _arrives(self, data: bytes) -> None:
        self._tells(lambda end: end.received(data))

    def _tells(self, what: Callable[[SimTransport], None]) -> None:
        if self._end is not None and not self._end.gone:
            what(self._end)

    # From the server

    def answered(self, answer: Answer) -> None:
        """Deliver what the server has written."""
        self._later(lambda: self._caller.heard(self, answer) if self.open else None)

    def broken(self) -> None:
        """Handle the end of the server."""
        self._later(self._cut_off)

    def _cut_off(self) -> None:
        if self.open:
            self.open = False
            self._caller.cut_off(self)


class SimTransport(asyncio.Transport):
    """The server's end: the transport under a Connection. The monitor sees what is written at that moment."""

    def __init__(self, line: Line) -> None:
        super().__init__({"peername": (HOST, 1), "socket": NoSocket()})
        self.gone = False                   # no process is connected to it any more
        self._line = line
        self._node = line.node
        self._protocol: asyncio.Protocol | None = None
        self._closing = False
        self._reading = True
        self._unread: list[bytes] = []

    @property
    def line(self) -> Line:
        """Return the line as its client sees it."""
        return self._line

    def begin(self, protocol: asyncio.Protocol) -> None:
        """Start reading: the connection was accepted."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._read_on()

    def received(self, data: bytes) -> None:
        """Receive bytes of the client: the process finds them when it has the processor."""
        self._node.soon(lambda: self._read(data))

    def _read(self, data: bytes) -> None:
        if self._closing:
            return
        if self._protocol is None or not self._reading:
            self._unread.append(data)
        else:
            self._node.reads(self._line, data)
            self._protocol.data_received(data)

    def ended_by_client(self) -> None:
        """Handle the end of the client's output."""
        self._node.soon(self._end_of_input)

    def _end_of_input(self) -> None:
        if not self._closing and self._protocol is not None and not self._protocol.eof_received():
            self.close()

    def reset(self) -> None:
        """Break the connection as the client: until the process notices it writes as before."""
        self._node.soon(self.abort)

    def died(self) -> None:
        """Handle the death of the process."""
        self.gone = True
        self._line.broken()

    # asyncio.Transport

    def write(self, data: bytes) -> None:       # type: ignore[override]
        if not self._closing:
            for answer in self._line.answers.feed(data):
                self._node.wrote(self._line, answer)
                self._line.answered(answer)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: all data are taken at once."""

    def write_eof(self) -> None:
        self._line.broken()

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self._closing:
            self._closing = True
            self._line.broken()
            self._node.soon(self._lost)

    def _lost(self) -> None:
        self.gone = True
        self._node.forget(self)
        if self._protocol is not None:
            self._protocol.connection_lost(None)

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        if self._unread:
            self._node.soon(self._read_on)

    def _read_on(self) -> None:
        unread, self._unread = self._unread, []
        for data in unread:
            self._read(data)
