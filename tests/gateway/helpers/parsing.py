"""Helpers for tests of the grammar and the parser: commands as the parser makes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.protocol.arguments import ArgumentError
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.parser import Parser


def parser_of(limits: Limits | None = None, guard: Callable[[Command], bytes | None] | None = None) -> Parser:
    """Return a parser of all verbs."""
    return Parser(limits or Limits(), VERBS, guard)


def pulled(parser: Parser) -> Iterator[Command]:
    """Return all commands there are now, however often others should have their turn in between."""
    while (command := parser.next()) is not None or parser.extra_work:
        parser.extra_work = 0
        if command is not None:
            yield command


def read_line(line: str | bytes) -> Command:
    """Return the command in a line."""
    command = VERBS.read((line.encode() if isinstance(line, str) else line).split())
    assert command is not None
    return command


def is_refused(line: str | bytes) -> bool:
    """Return whether the line has a known verb and bad arguments."""
    try:
        read_line(line)
    except ArgumentError:
        return True
    return False


def without_reasons(answers: bytes) -> bytes:
    """Return answers without the reasons behind `400 Bad Arguments`."""
    return re.sub(rb"400 Bad Arguments: [ -~]+\r\n", b"400 Bad Arguments\r\n", answers)


def without_reason(command: Command) -> Command:
    """Return a command whose answer, if it has one, gives no reason; jobs of a PUTS likewise."""
    answer = command.answer and without_reasons(command.answer)
    arguments = tuple(without_reasons(one) if isinstance(one, bytes) else one for one in command.arguments)
    return replace(command, answer=answer, arguments=arguments)


def without_row(command: Command) -> Command:
    """Return what the grammar alone made of the line."""
    return replace(command, row=None)


def command_of(word: bytes, operation: Any = None, *, form: int = 0, **fields: Any) -> Command:
    """Return a command of this verb; `form`: which of its rows."""
    row = [row for row in VERBS.rows if row.word == word][form]
    return Command(operation, row=row, **fields)


def refused(answer: bytes) -> Command:
    """Return what is not executed."""
    return Command(answer=answer, row=VERBS.refused)


def broken(answer: bytes) -> Command:
    """Return the end of a stream that cannot be followed."""
    return Command(answer=answer, row=VERBS.broken)


PING = command_of(b"PING")
