"""Bytes in, commands out, without IO: lines, data blocks, and what to do with those that cannot be accepted.

Bytes are fed as they come; commands are pulled, so that what stands behind a blocked command stays here as plain bytes.
A data block is cut out of the received bytes once; one that comes in many pieces is joined once, at its end.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.limits import (
    CLONE_CHUNK_BYTES_MAX,
    COMMANDS_PER_SLICE,
    LONG_LINE_BYTES,
    SKIPPED_BYTES_MAX,
    Limits,
)
from gateway.protocol.arguments import ArgumentError
from gateway.protocol.command import Command, Words
from gateway.protocol.grammar.bodies import JOBS, SNAPSHOT
from gateway.protocol.puts_reader import PutsSoFar
from gateway.protocol.responses import BAD_ARGUMENTS, BAD_COMMAND, TOO_LARGE
from gateway.protocol.verbs import Verbs

CR = 13
PIECE_BYTES = 16 << 10      # of a data block; smaller ones are gathered first


class _LineError(Exception):
    """The line is too long."""


class Parser:
    """One client's stream of commands. It never raises, whatever the bytes are.

    `guard` is asked about each command before its data are read: it says what is answered instead. `no_room` is asked
    likewise about data that are not here yet, and those are dropped.
    """

    def __init__(
        self, limits: Limits, verbs: Verbs, guard: Callable[[Command], bytes | None] | None = None,
        no_room: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        self._limits = limits
        self._short_bytes = min(LONG_LINE_BYTES, limits.line_bytes_max)     # of lines that need no check
        self._verbs = verbs
        self._plain = verbs.plain
        self._guard = guard
        self._no_room = no_room
        self._buffer = b""                  # what is looked at, from _start on
        self._start = 0
        self._later = bytearray()           # what came while _buffer was not used up
        self._block: Callable[[], Command | None] | None = None     # reads on in a data block, while one is due
        self._left = 0                      # bytes of that block still to come
        self._head: Command | None = None   # whose block is collected
        self._puts: PutsSoFar | None = None     # the PUTS whose lines and blocks are collected
        self._pieces: list[bytes] = []      # what is collected, joined when all is there,
        self._few = bytearray()             # and behind it what came in pieces so small that a list of them is too much
        self._skip_answer = b""             # what is said when the block has been skipped
        self.holding = False                # some of what came is kept here, or may be
        self.lines = 0                      # complete ones, so far
        self.toil = 0                       # work beyond that of plain commands, in such; whoever counts sets it to 0
        self._closed = False

    @property
    def backlog_bytes(self) -> int:
        """Bytes received and not yet looked at."""
        return len(self._buffer) - self._start + len(self._later)

    @property
    def held_bytes(self) -> int:
        """Bytes that are kept here, of commands that are complete and of one that is not."""
        held = len(self._buffer) + len(self._later)
        if self._puts is not None:
            held += max(0, self._puts.held_bytes - (self._left if self._puts.amid_job else 0))
        elif self._head is not None:
            held += (self._head.length or 0) - self._left
        return held

    @property
    def complete(self) -> int:
        """Commands that are complete, so far (empty lines included)."""
        return self.lines - (self._block is not None)

    @property
    def missing_bytes(self) -> int:
        """Of the data block that is being received, 0 when there is none."""
        return self._left - self.backlog_bytes if self._block is not None else 0

    @property
    def amid_command(self) -> bool:
        """Is the next command here in part? (When next() has returned None.)"""
        return self._block is not None or self._start != len(self._buffer) or len(self._later) > 0

    def feed(self, data: bytes) -> None:
        """Take what the client sent."""
        if self._closed:
            return
        self.holding = True
        if self._start == len(self._buffer) and not self._later:
            self._buffer = data
            self._start = 0
        else:
            self._later += data

    def next(self) -> Command | None:
        """The next command, None when more bytes are needed, or when it is so much that others should have their turn
        (then there is `toil`). Behind a stream that is broken off there is none."""
        if self._block is not None:
            return self._block()
        while True:
            start, buffer = self._start, self._buffer
            end = buffer.find(b"\n", start)
            if 0 <= end < start + self._short_bytes:        # most lines: the same as below, without a call
                self._start = end + 1
                if end > start and buffer[end - 1] == CR:
                    end -= 1
                line = buffer[start:end]
            elif end < 0 and start == len(buffer) and not self._later:
                self._buffer, self._start = b"", 0          # an idle client keeps no memory
                self.holding = False
                return None
            else:
                try:
                    complete = self._line()                 # long, in two pieces, or not all here
                except _LineError:
                    return self._broken(BAD_COMMAND)
                if complete is None:
                    return None
                line = complete
                self.toil += len(line) // LONG_LINE_BYTES
            self.lines += 1
            words = line.split()
            if words:                                       # an empty line is ignored
                return self._command(words, line)

    def _line(self) -> bytes | None:
        """The next line without its end, None when it is not complete."""
        start = self._start
        end = self._buffer.find(b"\n", start)
        if end < 0 and self._later:
            self._merge()
            start, end = 0, self._buffer.find(b"\n")
        if (end if end >= 0 else len(self._buffer)) - start >= self._limits.line_bytes_max:
            raise _LineError
        if end < 0:
            if start == len(self._buffer):
                self._buffer, self._start = b"", 0          # an idle client keeps no memory
                self.holding = self._block is not None
            return None
        self._start = end + 1
        if end > start and self._buffer[end - 1] == CR:
            end -= 1
        return self._buffer[start:end]

    def _command(self, words: Words, line: bytes) -> Command | None:
        try:
            if b"\r" in line or b"\v" in line or b"\f" in line:     # split() takes them for spaces
                raise ArgumentError
            row = self._plain.get(words[0])             # all that should be fast is found here
            if row is not None and (command := row.parse(words)) is not None:
                command.row = row
            elif (command := self._verbs.read(words)) is None:
                return self._refused(BAD_COMMAND)
        except ArgumentError:
            length = self._verbs.body_length(words)
            return self._broken(BAD_ARGUMENTS) if length is None else self._skip_block(length, BAD_ARGUMENTS)
        if self._guard is not None:
            refusal = self._guard(command)
            if refusal is not None and not (command.answer is not None and command.row.body is JOBS):
                command.answer = refusal            # but that a PUTS has too many jobs is said first
        length = command.length
        if length is None:
            return command if command.answer is None else self._refused(command.answer)
        body = command.row.body
        if body is JOBS:
            return self._puts_block(command)
        if command.answer is not None:
            return self._skip_block(length, command.answer)
        return self._clone_block(command, length) if body is SNAPSHOT else self._data_block(command, length)

    def trim(self) -> None:
        """Nothing will be asked for soon: keep nothing that was looked at already."""
        if self._start == len(self._buffer):
            self._buffer, self._start = b"", 0

    def close(self) -> None:
        """Forget what was received; nothing is taken any more."""
        self._closed = True
        self.holding = False
        self._block = self._head = self._puts = None
        self._buffer, self._start = b"", 0
        self._later.clear()
        self._pieces.clear()
        self._few.clear()

    def _refused(self, answer: bytes) -> Command:
        return Command(answer=answer, row=self._verbs.refused)

    def _broken(self, answer: bytes) -> Command:
        self.close()
        return Command(answer=answer, row=self._verbs.broken)

    def _merge(self) -> None:
        self._buffer = self._buffer[self._start:] + self._later
        self._start = 0
        self._later.clear()

    # ---- data blocks

    def _data_block(self, command: Command, length: int) -> Command | None:
        if length > self._limits.data_bytes_max:
            return self._skip_block(length, TOO_LARGE)
        start = self._start
        end = start + length
        if end <= len(self._buffer):
            self._start = end
            command.fill(self._buffer[start:end])
            return command
        if (refusal := self._no_room()) is not None:
            return self._skip_block(length, refusal)
        self._head = command
        self._left = length
        self._block = self._collect
        return self._collect()

    def _collect(self) -> Command | None:
        while self._left and (piece := self._take(self._left)):
            self._left -= len(piece)
            if self._few or len(piece) < PIECE_BYTES:
                self._few += piece
                if len(self._few) < PIECE_BYTES:
                    continue
                piece = bytes(self._few)
                self._few.clear()
            self._pieces.append(piece)
        if self._left or self._head is None:
            return None
        command = self._head
        command.fill(b"".join([*self._pieces, self._few]))
        self._block = self._head = None
        self._pieces.clear()
        self._few.clear()
        return command

    def _puts_block(self, command: Command) -> Command | None:
        self._puts = PutsSoFar(command, self._guard, self._limits.data_bytes_max)
        self._block = self._read_puts
        return self._read_puts()

    def _read_puts(self) -> Command | None:
        """Line by line, each with its block."""
        puts = self._puts
        assert puts is not None
        jobs = 0
        while True:
            if not puts.amid_job:
                try:
                    line = self._line()
                except _LineError:
                    return self._broken(BAD_COMMAND)
                if line is None:
                    self._wait_for_puts(puts)
                    return None
                words = line.split()
                if not words:
                    continue
                length = puts.take_line(words, line)
                if length is None:
                    return self._broken(puts.answer or BAD_ARGUMENTS)
                self._left = length
            while self._left and (piece := self._take(self._left)):
                puts.take_data(piece)
                self._left -= len(piece)
            if self._left:
                self._wait_for_puts(puts)
                return None
            if puts.end_job():
                self._block = self._puts = None
                return puts.command if puts.answer is None else self._refused(puts.answer)
            jobs += 1
            if jobs == COMMANDS_PER_SLICE:
                self.toil += jobs
                return None

    def _wait_for_puts(self, puts: PutsSoFar) -> None:
        if puts.answer is None and (refusal := self._no_room()) is not None:
            puts.refuse(refusal)

    def _skip_block(self, length: int, answer: bytes) -> Command | None:
        """Read a block to its end and drop it, then say `answer`; too long a one is not waited for."""
        if length > SKIPPED_BYTES_MAX:
            return self._broken(answer)
        self._left = length
        self._skip_answer = answer
        self._block = self._skip
        return self._skip()

    def _skip(self) -> Command | None:
        while self._left and (piece := self._take(self._left)):
            self._left -= len(piece)
        if self._left:
            return None
        self._block = None
        return self._refused(self._skip_answer)

    def _clone_block(self, command: Command, length: int) -> Command | None:
        if length > self._limits.snapshot_bytes_max:
            return self._skip_block(length, TOO_LARGE)
        self._left = length
        self._block = self._clone_chunk
        return command

    def _clone_chunk(self) -> Command | None:
        """The next chunk, of full size except the last."""
        size = min(self._left, CLONE_CHUNK_BYTES_MAX)
        if self.backlog_bytes < size:
            return None
        if len(self._buffer) - self._start < size:
            self._merge()
        data = self._take(size)
        self._left -= size
        if not self._left:
            self._block = None
        return Command(arguments=(data, not self._left), row=self._verbs.data)

    def _take(self, size: int) -> bytes:
        """At most `size` of the bytes at hand, none when there are none."""
        start = self._start
        if start == len(self._buffer) and self._later:
            self._merge()
            start = 0
        piece = self._buffer[start:start + size]
        self._start = start + len(piece)
        self.trim()
        return piece

