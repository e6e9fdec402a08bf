"""Turns bytes into commands: common ones at once, others by lines and bodies, parts of which may be dropped."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from sockpqd.beanstalk import answers
from sockpqd.beanstalk.commands import BadFormat, BodyHeader, ParsedCommand, read_line, usual_command
from sockpqd.beanstalk.limits import BACKLOG_BYTES_MAX, BODY_BYTES_MAX, LINE_BYTES_MAX


class Wrong(NamedTuple):
    """An error to answer instead of executing a command; `verb`: the command, if it is counted nevertheless."""

    answer: bytes
    verb: str = ""


BAD_FORMAT = Wrong(answers.BAD_FORMAT)
UNKNOWN_COMMAND = Wrong(answers.UNKNOWN_COMMAND)
FOREIGN = Wrong(answers.UNKNOWN_COMMAND)        # the client speaks HTTP or TLS: the connection ends with this answer

# A web page of a stranger can make a browser send any data, also to this port, after HTTP's own lines.
_REQUEST_LINE = re.compile(rb"\S+ .* HTTP/\d(\.\d)?", re.DOTALL)
_REQUEST_LINE_END = re.compile(rb".* HTTP/\d(\.\d)?", re.DOTALL)
_HOST = b"host:"
_HANDSHAKE = b"\x16\x03"        # what each connection of TLS begins with
LINE_END_BYTES = 16             # of a line that is too long these are kept: the end of a request line is among them


class _Foreign(Exception):
    """The line belongs to HTTP."""


class Reader:
    """The input of one connection."""

    __slots__ = (
        "_body_bytes_max", "_buffer", "_drop_answer", "_dropped", "_dropping_line", "_empty_lines", "_no_room", "_put",
        "_wanted", "commands", "usual",
    )

    def __init__(
        self, body_bytes_max: int = BODY_BYTES_MAX, no_room: Callable[[], bool] = lambda: False,
    ) -> None:
        """`no_room`: whether a body that has yet to arrive cannot be kept."""
        self._body_bytes_max = body_bytes_max
        self._no_room = no_room
        self.commands = 0                       # lines so far, usual ones included
        self._empty_lines = 0                   # before the first other one
        self._buffer = bytearray()
        self.usual: ParsedCommand | None = None       # a usual command, before what is in the buffer
        self._put: ParsedCommand | None = None        # its body is arriving
        self._wanted = 0                        # bytes of the body with CR LF
        self._dropped = 0                       # bytes of a body that is not kept, still to be dropped
        self._drop_answer = answers.JOB_TOO_BIG     # what is answered then
        self._dropping_line = False             # of a line that is too long, up to its end

    @property
    def full(self) -> bool:
        """True if too much input is buffered for more to be fed now."""
        return len(self._buffer) > BACKLOG_BYTES_MAX + self._wanted

    @property
    def pending(self) -> bool:
        """True if there are bytes left that are not part of a parsed command."""
        return self.usual is not None or bool(self._buffer)

    @property
    def held_bytes(self) -> int:
        """The number of bytes held here."""
        return len(self._buffer) if self.usual is None else len(self._buffer) + len(self.usual.body)

    @property
    def amid_command(self) -> bool:
        """True if the next command has arrived in part."""
        return self._put is not None or self._dropped > 0 or self._dropping_line or bool(self._buffer)

    def feed(self, data: bytes) -> None:
        """Add received bytes for the next commands."""
        if not self._buffer and self.usual is None and self._put is None and not self._dropped:
            self.usual = usual_command(data, self._body_bytes_max)
            if self.usual is not None:
                self.commands += 1
                return
        self._buffer += data

    def close(self) -> None:
        """Forget everything: the connection is gone."""
        self._buffer.clear()
        self.usual = self._put = None
        self._wanted, self._dropped, self._dropping_line = 0, 0, False

    def next(self) -> ParsedCommand | Wrong | None:
        """Return the next command, or its error; None: more bytes are needed."""
        if self.usual is not None:
            usual, self.usual = self.usual, None
            return usual
        if self._dropped:
            return self._drop()
        if self._put is not None:
            return self._body(self._put)
        try:
            line = self._line()
            if line is None:
                return None
            if self._is_foreign(line):
                return FOREIGN
            if self._first and not line.strip():
                self._empty_lines += 1
            found = read_line(line)
        except BadFormat:
            return BAD_FORMAT
        except _Foreign:
            return FOREIGN
        if found is None:
            return UNKNOWN_COMMAND
        command, body = found
        return command if body is None else self._begin_body(command, body)

    def _is_foreign(self, line: bytes) -> bool:
        """Return whether this is a line that only an HTTP client sends."""
        return line[: len(_HOST)].lower() == _HOST or (self._first and _REQUEST_LINE.fullmatch(line) is not None)

    @property
    def _first(self) -> bool:
        """True if all lines before the last one were empty."""
        return self.commands == self._empty_lines + 1

    def _line(self) -> bytes | None:
        """Return the next line without its end, None if it is not complete. Raises BadFormat when it was too long."""
        buffer = self._buffer
        if self.commands == self._empty_lines and buffer.startswith(_HANDSHAKE):
            raise _Foreign
        end = buffer.find(b"\r\n")
        if end < 0:
            if len(buffer) >= LINE_BYTES_MAX or self._dropping_line:
                if not self._dropping_line and buffer[: len(_HOST)].lower() == _HOST:
                    raise _Foreign
                self._dropping_line = True
                del buffer[:-LINE_END_BYTES]    # the last byte may be a CR
            return None
        self.commands += 1
        line = bytes(buffer[:end])
        del buffer[: end + 2]
        if self._dropping_line or end + 2 > LINE_BYTES_MAX:
            self._dropping_line = False
            if self._is_foreign(line) or (self._first and _REQUEST_LINE_END.fullmatch(line) is not None):
                raise _Foreign
            raise BadFormat
        return line

    def _begin_body(self, put: ParsedCommand, body: BodyHeader) -> ParsedCommand | Wrong | None:
        if body.length > self._body_bytes_max:
            return self._drop_body(body.length, answers.JOB_TOO_BIG)
        if not body.clean:                      # looked at after the length, as there
            return BAD_FORMAT
        if len(self._buffer) < body.length + 2 and self._no_room():
            return self._drop_body(body.length, answers.OUT_OF_MEMORY)
        self._put, self._wanted = put, body.length + 2
        return self._body(put)

    def _body(self, put: ParsedCommand) -> ParsedCommand | Wrong | None:
        buffer, wanted = self._buffer, self._wanted
        if len(buffer) < wanted:
            return None
        body = bytes(buffer[:wanted])
        del buffer[:wanted]
        self._put, self._wanted = None, 0
        if not body.endswith(b"\r\n"):
            return Wrong(answers.EXPECTED_CRLF, put.verb)
        return ParsedCommand(put.verb, put.numbers, body=body[:-2])

    def _drop_body(self, length: int, answer: bytes) -> Wrong | None:
        self._dropped, self._drop_answer = length + 2, answer
        return self._drop()

    def _drop(self) -> Wrong | None:
        count = min(self._dropped, len(self._buffer))
        del self._buffer[:count]
        self._dropped -= count
        return None if self._dropped else Wrong(self._drop_answer, "put")
