"""Laws of the parser: it never raises, and how the bytes are cut does not matter."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import Done, Get, Put
from gateway.limits import CLONE_CHUNK_BYTES_MAX, MIB, Limits
from gateway.parser import Parser
from gateway.requests import Broken, CloneData, CloneStart, Command, Ping, Refused

SMALL = Limits(data_bytes_max=40, line_bytes_max=80, snapshot_bytes_max=200)

NAMES = st.sampled_from([b"q", b"EXPIRE", b"IS", b"NEW", b"7", b"a.b", b"a|b", b"a||b", b"*", b""])
NUMBERS = st.sampled_from([b"0", b"1", b"5", b"39", b"41", b"-1", b"x", b"300", b"99999999999999999999", b"300000000"])
KEYWORDS = st.sampled_from([b"EXPIRE", b"EXPIRE=5", b"THEN", b"DONE", b"LATER", b"IS", b"NEW", b"WAIT", b"LAST"])
VERBS = st.sampled_from([
    b"PUT", b"PUT", b"PUT", b"put", b"GET", b"GETB", b"GETBE", b"DONE", b"LATER", b"TOTAL", b"RUNLIST", b"SNAPSHOT",
    b"QUEUE LIST", b"QUEUE LIST a*", b"QUEUE",
    b"CLONE", b"SYNC PUT", b"SYNC", b"OFFLINE", b"QUIT", b"PING", b"CLUSTER STATUS", b"CLUSTER ADD a.b 7 5",
    b"CLUSTER ADD", b"CLUSTER REMOVE", b"CLUSTER TRANSFER", b"CLUSTER", b"NONSENSE", b"", b"SESSION", b"SESSION",
    b"SESSION 1_9f3c5a7e11d0c2b4", b"SESSION CLOSE", b"TAKEN", b"GET * BOUND", b"GETB q BOUND", b"REQ 1 GET q",
    b"REQ 1 GETB", b"REQ 2 PUT", b"REQ 3 DONE", b"REQ 4 CLONE", b"REQ 5", b"REQ x",
])
SPACES = st.sampled_from([b" ", b" ", b" ", b"  ", b"\t", b"\r", b"\x0b"])
ENDS = st.sampled_from([b"\r\n", b"\r\n", b"\n"])


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    words = [draw(VERBS), *draw(st.lists(st.one_of(NAMES, NUMBERS, KEYWORDS), max_size=8))]
    return draw(SPACES).join(words) + draw(ENDS)


@st.composite
def puts(draw: st.DrawFn) -> bytes:
    data = draw(st.binary(max_size=60))
    before = draw(st.sampled_from([b"", b"", b"REQ 1 ", b"REQ 2 ", b"REQ 0 ", b"SESSION\r\nREQ 1 "]))
    tail = draw(st.sampled_from([b"", b" NEW", b" IS x WAIT o", b" BAD"]))
    return b"%sPUT q 0 %d%s\r\n%s" % (before, len(data), tail, data)


STREAMS = st.lists(st.one_of(lines(), puts(), puts(), st.binary(max_size=20)), max_size=12).map(b"".join)


def read(pieces: list[bytes]) -> list[Command]:
    """All requests, those of a CLONE's data joined: their cut is free."""
    parser = Parser(SMALL)
    requests: list[Command] = []
    for piece in pieces:
        parser.feed(piece)
        while (request := parser.next()) is not None:
            requests.append(request)
    return requests


@given(STREAMS)
def test_any_cut_of_the_stream_gives_the_same_requests(stream: bytes) -> None:
    assert read([stream[at:at + 1] for at in range(len(stream))]) == read([stream])


@given(STREAMS, st.lists(st.integers(0, 400)))
def test_some_cut_of_the_stream_gives_the_same_requests(stream: bytes, cuts: list[int]) -> None:
    edges = sorted({0, *(cut for cut in cuts if cut < len(stream)), len(stream)})
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    assert read(pieces) == read([stream])


