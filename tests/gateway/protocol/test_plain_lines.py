"""Plain lines are read in one step: the same commands as by the grammar, for all lines, however they arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.commands.catalog import VERBS
from gateway.limits import Limits
from gateway.protocol.command import Command
from gateway.protocol.parser import Parser
from gateway.protocol.plain_lines import PlainLines
from tests.gateway.helpers.parsing import parser_of

LIMITS = Limits(data_bytes_max=40, line_bytes_max=300)

_numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(str), st.integers(0, 60).map(str),
    st.sampled_from(["", "-", "+", "-0", "+1", "--1", "007", "1e3", "\u0663", "9" * 18, "9" * 19, "-" + "9" * 18]),
)
_names = st.one_of(
    st.text("aZ0_.:@*|=-", min_size=1, max_size=6),
    st.sampled_from(["q", "EXPIRE", "EXPIRE=5", "EXPIRES", "a" * 255, "a" * 256, "@t", "a|b", "*", "-a", "\xe4", ""]),
)
_spaces = st.sampled_from([" "] * 12 + ["  ", "\t", "\r", "\v", "\0", ""])
_ends = st.sampled_from(["\n"] * 6 + ["\r\n"] * 6 + ["\r\r\n", " \n", " \r\n", "\r", ""])
_verbs = st.sampled_from(["PUT", "GET", "GETB", "DONE"] * 4 + ["put", "Get", "DONES", "GETBE", "PUTS", "LATER", ""])
_words = {"PUT": [_names, _numbers, _numbers], "GET": [_names], "GETB": [_names], "DONE": [_numbers]}


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line that is plain, or nearly."""
    verb = draw(_verbs)
    words = _words.get(verb.upper(), [_names])
    more = draw(st.lists(_names, max_size=1)) if draw(st.integers(0, 9)) == 0 else []
    line = verb + "".join(draw(_spaces) + draw(word) for word in words) + "".join(" " + word for word in more)
    return (line + draw(_ends)).encode()


def read(parser: Parser, stream: bytes) -> list[Command]:
    parser.feed(stream)
    commands = []
    while (command := parser.next()) is not None:
        commands.append(command)
    return commands


def by_grammar() -> Parser:
    """A parser with a guard that has no objection does not read plain lines in one step."""
    return parser_of(LIMITS, lambda command: None)


def plainly(stream: bytes) -> tuple[Command, int] | None:
    return PlainLines(VERBS.plain, LIMITS.data_bytes_max, LIMITS.line_bytes_max).read(stream, 0)


@given(st.lists(st.tuples(lines(), st.binary(max_size=60)), max_size=6))
def test_the_same_commands_as_by_the_grammar(pieces: list[tuple[bytes, bytes]]) -> None:
    stream = b"".join(line + data for line, data in pieces)
    plain, slow = parser_of(LIMITS), by_grammar()
    assert read(plain, stream) == read(slow, stream)
    assert (plain.lines, plain.backlog_bytes) == (slow.lines, slow.backlog_bytes)


@given(lines())
def test_what_is_read_in_one_step_is_what_the_grammar_reads(line: bytes) -> None:
    stream = line + b"x" * LIMITS.data_bytes_max
    found = plainly(stream)
    if found is not None:
        slow = by_grammar()
        slow.feed(stream)
        assert found[0] == slow.next()
        assert found[1] == len(stream) - slow.backlog_bytes


@pytest.mark.parametrize("line", [
    b"PUT q 0 3\r\nabc", b"PUT q -5 0\n", b"PUT a.b:c@d-e 999999999999999999 40\n" + b"x" * 40, b"GET q\n",
    b"GETB q\r\n", b"DONE 17\r\n", b"PUT " + b"a" * 255 + b" 1 1\nx",
])
def test_what_clients_send_most_is_plain(line: bytes) -> None:
    assert plainly(line) == (read(by_grammar(), line)[0], len(line))


@pytest.mark.parametrize("line", [
    b"PUT q 0 3\r\nab", b"PUT q 0 41\n" + b"x" * 41, b"GET EXPIRE\n", b"GET q", b"GET a|b\n", b"DONE 1 LAST\n",
    b"get q\n", b"DONE 9999999999999999999\n", b"GET @q\n",
    b"PUT " + b"a" * 255 + b" 000000000000000000 000000000000000001\r\nx",
])
def test_everything_else_is_left_to_the_grammar(line: bytes) -> None:
    short = PlainLines(VERBS.plain, LIMITS.data_bytes_max, 290)
    assert short.read(line, 0) is None
