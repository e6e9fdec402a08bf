"""Laws of the parser: it never raises, and how the bytes are cut does not matter."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sockpqd.core import Change, Done, Get, Move, Put, Selector
from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.limits import (
    CLONE_CHUNK_BYTES_MAX,
    COMMANDS_PER_SLICE,
    EMPTY_LINES_PER_COMMAND,
    MIB,
    REFUSED_LINE_COMMANDS,
    Limits,
)
from sockpqd.gateway.protocol import parser
from sockpqd.gateway.protocol.command import Command
from tests.gateway.helpers.parsing import PING, broken, command_of, parser_of, pulled, refused, without_reason
from tests.gateway.helpers.streams import STREAMS

SMALL = Limits(data_bytes_max=40, line_bytes_max=80, snapshot_bytes_max=200)


def put(data: bytes) -> Command:
    return command_of(b"PUT", Put("q", 0, data))


def clone(total_bytes: int) -> Command:
    return command_of(b"CLONE", length=total_bytes)


def read(pieces: list[bytes]) -> list[Command]:
    """Return all requests; the chunks of a CLONE's data are joined, since they may be cut anywhere."""
    parser = parser_of(SMALL)
    requests: list[Command] = []
    for piece in pieces:
        parser.feed(piece)
        requests += map(without_reason, pulled(parser))
    return requests


@given(STREAMS)
def test_any_cut_of_the_stream_gives_the_same_requests(stream: bytes) -> None:
    assert read([stream[at:at + 1] for at in range(len(stream))]) == read([stream])


@given(STREAMS, st.lists(st.integers(0, 400)))
def test_some_cut_of_the_stream_gives_the_same_requests(stream: bytes, cuts: list[int]) -> None:
    edges = sorted({0, *(cut for cut in cuts if cut < len(stream)), len(stream)})
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    assert read(pieces) == read([stream])


