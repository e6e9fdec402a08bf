"""Usual lines mean the same whether one expression reads them or the grammar does."""

from __future__ import annotations

import random

import pytest

from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.parser import Parser
from tests.gateway.helpers.parsing import pulled

VERBS_OF_LINES = (
    b"PUT", b"PUT", b"PUT", b"DONE", b"DONE", b"GET", b"GET", b"GETB", b"GETB", b"put", b"getb", b"GETBE", b"PUTS",
    b"DON", b"REQ 5 PUT", b"",
)
NAMES = (
    b"q", b"a.b:c@d-e", b"_", b"-q", b".q", b"@q", b"q|r", b"q|",
    b"x" * 254, b"x" * 255, b"x" * 256, b"q\xff", b"*", b"0", b"EXPIRE", b"EXPIRE=3", b"EXPIRED", b"NUMBER",
)
NUMBERS = (
    b"0", b"1", b"3", b"-1", b"+1", b"-0", b"007", b"-007", b"9" * 18, b"9" * 19, b"9" * 20, b"-" + b"9" * 18,
    b"-" + b"9" * 19, b"1" + b"0" * 18, b"18446744073709551615", b"18446744073709551616", b"0" * 30 + b"3", b"1.5",
    b"1_0", b"--1", b"-", b"x", b"\xd9\xa3",
)
SPACES = (b" ", b" ", b" ", b" ", b" ", b" ", b" ", b" ", b" ", b"  ", b"\t", b"\v", b"\r")
ENDS = (b"\n", b"\r\n", b"\r\n", b"\r\n", b" \r\n", b"\r\r\n")
MORE = (b"NEW", b"IS i", b"WAIT o", b"LAST", b"x")
LEASES = (b"EXPIRE", b"EXPIRE", b"EXPIRE", b"EXPIRE=3", b"IS", b"COUNT")
DATA = (b"", b"x", b"abc", b"PUT q 1 1\r\n", b"\n", b"DONE 3\r\n")


def line(rng: random.Random) -> bytes:
    """Draw a line that is good, or nearly so."""
    if rng.random() < 0.6:
        data = rng.choice(DATA)
        return rng.choice((b"PUT %s %d %d\r\n" % (rng.choice(NAMES[:3]), rng.randrange(-9, 9), len(data)) + data,
                           b"DONE %d\n" % rng.randrange(99),
                           b"GET%s %s\r\n" % (rng.choice((b"", b"B")), rng.choice(NAMES[:3])),
                           b"GET%s q EXPIRE %d\n" % (rng.choice((b"", b"B")), rng.randrange(99))))
    words = [rng.choice(VERBS_OF_LINES)]
    data = rng.choice(DATA)
    if b"PUT" in words[0].upper():
        words += [rng.choice(NAMES), rng.choice(NUMBERS), rng.choice((b"%d" % len(data), b"%d" % len(data), *NUMBERS))]
    elif b"GET" in words[0].upper():
        words.append(rng.choice(NAMES))
        if rng.random() < 0.7:
            words += [rng.choice(LEASES), rng.choice(NUMBERS)]
        data = b""
    else:
        words.append(rng.choice((*NUMBERS, *NAMES)))
        data = b""
    while rng.random() < 0.1:
        words.append(rng.choice(MORE))
    if rng.random() < 0.05:
        words.pop()
    text = words[0]
    for word in words[1:]:
        text += rng.choice(SPACES) + word
    return text + rng.choice(ENDS) + data


def looks(parser: Parser, reads: list[bytes]) -> list[object]:
    """Return everything that can be seen of a parser that is given these reads."""
    seen: list[object] = []
    for read in reads:
        parser.feed(read)
        for command in pulled(parser):
            seen.append((command, command.row is not None and (command.row.word, command.row.counter)))
        seen.append((parser.lines, parser.complete, parser.backlog_bytes, parser.amid_command, parser.missing_bytes))
    return seen


@pytest.mark.parametrize("line_bytes_max", [Limits().line_bytes_max, 40])
def test_an_expression_reads_what_the_grammar_reads(line_bytes_max: int) -> None:
    rng = random.Random(line_bytes_max)
    limits = Limits(line_bytes_max=line_bytes_max, data_bytes_max=8)
    for _ in range(15_000):
        stream = b"".join(line(rng) for _ in range(rng.randrange(1, 4)))
        cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(rng.choice((0, 0, 1, 3))))
        reads = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        quick, slow = Parser(limits, VERBS), Parser(limits, VERBS)
        slow._usual = {}
        seen = looks(quick, reads)
        assert seen == looks(slow, reads), reads


def test_the_usual_lines_are_read_by_expressions() -> None:
    parser = Parser(Limits(), VERBS)
    parser._command = None      # type: ignore[assignment,method-assign]     # what reads all others
    parser.feed(b"PUT q 1 1\r\nxDONE 1\nPUT a.b -5 0\nGETB q EXPIRE 60\r\nGETB q\nGET q EXPIRE 60\n")
    words = [command.row.word for command in pulled(parser)]
    assert words == [b"PUT", b"DONE", b"PUT", b"GETB", b"GETB", b"GET"]
    assert not parser.holding


def test_what_came_later_is_not_forgotten_behind_a_usual_line() -> None:
    parser = Parser(Limits(), VERBS)
    parser.feed(b"PUT q 1 1\r\nx")
    parser.feed(b"DONE 1\r\n")
    assert next(pulled(parser)).row.word == b"PUT"
    assert parser.holding
    assert next(pulled(parser)).row.word == b"DONE"


def test_who_needs_permission_is_asked_in_the_grammars_way() -> None:
    asked: list[Command] = []
    parser = Parser(Limits(), VERBS, lambda command: asked.append(command))
    parser.feed(b"PUT q 1 1\r\nxDONE 1\r\n")
    assert len(list(pulled(parser))) == len(asked) == 2
