"""The answer to CLUSTER FEED, cut in any way."""

from __future__ import annotations

import random

import pytest

from sockpqd.cluster.api import Checkpoint, Frame
from sockpqd.gateway.replica import feed_stream
from sockpqd.gateway.replica.feed_stream import FeedEnded, FeedStream, Item, Mark, StreamBroken

STREAM = (
    b"5 1700000000000 18446744073709551615 3\r\nabc7 1700000000001 0 0\r\n"
    b"HASH 7 00112233445566778899aabbccddeeff\r\nNOW 7 9 1700000000002\r\n8 1 2 2\r\n\r\n9 1 2 4\r\nNOW "
)
ITEMS: list[Item] = [
    Frame(5, 1700000000000, 18446744073709551615, b"abc"), Frame(7, 1700000000001, 0, b""),
    Checkpoint(7, bytes.fromhex("00112233445566778899aabbccddeeff")), Mark(7, 9, 1700000000002),
    Frame(8, 1, 2, b"\r\n"), Frame(9, 1, 2, b"NOW "),
]


def test_a_stream_is_read_however_it_is_cut() -> None:
    rng = random.Random(1)
    for _ in range(200):
        stream, found = FeedStream(), []
        cuts = sorted(rng.sample(range(len(STREAM) + 1), 5))
        for start, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
            found += stream.items(STREAM[start:end])
        assert found == ITEMS


def test_what_stands_before_the_end_is_returned_first() -> None:
    stream = FeedStream()
    assert stream.items(b"5 1 2 1\r\nx409 Too Old\r\n") == [Frame(5, 1, 2, b"x")]
    with pytest.raises(FeedEnded, match="409 Too Old"):
        stream.items(b"")
    with pytest.raises(FeedEnded, match="500 Offline Mode"):
        FeedStream().items(b"500 Offline Mode\r\n")


@pytest.mark.parametrize("line", [
    b"HELLO\r\n", b"1 2 3\r\n", b"1 2 3 x\r\n", b"1 2 3 -1\r\n", b"1 2 3 99999999999\r\n", b"HASH 1 zz\r\n",
    b"NOW 1 2\r\n", b"HASH 1\r\n", b"\r\n", bytes(300), b"\xff\xff\r\n",
])
def test_anything_else_is_no_feed(line: bytes) -> None:
    stream = FeedStream()
    with pytest.raises(StreamBroken):
        stream.items(line)
    with pytest.raises(StreamBroken):
        stream.items(b"5 1 2 0\r\n")


def test_an_entry_is_waited_for_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_stream, "ENTRY_BYTES_MAX", 5)
    assert FeedStream().items(b"5 1 2 5\r\nabcd") == []
    with pytest.raises(StreamBroken, match="an entry of 6 bytes"):
        FeedStream().items(b"5 1 2 6\r\n")
