"""A client connection of the real gateway that misbehaves when a test wants it to, once for each fault."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import defaultdict, deque
from collections.abc import Callable
from enum import Enum

from sockpqd.cluster import RefusalLog
from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.parser import Parser
from sockpqd.gateway.server.connection import Connection
from sockpqd.gateway.server.hub import Hub
from sockpqd.gateway.server.port import Port

STEERING = tuple(f"CLUSTER {verb}" for verb in ("ADD", "REMOVE", "TRANSFER", "OFFLINE", "ONLINE", "SNAPSHOT"))
RUBBISH = b"HTTP/1.1 400 Bad Request\r\n\r\n"


class Fault(Enum):
    """The treatment of the next command of a verb instead of an answer."""

    CLOSE = "close without executing it"
    EXECUTE_AND_CLOSE = "execute it, then close without an answer"
    HALF_ANSWER = "execute it, send half of the answer, then close"
    HALF_AND_STALL = "execute it, send half of the answer, keep the connection open"
    FORGET = "execute it, end all sessions, close without an answer"
    STALL = "neither execute nor answer it, keep the connection open"
    EXECUTE_AND_STALL = "execute it, do not answer"
    RUBBISH = "answer something that is not the protocol"
    ENDLESS = "answer without ever ending the line"
    TWICE = "answer it, and once more"
    REFUSE = "500 Offline Mode"
    BUSY = "503 Busy"
    TOO_LARGE = "413 Data Too Large"
    TRICKLE = "announce a body and send one byte of it each 20 ms"


EXECUTED = (
    Fault.EXECUTE_AND_CLOSE, Fault.HALF_ANSWER, Fault.HALF_AND_STALL, Fault.FORGET, Fault.EXECUTE_AND_STALL,
    Fault.TWICE,
)
CLOSING = (Fault.CLOSE, Fault.EXECUTE_AND_CLOSE, Fault.HALF_ANSWER, Fault.FORGET, Fault.RUBBISH)


class Script:
    """The faults of one server, and a record of what its clients sent."""

    def __init__(self) -> None:
        self.executed: list[str] = []           # command lines that changed something, of the whole cluster
        self.received: list[str] = []           # command lines, without their REQ and without CLUSTER ID
        self.numbers: list[int] = []            # of the requests among them, 0 for the others
        self.asked_id = 0                       # how often CLUSTER ID came
        self.accepted = 0                       # connections so far
        self.delay_s = 0.0                      # of every answer but that to CLUSTER ID
        self.reset_after_line = False           # reset the connection instead of reading the data of a command
        self.answers: dict[str, bytes] = {}     # to these commands, or verbs, instead of the server's
        self.faults: dict[str, deque[Fault | None]] = defaultdict(deque)
        self.forget: Callable[[], None] = lambda: None      # ends all sessions
        self.on_loss: Callable[[], None] = lambda: None     # called when a connection is closed by a fault

    def fail(self, verb: str, *faults: Fault | None) -> None:
        """Apply these faults to the next commands of this verb, one each; None: no fault."""
        self.faults[verb].extend(faults)

    @property
    def faulty(self) -> bool:
        """True while it matters which command an answer belongs to."""
        return bool(self.delay_s) or any(self.faults.values())

    def note(self, line: str) -> str:
        """Record a command line. Returns it without its request number."""
        words = line.split()
        number = 0
        if words[:1] == ["REQ"] and len(words) > 2:
            number, words = int(words[1]), words[2:]
        line = " ".join(words)
        if line == "CLUSTER ID":
            self.asked_id += 1
        else:
            self.received.append(line)
            self.numbers.append(number)
        return line

    def next_fault(self, verb: str) -> Fault | None:
        """Take the fault of the next command of this verb."""
        faults = self.faults[verb]
        return faults.popleft() if faults else None


class FaultyConnection(Connection):
    """Knows which command an answer belongs to: while faults are to come, it passes on one command at a time."""

    def __init__(self, hub: Hub, port: Port, complaints: RefusalLog, script: Script) -> None:
        super().__init__(hub, port, complaints)
        self._script = script
        self._parser = Parser(hub.limits, VERBS)
        self._input = bytearray()               # received and not passed on
        self._lines = 0                         # of the commands so far
        self._fault: Fault | None = None        # of the command that is executed
        self._executing = False
        self._line = ""                         # of the latest command
        self._changes = False                   # it is one that changes something
        self._dropping = False                  # the data that follow, as their command was not passed on
        self._mute = False                      # nothing is read or answered any more
        self._foreign: bool | None = None       # it is not the protocol, as with TLS on a plain port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._script.accepted += 1
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._foreign is None:
            self._foreign = not data[:1].isalpha()
        if self._foreign:
            super().data_received(data)
        elif not self._mute:
            self._input += data
            self._parser.feed(data)
            self._go_on()

    def eof_received(self) -> bool:
        if self._mute:
            self._transport.close()
            return False
        return super().eof_received()

    def write(self, data: bytes) -> None:
        fault, self._fault = self._fault, None
        self._executing = False
        if self._changes and data.startswith(b"2"):
            self._script.executed.append(self._line)
        self._changes = False
        if self._mute:
            return
        if fault is not None:
            self._misbehave(fault, data)
            return
        self._send(data)
        if data.startswith(b"206 ") and (fault := self._script.next_fault("WAIT")) is not None:
            self._misbehave(fault, b"")
        asyncio.get_running_loop().call_soon(self._go_on)

    def _send(self, data: bytes) -> None:
        if self._script.delay_s and self._line != "CLUSTER ID":
            asyncio.get_running_loop().call_later(self._script.delay_s, super().write, data)
        else:
            super().write(data)

    def _go_on(self) -> None:
        while not self._mute and not (self._executing and (self._fault is not None or self._script.faulty)):
            command = self._parser.next()
            self._parser.extra_work = 0
            if command is None:
                if self._script.reset_after_line and self._parser.missing_bytes:
                    self._reset()
                return
            length = len(self._input) - self._parser.backlog_bytes
            raw = bytes(self._input[:length])
            del self._input[:length]
            if self._parser.lines > self._lines:
                self._lines = self._parser.lines
                self._command(raw, command)
            elif not self._dropping:            # the next piece of a snapshot
                super().data_received(raw)

    def _command(self, raw: bytes, command: Command) -> None:
        line = self._line = self._script.note(raw.lstrip().split(b"\n")[0].decode())
        verb = line.split()[0]
        fault = None if line == "CLUSTER ID" else self._script.next_fault(verb)
        answer = self._script.answers.get(line, self._script.answers.get(verb))
        self._dropping = answer is not None or (fault is not None and fault not in EXECUTED)
        if answer is not None:
            self._send(answer)
        elif fault is not None and fault not in EXECUTED:
            self._misbehave(fault, b"")
        else:
            self._fault, self._executing = fault, True
            self._changes = line.startswith(STEERING) or (command.operation is not None and verb != "SESSION")
            super().data_received(raw)

    def _misbehave(self, fault: Fault, answer: bytes) -> None:
        if fault in (Fault.REFUSE, Fault.BUSY, Fault.TOO_LARGE):
            super().write(f"{fault.value}\r\n".encode())
            return
        self._mute = True
        if fault in (Fault.HALF_ANSWER, Fault.HALF_AND_STALL):
            super().write(answer[: len(answer) // 2])
        elif fault is Fault.TWICE:
            super().write(answer * 2)
        elif fault is Fault.RUBBISH:
            super().write(RUBBISH)
        elif fault is Fault.ENDLESS:
            super().write(b"2" * 100_000)
        elif fault is Fault.TRICKLE:
            super().write(b"200 OK q 1 0 100000\r\n")
            self._trickle()
        elif fault is Fault.FORGET:
            asyncio.get_running_loop().call_soon(self._script.forget)
        if fault in CLOSING:
            self._script.on_loss()
            asyncio.get_running_loop().call_soon(self._transport.close)

    def _trickle(self) -> None:
        if not self._transport.is_closing():
            super().write(b"x")
            asyncio.get_running_loop().call_later(0.02, self._trickle)

    def _reset(self) -> None:
        self._mute = True
        linger = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.abort()
