"""One connection's side of the protocol, without IO: commands become bytes, bytes become answers.

The server answers strictly in the order of the commands, so the automaton is a queue: the reader of the oldest
unanswered command gets the bytes; when it is finished the next one begins. The caller that moves the bytes uses `send`
and `receive`, and decides nothing about their meaning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from sockpq._protocol.command import Command
from sockpq._protocol.reader import LINE, Reader, as_text
from sockpq._protocol.rights import needed
from sockpq.errors import Aborted, ForbiddenError, ProtocolError, SockpqError
from sockpq.model import Waiting

REPLY_LINE_BYTES_MAX = 65_536


class Answer(NamedTuple):
    """The result of one command: its value, or the error that the server answered."""

    value: Any
    error: SockpqError | None = None


class Protocol:
    """The automaton of one connection."""

    def __init__(self) -> None:
        self._unanswered: deque[Command[Any]] = deque()
        self._received = bytearray()
        self._position = 0                          # of the first byte no reader has taken
        self._reader: Reader[Any] | None = None     # of the oldest unanswered command, once it has begun
        self._need: int = LINE
        self._broken: ProtocolError | None = None   # found after answers that were still good
        self._in_step = True                        # False while bytes are taken, and for good when that is interrupted
        self.waiting: Waiting | None = None         # that command is a PUT .. WAIT and its 206 has come

    def __len__(self) -> int:
        """Return the number of commands without an answer."""
        return len(self._unanswered)

    @property
    def at_rest(self) -> bool:
        """True if every command is answered, and no part of an answer remains."""
        return self._in_step and not self._unanswered

    @property
    def amid_answer(self) -> bool:
        """True if a line or a body has begun and not ended."""
        return bool(self._received) or self._need != LINE

    def send(self, command: Command[Any], number: int = 0) -> tuple[bytes, bytes]:
        """Expect the answer to `command`; returns the bytes to send, in two parts to spare large bodies a copy.

        `number`: the number of the request in the connection's session, 0 for a request without one.
        """
        self._unanswered.append(command)
        line = b"REQ %d %s" % (number, command.line) if number else command.line
        return command.prelude + line if command.prelude else line, command.data

    def receive(self, data: bytes) -> list[Answer]:
        """Take bytes from the server; returns the answers that are complete, in the order of their commands.

        Raises ProtocolError when the bytes are not the protocol; the connection must then be closed. Answers before the
        invalid bytes are returned first; the next call raises the error.
        """
        if self._broken:
            raise self._broken
        self._in_step = False
        self._received += data
        answers: list[Answer] = []
        try:
            self._read(answers)
        except ProtocolError as error:
            self._broken = error
            if not answers:
                raise
        del self._received[: self._position]
        self._position = 0
        self._in_step = self._broken is None
        return answers

    def _read(self, answers: list[Answer]) -> None:
        """Let the readers process the received bytes."""
        while self._unanswered:
            of_line = self._unanswered[0].of_line
            if self._reader is None and of_line is None:
                self._reader = self._unanswered[0].read()
                self._need = self._advance(None)
            chunk = self._take()
            if chunk is None:
                return
            self._step(chunk, of_line, answers)
        if self._position < len(self._received):
            raise ProtocolError(f"bytes nobody asked for: {bytes(self._received[self._position :][:100])!r}")

    def _step(self, chunk: bytes, of_line: Callable[[str], Any] | None, answers: list[Answer]) -> None:
        """Give the reader the line or bytes it needs; an answer that is a single line needs no reader."""
        try:
            if of_line is None:
                self._need = self._advance(chunk)
                return
            answers.append(Answer(of_line(as_text(chunk))))
        except StopIteration as end:
            answers.append(Answer(end.value))
        except ProtocolError:
            raise
        except SockpqError as error:
            _name_rights(error, self._unanswered[0])
            answers.append(Answer(None, error))
        self._unanswered.popleft()
        self._reader = None
        self._need = LINE
        self.waiting = None

    def _advance(self, chunk: bytes | None) -> int:
        """Return how much the reader needs next, or LINE. When it is complete, StopIteration carries its value."""
        assert self._reader is not None
        step = next(self._reader) if chunk is None else self._reader.send(chunk)
        while isinstance(step, Waiting):
            self.waiting = step
            step = next(self._reader)
        return step

    def _take(self) -> bytes | None:
        """Return the line or the bytes that are needed, None while they are incomplete."""
        start = self._position
        if self._need != LINE:
            end = start + self._need
            if len(self._received) < end:
                return None
            self._position = end
            return bytes(self._received[start:end])
        end = self._received.find(b"\n", start, start + REPLY_LINE_BYTES_MAX)
        if end < 0:
            if len(self._received) - start >= REPLY_LINE_BYTES_MAX:
                raise ProtocolError(f"no line end in {REPLY_LINE_BYTES_MAX} bytes")
            return None
        if end == start or self._received[end - 1] != 0x0D:
            raise ProtocolError("a line without CRLF")
        self._position = end + 1
        return bytes(self._received[start : end - 1])


def _name_rights(error: SockpqError, command: Command[Any]) -> None:
    """Let a refusal say which rights the command takes, or that command of a transaction for which it was aborted."""
    if isinstance(error, Aborted):
        members = command.members[error.position - 1:error.position] if error.position > 0 else ()
        error, command = error.reason, members[0] if members else command
    if isinstance(error, ForbiddenError):
        error.needs = needed(command)