@given(STREAMS, st.integers(1, 30))
def test_pulling_late_gives_the_same_requests(stream: bytes, size: int) -> None:
    parser = Parser(SMALL)
    for at in range(0, len(stream), size):
        parser.feed(stream[at:at + size])
    requests = []
    while (request := parser.next()) is not None:
        requests.append(request)
    assert requests == read([stream])


@given(st.lists(st.binary(max_size=200), max_size=20))
@settings(max_examples=300)
def test_arbitrary_bytes_never_raise(pieces: list[bytes]) -> None:
    read(pieces)


@given(st.lists(st.binary(max_size=40)))
def test_data_blocks_come_out_as_they_went_in(blocks: list[bytes]) -> None:
    stream = b"".join(b"PUT q 0 %d\r\n%s" % (len(block), block) for block in blocks)
    assert read([stream]) == [Put("q", 0, block) for block in blocks]


def test_nothing_is_read_behind_what_cannot_be_followed() -> None:
    requests = read([b"PING\nPUT q 0 x\r\nPING\n", b"PING\n"])
    assert requests == [Ping(), Broken(b"400 Bad Arguments\r\n")]


def test_a_data_block_over_the_limit_is_consumed_but_not_kept() -> None:
    parser = Parser(Limits(data_bytes_max=MIB))
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
    assert parser.next() == Refused(b"413 Data Too Large\r\n")
    parser.feed(b"GET q\r\n")
    assert parser.next() == Get(("q",))
    assert peak_bytes < MIB


def test_a_big_block_in_many_pieces_is_not_copied_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    parser = Parser(Limits())
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
    assert isinstance(request, Put)
    assert len(request.data) == 8 * MIB
    assert taken == 8 * MIB


def test_an_idle_parser_keeps_no_bytes() -> None:
    parser = Parser(Limits())
    parser.feed(b"PING\r\n" * 1000)
    while parser.next() is not None:
        pass
    assert parser._buffer == b""
    assert parser.backlog_bytes == 0


def test_what_is_not_pulled_counts_as_backlog() -> None:
    parser = Parser(Limits())
    parser.feed(b"DONE 1\r\n")
    parser.feed(b"DONE 2\r\n")
    assert parser.backlog_bytes == 16
    assert parser.next() == Done(1)
    assert parser.backlog_bytes == 8


def test_a_clone_is_passed_on_in_chunks() -> None:
    parser = Parser(Limits())
    total = 2 * CLONE_CHUNK_BYTES_MAX + 10
    data = bytes(range(256)) * (total // 256 + 1)
    stream = b"CLONE %d\r\n" % total + data[:total] + b"PING\r\n"
    requests = []
    for at in range(0, len(stream), 1000):
        parser.feed(stream[at:at + 1000])
        while (request := parser.next()) is not None:
            requests.append(request)
    assert requests[0] == CloneStart(total)
    chunks = requests[1:-1]
    assert [len(chunk.data) for chunk in chunks if isinstance(chunk, CloneData)] == [
        CLONE_CHUNK_BYTES_MAX, CLONE_CHUNK_BYTES_MAX, 10,
    ]
    assert b"".join(chunk.data for chunk in chunks if isinstance(chunk, CloneData)) == data[:total]
    assert [chunk.last for chunk in chunks if isinstance(chunk, CloneData)] == [False, False, True]
    assert requests[-1] == Ping()


def test_a_clone_over_its_own_limit_is_refused() -> None:
    assert read([b"CLONE 201\r\n" + bytes(201) + b"PING\r\n"]) == [Refused(b"413 Data Too Large\r\n"), Ping()]
    parser = Parser(Limits(snapshot_bytes_max=2**40))
    parser.feed(b"CLONE %d\r\n" % 2**30)        # above what is skipped, but wanted
    assert parser.next() == CloneStart(2**30)