@given(st.lists(st.binary(max_size=40), max_size=5), st.lists(st.integers(0, 400)), st.integers(1, 20))
@example([bytes(range(40))], [13, 14, 24, 26, 30], 4)
def test_data_in_many_pieces_small_and_large_are_joined_in_order(
    blocks: list[bytes], cuts: list[int], piece_bytes: int
) -> None:
    stream = b"".join(b"PUT q 0 %d\r\n%s" % (len(block), block) for block in blocks)
    edges = sorted({0, *(cut for cut in cuts if cut < len(stream)), len(stream)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "PIECE_BYTES", piece_bytes)
        requests = read([stream[start:end] for start, end in pairwise(edges)])
    assert requests == [put(block) for block in blocks]


@given(STREAMS, st.integers(1, 30))
def test_pulling_late_gives_the_same_requests(stream: bytes, size: int) -> None:
    parser = parser_of(SMALL)
    for at in range(0, len(stream), size):
        parser.feed(stream[at:at + size])
    assert [without_reason(request) for request in pulled(parser)] == read([stream])


@given(st.lists(st.binary(max_size=200), max_size=20))
@settings(max_examples=300)
def test_arbitrary_bytes_never_raise(pieces: list[bytes]) -> None:
    read(pieces)


@given(st.lists(st.binary(max_size=40)))
def test_data_blocks_come_out_as_they_went_in(blocks: list[bytes]) -> None:
    stream = b"".join(b"PUT q 0 %d\r\n%s" % (len(block), block) for block in blocks)
    assert read([stream]) == [put(block) for block in blocks]


@given(st.lists(st.binary(max_size=40)))
def test_data_of_changes_come_out_as_they_went_in(blocks: list[bytes]) -> None:
    stream = b"".join(
        b"CHANGE KEY q k PRI 1 DATA %d\r\n%sMOVE 5 q DATA %d\r\n%s" % (len(block), block, len(block), block)
        for block in blocks
    )
    key = Selector(queue="q", key="k")
    expected = [
        [command_of(b"CHANGE", Change(key, 1, data=block)), command_of(b"MOVE", Move(5, "q", data=block))]
        for block in blocks
    ]
    assert read([stream]) == [request for pair in expected for request in pair]


@pytest.mark.parametrize("line", [
    b"CHANGE x DATA 4", b"CHANGE 5 FOO DATA 4", b"CHANGE 5 PRI DATA 4", b"CHANGE DATA 4", b"MOVE 5 DATA DATA x DATA 4",
    b"MOVE 5 q DELAY 1 AT 1 DATA 4", b"MOVE 5 q DATA 4 DATA 4", b"move DATA 4", b"REQ x CHANGE 5 DATA 4",
    b"REQ CHANGE 5 DATA 4", b"REQ 1 REQ 2 MOVE 5 q DATA 4", b"REQ 0 change 5 DATA 4", b"CHANGE KEY q DATA 4",
])
def test_data_behind_a_malformed_change_or_move_are_skipped(line: bytes) -> None:
    assert read([line + b"\r\nPINGPING\r\n"]) == [refused(b"400 Bad Arguments\r\n"), PING]


@pytest.mark.parametrize("line", [
    b"CHANGE 5 DATA", b"CHANGE 5 DATA x", b"CHANGE 5 DATA -1", b"CHANGE 5 DATA 4 PRI 1", b"MOVE 5 q DATA",
    b"MOVE 5 q DATA 4 5", b"MOVE 5 q DATA 18446744073709551616", b"REQ 1 CHANGE 5 DATA", b"REQ MOVE 5 q DATA x",
])
def test_nothing_is_read_behind_a_change_or_move_whose_length_is_unreadable(line: bytes) -> None:
    assert read([line + b"\r\nPING\r\n"]) == [broken(b"400 Bad Arguments\r\n")]


def test_a_malformed_change_or_move_without_data_takes_none() -> None:
    for line in (b"CHANGE 5 FOO", b"MOVE 5", b"CHANGE", b"REQ 1 MOVE"):
        assert read([line + b"\r\nPING\r\n"]) == [refused(b"400 Bad Arguments\r\n"), PING]


def test_data_of_a_change_over_the_limit_are_skipped() -> None:
    for line in (b"CHANGE 5 DATA 41", b"MOVE 5 q DATA 41", b"REQ 1 MOVE 5 q DATA 41", b"PUT q 0 41 KEY k"):
        assert read([line + b"\r\n" + bytes(41) + b"PING\r\n"]) == [refused(b"413 Data Too Large\r\n"), PING]


def test_nothing_is_read_behind_what_cannot_be_followed() -> None:
    requests = read([b"PING\nPUT q 0 x\r\nPING\n", b"PING\n"])
    assert requests == [PING, broken(b"400 Bad Arguments\r\n")]


def test_a_data_block_over_the_limit_is_consumed_but_not_kept() -> None:
    parser = parser_of(Limits(data_bytes_max=MIB))
    piece = bytes(64 * 1024)
    tracemalloc.start()
    try:
        parser.feed(b"PUT q 0 %d\r\n" % (100 * MIB))
        for _ in range(1600):
            assert parser.next() is None
            parser.feed(piece)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert parser.next() == refused(b"413 Data Too Large\r\n")
    parser.feed(b"GET q\r\n")
    assert parser.next() == command_of(b"GET", Get(("q",)))
    assert peak_bytes < MIB


def test_a_big_block_in_many_pieces_is_not_copied_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    parser = parser_of()
    take = parser._take

    def counting(size: int) -> bytes:
        nonlocal taken
        piece = take(size)
        taken += len(piece)
        return piece

    monkeypatch.setattr(parser, "_take", counting)
    parser.feed(b"PUT q 0 %d\r\n" % (8 * MIB))
    for _ in range(8 * 1024):
        assert parser.next() is None
        parser.feed(bytes(1024))
    request = parser.next()
    assert request is not None
    assert len(request.operation.data) == 8 * MIB
    assert taken == 8 * MIB


def test_an_idle_parser_keeps_no_bytes() -> None:
    parser = parser_of()
    parser.feed(b"PING\r\n" * 1000)
    while parser.next() is not None:
        pass
    assert parser._buffer == b""
    assert parser.backlog_bytes == 0


def test_what_is_not_pulled_counts_as_backlog() -> None:
    parser = parser_of()
    parser.feed(b"DONE 1\r\n")
    parser.feed(b"DONE 2\r\n")
    assert parser.backlog_bytes == 16
    assert parser.next() == command_of(b"DONE", Done(1))
    assert parser.backlog_bytes == 8


def test_a_clone_is_passed_on_in_chunks() -> None:
    parser = parser_of()
    total = 2 * CLONE_CHUNK_BYTES_MAX + 10
    data = bytes(range(256)) * (total // 256 + 1)
    stream = b"CLONE %d\r\n" % total + data[:total] + b"PING\r\n"
    requests = []
    for at in range(0, len(stream), 1000):
        parser.feed(stream[at:at + 1000])
        while (request := parser.next()) is not None:
            requests.append(request)
    assert requests[0] == clone(total)
    chunks = requests[1:-1]
    assert all(chunk is not None and chunk.row is VERBS.data for chunk in chunks)
    assert [len(chunk.arguments[0]) for chunk in chunks] == [
        CLONE_CHUNK_BYTES_MAX, CLONE_CHUNK_BYTES_MAX, 10,
    ]
    assert b"".join(chunk.arguments[0] for chunk in chunks) == data[:total]
    assert [chunk.arguments[1] for chunk in chunks] == [False, False, True]
    assert requests[-1] == PING


def test_a_clone_over_its_own_limit_is_refused() -> None:
    assert read([b"CLONE 201\r\n" + bytes(201) + b"PING\r\n"]) == [refused(b"413 Data Too Large\r\n"), PING]
    parser = parser_of(Limits(snapshot_bytes_max=2**40))
    parser.feed(b"CLONE %d\r\n" % 2**30)        # above what is skipped, but wanted
    assert parser.next() == clone(2**30)


def test_empty_lines_are_read_in_portions_that_cost() -> None:
    parser = parser_of()
    lines = 10 * COMMANDS_PER_SLICE * EMPTY_LINES_PER_COMMAND
    parser.feed(b"\r\n" * lines + b"PING\r\n")
    costs = []
    while (command := parser.next()) is None:
        costs.append(parser.extra_work)
        parser.extra_work = 0
    assert command == PING
    assert costs == [COMMANDS_PER_SLICE] * 10


@pytest.mark.parametrize("line", [b"GET q exp 5", b"HELP qeue delet", b"QUEUE CREATE q EXPIREE 5", b"POLICY none"])
def test_a_line_that_is_refused_with_a_reason_costs_more(line: bytes) -> None:
    parser = parser_of()
    parser.feed(line + b"\r\nPING\r\n")
    assert without_reason(parser.next() or PING) == refused(b"400 Bad Arguments\r\n")
    assert parser.extra_work == REFUSED_LINE_COMMANDS
    parser.extra_work = 0
    assert parser.next() == PING
    assert parser.extra_work == 0
