"""Reads the lines that most clients send most of the time in one step: PUT, GET, GETB and DONE without options.

One expression finds the end of the line, checks it and cuts it into its words. It only matches what the grammar
(grammar/) accepts, with the same limits, and most of what it does not match is accepted by the grammar as well: other
spaces, numbers with more digits, options, several queues. Every line that matches gives the command of the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from core import Done, Get, Put
from gateway.protocol.arguments import NAME, name, queues
from gateway.protocol.command import Command, Row

# A queue that begins like EXPIRE might be the option; numbers of 18 digits are below all limits.
_LINE = re.compile(
    rb"(?:PUT (%(name)b) (-?[0-9]{1,18}) ([0-9]{1,18})|(GETB?) (?!EXPIRE)(%(name)b)|DONE ([0-9]{1,18}))\r?\n"
    % {b"name": NAME}
).match
_LENGTH = 3                     # the last group of a PUT,
_ID = 6                         # and of a DONE


class PlainLines:
    """Reads plain lines into commands of these rows, given by their verbs."""

    def __init__(self, rows: Mapping[bytes, Row], data_bytes_max: int, line_bytes_max: int) -> None:
        self._rows = rows
        self._put, self._done = rows[b"PUT"], rows[b"DONE"]
        self._data_bytes_max = data_bytes_max
        self._line_bytes_max = line_bytes_max

    def read(self, buffer: bytes, start: int) -> tuple[Command, int] | None:
        """The command that begins at `start`, with its data, and where the next one begins.

        None: it is none of these, or not complete, or too large.
        """
        line = _LINE(buffer, start)
        if line is None or line.end() - start > self._line_bytes_max:
            return None
        end = line.end()
        kind = line.lastindex
        if kind == _LENGTH:
            queue, priority, length = line.group(1, 2, 3)
            begin, end = end, end + int(length)
            if end > len(buffer) or end - begin > self._data_bytes_max:
                return None
            return Command(Put(name(queue), int(priority), buffer[begin:end]), row=self._put), end
        if kind == _ID:
            return Command(Done(int(line.group(_ID))), row=self._done), end
        verb, queue = line.group(4, 5)
        return Command(Get(queues(queue)), row=self._rows[verb]), end
