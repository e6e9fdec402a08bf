"""The parser: bytes in, commands out, without IO. Handles lines and data blocks, valid or not.

Bytes are fed as they arrive; commands are pulled, so that input behind a blocked command stays here as raw bytes. A
data block is sliced from the received bytes once; one that arrives in many pieces is joined once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable

from sockpqd.gateway.limits import (
    CLONE_CHUNK_BYTES_MAX,
    COMMANDS_PER_SLICE,
    EMPTY_LINES_PER_COMMAND,
    LINE_BYTES_PER_COMMAND,
    LONG_LINE_BYTES,
    REFUSED_LINE_COMMANDS,
    SKIPPED_BYTES_MAX,
    Limits,
)
from sockpqd.gateway.protocol.arguments import ArgumentError
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar.parts.bodies import JOBS, SNAPSHOT
from sockpqd.gateway.protocol.puts_reader import NOT_IN_LINES, PutsSoFar
from sockpqd.gateway.protocol.responses import BAD_COMMAND, TOO_LARGE, bad_arguments
from sockpqd.gateway.protocol.verbs import USUAL_BYTES, Verbs
from sockpqd.gateway.protocol.web_lines import is_host_line, is_request_line

CR = 13
PIECE_BYTES = 16 << 10      # of a data block; smaller ones are gathered first


class _LineError(Exception):
    """The line is too long."""


class Parser:
    """Parses one client's stream of commands. It never raises, whatever the input.

    `guard` checks each command before its data are read, and once more when data that came later are complete; it
    returns a refusal or None. `no_room` does the same for data that have yet to arrive; refused data are dropped.
    """

    def __init__(
        self, limits: Limits, verbs: Verbs, guard: Callable[[Command], bytes | None] | None = None,
        no_room: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        self._limits = limits
        self._short_bytes = min(LONG_LINE_BYTES, limits.line_bytes_max)     # of lines that need no check
        self._verbs = verbs
        self._plain = verbs.plain
        self._usual = verbs.usual if guard is None else {}
        self._guard = guard
        self._no_room = no_room
        self._buffer = b""                  # being parsed, from _start on
        self._start = 0
        self._later = bytearray()           # received while _buffer was not used up
        self._block: Callable[[], Command | None] | None = None     # continues reading a data block, while inside one
        self._left = 0                      # bytes of that block still to come
        self._head: Command | None = None   # the command whose block is being collected
        self._puts: PutsSoFar | None = None     # the PUTS whose lines and blocks are being collected
        self._pieces: list[bytes] = []      # the block so far, joined when complete,
        self._few = bytearray()             # followed by pieces too small to be worth a list entry
        self._skip_answer = b""             # the answer once the block has been skipped
        self.holding = False                # input may be held here; if not, next() has no more
        self.lines = 0                      # complete lines so far,
        self._empty_lines = 0               # empty ones among them
        self.extra_work = 0                       # extra work in units of plain commands; the caller resets it to 0
        self._closed = False

    @property
    def backlog_bytes(self) -> int:
        """Bytes received but not parsed yet."""
        return len(self._buffer) - self._start + len(self._later)

    @property
    def held_bytes(self) -> int:
        """Bytes held here, of complete commands and of an incomplete one."""
        held = len(self._buffer) + len(self._later)
        if self._puts is not None:
            held += max(0, self._puts.held_bytes - (self._left if self._puts.amid_job else 0))
        elif self._head is not None:
            held += (self._head.length or 0) - self._left
        return held

    @property
    def complete(self) -> int:
        """The number of complete commands so far (including empty lines)."""
        return self.lines - (self._block is not None)

    @property
    def missing_bytes(self) -> int:
        """Bytes missing from the data block being received, 0 if there is none."""
        return self._left - self.backlog_bytes if self._block is not None else 0

    @property
    def amid_command(self) -> bool:
        """True if the next command has arrived in part (after next() has returned None)."""
        return self._block is not None or self._start != len(self._buffer) or len(self._later) > 0

    def feed(self, data: bytes) -> None:
        if self._closed:
            return
        self.holding = True
        if self._start == len(self._buffer) and not self._later:
            self._buffer = data
            self._start = 0
        else:
            self._later += data

    def next(self) -> Command | None:
        """Return the next command. None: more bytes are needed, the stream has been broken off, or the command is so
        large that other clients should get a turn first (then `toil` is set).
        """
        if self._block is not None:
            return self._block()
        start, buffer = self._start, self._buffer
        usual = self._usual.get(buffer[start:start + USUAL_BYTES])
        if usual is None:
            return self._next_line()
        match, make, has_data, row = usual
        found = match(buffer, start)
        if found is None or (end := found.end()) > start + self._short_bytes:
            return self._next_line()
        data = b""
        if has_data:
            length = int(found[found.lastindex or 0])
            begin, end = end, end + length
            if length > self._limits.data_bytes_max or end > len(buffer):
                return self._next_line()
            data = buffer[begin:end]
        if end == len(buffer) and not self._later:
            self._buffer, self._start = b"", 0              # an idle client holds no memory
            self.holding = False
        else:
            self._start = end
        self.lines += 1
        command = make(found, data)
        command.row = row
        return command

    def _next_line(self) -> Command | None:
        """Return the next command if it is not the usual one of its row, or its data have not arrived."""
        empty_lines = 0
        while True:
            start, buffer = self._start, self._buffer
            end = buffer.find(b"\n", start)
            if 0 <= end < start + self._short_bytes:        # most lines: the same as below, without a call
                self._start = end + 1
                if end > start and buffer[end - 1] == CR:
                    end -= 1
                line = buffer[start:end]
            elif end < 0 and start == len(buffer) and not self._later:
                self._buffer, self._start = b"", 0          # an idle client holds no memory
                self.holding = False
                return None
            else:
                try:
                    complete = self._line()                 # long, in two pieces, or incomplete
                except _LineError:
                    return self._broken(BAD_COMMAND)
                if complete is None:
                    return None
                line = complete
                self.extra_work += len(line) // LINE_BYTES_PER_COMMAND
            self.lines += 1
            words = line.split()
            if not words:                                   # empty lines are ignored, but not for ever
                self._empty_lines += 1
                empty_lines += 1
                if empty_lines % EMPTY_LINES_PER_COMMAND == 0:
                    self.extra_work += 1
                    if self.extra_work >= COMMANDS_PER_SLICE:
                        return None
            elif self.lines - self._empty_lines == 1 and is_request_line(words):
                return self._broken(BAD_COMMAND)
            else:
                return self._command(words, line)

    def _line(self) -> bytes | None:
        """Return the next line without its line end, None if it is incomplete."""
        start = self._start
        end = self._buffer.find(b"\n", start)
        if end < 0 and self._later:
            self._merge()
            start, end = 0, self._buffer.find(b"\n")
        if (end if end >= 0 else len(self._buffer)) - start >= self._limits.line_bytes_max:
            raise _LineError
        if end < 0:
            if start == len(self._buffer):
                self._buffer, self._start = b"", 0          # an idle client holds no memory
                self.holding = self._block is not None
            return None
        self._start = end + 1
        if end > start and self._buffer[end - 1] == CR:
            end -= 1
        return self._buffer[start:end]

    def _command(self, words: Words, line: bytes) -> Command | None:
        try:
            if b"\r" in line or b"\v" in line or b"\f" in line:     # split() treats them as spaces
                raise ArgumentError(NOT_IN_LINES)
            row = self._plain.get(words[0])             # the fast path
            if row is not None and (command := row.parse(words)) is not None:
                command.row = row
            elif (command := self._verbs.read(words)) is None:
                return self._broken(BAD_COMMAND) if is_host_line(line) else self._refused(BAD_COMMAND)
        except ArgumentError as error:
            if is_host_line(line):
                return self._broken(BAD_COMMAND)
            self.extra_work += REFUSED_LINE_COMMANDS
            length, answer = self._verbs.body_length(words), bad_arguments(error.reason)
            return self._broken(answer) if length is None else self._skip_block(length, answer)
        if self._guard is not None:
            refusal = self._guard(command)
            if refusal is not None and not (command.answer is not None and command.row.body is JOBS):
                command.answer = refusal            # except that a PUTS with too many jobs keeps that answer
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
        """Free input already parsed, as no command will be pulled soon."""
        if self._start == len(self._buffer):
            self._buffer, self._start = b"", 0

    def close(self) -> None:
        """Discard all input, received and future."""
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
            return command if command.answer is None else self._refused(command.answer)
        if not command.spare and (refusal := self._no_room()) is not None:
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
        refusal = None if self._guard is None else self._guard(command)     # its user may have been deleted meanwhile
        refusal = refusal or command.answer
        return command if refusal is None else self._refused(refusal)

    def _puts_block(self, command: Command) -> Command | None:
        self._puts = PutsSoFar(command, self._guard, self._limits.data_bytes_max)
        self._block = self._read_puts
        return self._read_puts()

    def _read_puts(self) -> Command | None:
        """Read the jobs of a PUTS, each a line with its block."""
        puts = self._puts
        assert puts is not None
        work = empty_lines = 0
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
                    empty_lines += 1
                    if empty_lines % (COMMANDS_PER_SLICE * EMPTY_LINES_PER_COMMAND) == 0:
                        self.extra_work += work + COMMANDS_PER_SLICE
                        return None
                    continue
                if is_host_line(line):
                    return self._broken(BAD_COMMAND)
                length = puts.take_line(words, line)
                if puts.refused_job:
                    work += REFUSED_LINE_COMMANDS
                if length is None:
                    return self._broken(puts.answer or TOO_LARGE)
                self._left = length
                work += 1 + len(line) // LINE_BYTES_PER_COMMAND
            while self._left and (piece := self._take(self._left)):
                puts.take_data(piece)
                self._left -= len(piece)
            if self._left:
                self._wait_for_puts(puts)
                return None
            if puts.end_job():
                self._block = self._puts = None
                self.extra_work += work
                answer = puts.answer or puts.refusal_meanwhile()
                return puts.command if answer is None else self._refused(answer)
            if work >= COMMANDS_PER_SLICE:
                self.extra_work += work
                return None

    def _wait_for_puts(self, puts: PutsSoFar) -> None:
        puts.late = True
        if puts.answer is None and (refusal := self._no_room()) is not None:
            puts.refuse(refusal)

    def _skip_block(self, length: int, answer: bytes) -> Command | None:
        """Read and drop a block, then answer with `answer`; a block that is too long ends the stream instead."""
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
        """Return the next chunk; all but the last are full-sized."""
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
        """Take up to `size` of the bytes at hand."""
        start = self._start
        if start == len(self._buffer) and self._later:
            self._merge()
            start = 0
        piece = self._buffer[start:start + size]
        self._start = start + len(piece)
        self.trim()
        return piece

