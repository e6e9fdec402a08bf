"""PUTS while it arrives: the outcome of each job, and its cost until then."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from itertools import pairwise

import pytest

from sockpqd.core import Due, Put, PutWith
from sockpqd.gateway.limits import (
    BATCH_BYTES_MAX,
    BATCH_DATA_BYTES_MAX,
    BATCH_JOBS_MAX,
    COMMANDS_PER_SLICE,
    EMPTY_LINES_PER_COMMAND,
    KIB,
    MIB,
    REFUSED_LINE_COMMANDS,
    SKIPPED_BYTES_MAX,
    Limits,
)
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from tests.gateway.helpers.parsing import PING, broken, command_of, parser_of, pulled, refused, without_reason

BAD_ARGUMENTS = b"400 Bad Arguments\r\n"
BAD = refused(BAD_ARGUMENTS)
TOO_LARGE = refused(responses.TOO_LARGE)


def puts(*jobs: Put | PutWith | bytes) -> Command:
    return command_of(b"PUTS", arguments=jobs)


def read(
    stream: bytes, limits: Limits | None = None, guard: Callable[[Command], bytes | None] | None = None,
) -> list[Command]:
    parser = parser_of(limits, guard)
    parser.feed(stream)
    return [without_reason(request) for request in pulled(parser)]


def test_the_jobs_come_as_one_request() -> None:
    assert read(b"PUTS 2\r\nmail 0 3 KEY a1\r\nabcmail 5 4 DELAY 10\r\ndefgPING\r\n") == [
        puts(PutWith(Put("mail", 0, b"abc"), key="a1"), PutWith(Put("mail", 5, b"defg"), Due(10_000))), PING,
    ]
    assert read(b"puts 1\nq 0 0\n") == [puts(Put("q", 0, b""))]
    assert read(b"PUTS 2\r\n\r\nq 0 1\r\na\r\n\r\nr 0 1 NEW\r\nb\r\n") == [
        puts(Put("q", 0, b"a"), Put("r", 0, b"b", None, True)),
    ]


def test_a_job_that_is_none_is_answered_in_its_place() -> None:
    stream = (b"PUTS 6\r\nq 0 1\r\naq 0 1 FOO\r\nbq 0 4 NEW WAIT o\r\nPINGq 0 4 IS i WAIT o TTL 5\r\nPING"
              b"q 0 12\r\nPING\r\nPING\r\nq\v 0 4\r\nPINGPING\r\n")
    bad = BAD_ARGUMENTS
    assert read(stream, Limits(data_bytes_max=10)) == [
        puts(Put("q", 0, b"a"), bad, bad, bad, responses.TOO_LARGE, bad), PING,
    ]


@pytest.mark.parametrize("stream", [
    b"PUTS x\r\n", b"PUTS\r\n", b"PUTS 0\r\n", b"PUTS 10001\r\n", b"PUTS 2 q\r\n", b"REQ 1 PUTS x\r\n",
    b"REQ PUTS 1\r\n",
    b"REQ x PUTS 1\r\n", b"PUTS 1\r\nq 0 x\r\n", b"PUTS 1\r\nq 0\r\n", b"PUTS 2\r\nq 0 1\r\naq 0 -1\r\n",
    b"PUTS 1\r\nq 0 99999999999999999999\r\n", b"REQ 1 PUTS 5000\r\nq 0 x\r\n",
])
def test_nothing_is_read_behind_what_cannot_be_followed(stream: bytes) -> None:
    assert read(stream + b"PING\r\n") == [broken(b"400 Bad Arguments\r\n")]


def test_a_line_that_is_too_long_ends_it() -> None:
    assert read(b"PUTS 1\r\n" + b"q" * 80, Limits(line_bytes_max=80)) == [broken(b"400 Bad Command\r\n")]


def test_a_numbered_one_has_a_digest_of_all_that_came() -> None:
    def digest(stream: bytes) -> bytes:
        (numbered,) = read(stream)
        assert numbered.row is puts().row
        assert numbered.number == 7
        assert isinstance(numbered.digest, bytes)
        return numbered.digest
    plain = b"PUTS 2\r\nq 0 1\r\naq 0 1\r\nb"
    found = [digest(b"REQ 7 " + stream) for stream in (
        plain, plain.replace(b"a", b"c"), plain.replace(b"b", b"c"), plain.replace(b"q 0 1\r\nb", b"q 1 1\r\nb"),
        plain.replace(b"q 0 1\r\nb", b"q x 1\r\nb"), plain.replace(b"S 2", b"S 1").removesuffix(b"q 0 1\r\nb"),
    )]
    assert len(set(found)) == len(found)
    assert digest(b"req 7 puts  2\nq 0  1\naq 0 1\r\nb") == found[0]


def test_too_many_for_a_stored_answer_are_read_to_their_end() -> None:
    assert read(b"REQ 1 PUTS 4097\r\n" + b"q 0 4\r\nPING" * 4097 + b"PING\r\n") == [BAD, PING]


# ---- rights

def asked(answers: dict[str | None, bytes]) -> Callable[[Command], bytes | None]:
    """Return a guard that refuses jobs for some queues, or the PUTS (None)."""
    def guard(command: Command) -> bytes | None:
        if command.row is not puts().row:
            return None
        put = command.operation
        return answers.get(None if put is None else put.put.queue if isinstance(put, PutWith) else put.queue)
    return guard


def test_a_refused_job_refuses_them_all() -> None:
    stream = b"PUTS 3\r\nq 0 1\r\naqueue 0 4 KEY k\r\nPINGq 0 1\r\nbPING\r\n"
    forbidden = asked({"queue": b"403 Forbidden\r\n"})
    assert read(stream, guard=forbidden) == [refused(b"403 Forbidden\r\n"), PING]
    assert read(stream, Limits(data_bytes_max=3), forbidden) == [refused(b"403 Forbidden\r\n"), PING]
    nobody = asked({None: b"401 Auth Required\r\n"})
    assert read(stream, guard=nobody) == [refused(b"401 Auth Required\r\n"), PING]
    # 400 goes before both.
    assert read(b"REQ 1 PUTS 4097\r\n" + b"queue 0 0\r\n" * 4097, guard=nobody) == [BAD]
    assert read(b"PUTS 2\r\nqueue 0 0\r\nq 0 x\r\n", guard=forbidden) == [broken(b"400 Bad Arguments\r\n")]


# ---- sizes

def test_all_together_have_a_limit_and_are_refused_together() -> None:
    job = b"q 0 %d\r\n" % MIB + bytes(MIB)
    (request,) = read(b"PUTS 17\r\n" + job * 16 + b"q 0 0\r\n")
    assert len(request.arguments) == 17
    assert read(b"PUTS 17\r\n" + job * 16 + b"q 0 1\r\naPING\r\n") == [TOO_LARGE, PING]
    # So have their lines.
    line = b"q 0 0 KEY k AFTER %s\r\n" % b"|".join([b"i" * 255] * 90)
    count = (BATCH_BYTES_MAX - BATCH_DATA_BYTES_MAX) // len(line)
    (request,) = read(b"PUTS %d\r\n" % (16 + count) + job * 16 + line * count)
    assert len(request.arguments) == 16 + count
    assert read(b"PUTS %d\r\n" % (17 + count) + job * 16 + line * (count + 1) + b"PING\r\n") == [TOO_LARGE, PING]
    # A right that is missing goes before a size, also when it is found later.
    forbidden = asked({"queue": b"403 Forbidden\r\n"})
    assert read(b"PUTS 18\r\n" + job * 17 + b"queue 0 0\r\n", guard=forbidden) == [refused(b"403 Forbidden\r\n")]


def test_what_is_dropped_has_a_limit() -> None:
    parser = parser_of(Limits(data_bytes_max=10))
    block = bytes(64 * MIB)
    parser.feed(b"PUTS 9\r\n")
    for _ in range(SKIPPED_BYTES_MAX // len(block)):
        assert parser.next() is None
        parser.feed(b"q 0 %d\r\n" % len(block) + block)
    assert parser.next() is None
    parser.feed(b"q 0 11\r\n")
    assert parser.next() == broken(responses.TOO_LARGE)


def peak_bytes(head: bytes, piece: bytes, times: int) -> int:
    """Return the most memory that the parser holds while this arrives."""
    parser = parser_of()
    tracemalloc.start()
    try:
        parser.feed(head)
        for _ in range(times):
            parser.next()
            parser.feed(piece)
        parser.next()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_bounded_while_it_arrives() -> None:
    # Many long lines without data; too much data; what is refused.
    after = b"|".join(b"i%d" % number for number in range(90))
    assert peak_bytes(b"PUTS 10000\r\n", b"q 0 0 AFTER %s\r\n" % after, 1500) < 16 * MIB
    assert peak_bytes(b"PUTS 10000\r\n", b"q 0 0 %s\r\n" % (b"x" * 60 * KIB), 1000) < 2 * MIB
    assert peak_bytes(b"PUTS 400\r\n", b"q 0 65536\r\n" + bytes(65536), 399) < BATCH_BYTES_MAX + 2 * MIB
    assert peak_bytes(b"REQ 1 PUTS 5000\r\nq 0 %d\r\n" % (64 * MIB), bytes(65536), 1000) < MIB
    # A block that arrives gradually is collected in one piece.
    assert peak_bytes(b"PUTS 2\r\nq 0 %d\r\n" % (128 * KIB), b"xy", 64 * KIB) < 4 * 128 * KIB


def test_nothing_is_kept_of_one_that_is_refused() -> None:
    parser = parser_of()
    tracemalloc.start()
    try:
        parser.feed(b"PUTS 18\r\n")
        for _ in range(17):
            parser.next()
            parser.feed(b"q 0 %d\r\n" % MIB + bytes(MIB))
        parser.next()
        assert tracemalloc.get_traced_memory()[0] < 2 * MIB
    finally:
        tracemalloc.stop()


def test_a_slow_one_does_not_seem_to_get_on() -> None:
    parser = parser_of()
    parser.feed(b"PING\r\nPUTS %d\r\n" % BATCH_JOBS_MAX)
    assert parser.next() == PING
    for _ in range(5):
        for piece in (b"q 0", b" 3\r\n", b"ab", b"c", b"\r\n"):
            assert parser.next() is None
            assert (parser.complete, parser.amid_command) == (1, True)
            parser.feed(piece)


def test_how_it_is_cut_does_not_matter() -> None:
    stream = b"PUTS 3\r\nq 0 3 KEY k\r\nabc\r\nq x 4\r\nPINGq 0 0\r\nPING\r\n"
    whole = read(stream)
    for first in range(1, len(stream)):
        for second in range(first + 1, len(stream), 5):
            parser, requests = parser_of(), []
            for start, end in pairwise((0, first, second, len(stream))):
                parser.feed(stream[start:end])
                while (request := parser.next()) is not None:
                    requests.append(without_reason(request))
            assert requests == whole


def test_nothing_is_kept_of_one_that_is_broken_off() -> None:
    parser = parser_of()
    parser.feed(b"PUTS 3\r\nq 0 3\r\nabcq 0 5\r\na")
    assert parser.next() is None
    parser.close()
    assert parser.next() is None
    assert not parser.amid_command


@pytest.mark.parametrize("lines", [
    b"q 0 0 exp 5\r\n", b"\r\n" * COMMANDS_PER_SLICE * EMPTY_LINES_PER_COMMAND + b"q 0 0\r\n",
])
def test_malformed_jobs_and_empty_lines_are_read_in_portions(lines: bytes) -> None:
    parser = parser_of()
    jobs = 40
    parser.feed(b"PUTS %d\r\n" % jobs + lines * jobs)
    costs = []
    while parser.next() is None:
        costs.append(parser.extra_work)
        parser.extra_work = 0
    assert len(costs) >= jobs * REFUSED_LINE_COMMANDS // COMMANDS_PER_SLICE - 1
    assert all(COMMANDS_PER_SLICE <= cost < 2 * COMMANDS_PER_SLICE + REFUSED_LINE_COMMANDS for cost in costs)
