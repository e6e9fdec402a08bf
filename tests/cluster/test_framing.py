"""Messages out of a byte stream, however it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sockpqd.cluster import limits
from sockpqd.cluster.wire.framing import HEAD_BYTES, LAST, PIECE, Unframer, pieces, whole


def take(unframer: Unframer) -> list[bytes | bytearray]:
    messages = []
    while (message := unframer.next()) is not None:
        messages.append(message)
    return messages


@given(st.lists(st.tuples(st.binary(max_size=50), st.booleans()), max_size=10), st.integers(1, 40), st.integers(1, 30))
def test_what_was_sent_arrives(sent: list[tuple[bytes, bool]], cut: int, piece_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PIECE_BYTES", piece_bytes)
        stream = b"".join(b"".join(pieces(data)) if large and data else whole(data) for data, large in sent)
    unframer, messages = Unframer(1000), []
    for start in range(0, len(stream), cut):
        unframer.feed(stream[start:start + cut])
        messages += take(unframer)
    assert messages == [data for data, _ in sent]
    assert unframer.waiting_bytes == 0


@given(st.lists(st.binary(max_size=20), max_size=10), st.integers(1, 30))
def test_a_message_in_parts_is_framed_like_the_whole(parts: list[bytes], piece_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PIECE_BYTES", piece_bytes)
        assert list(pieces(*parts)) == list(pieces(b"".join(parts)))
    assert whole(*parts) == whole(b"".join(parts))


def test_what_has_arrived_counts_as_waiting_until_its_message_is_complete() -> None:
    unframer = Unframer(1000)
    for count, byte in enumerate(whole(b"beat")[:-1], 1):
        unframer.feed(bytes([byte]))
        assert unframer.next() is None
        assert unframer.waiting_bytes == (count if count < HEAD_BYTES else count - HEAD_BYTES)


def test_a_small_message_stands_between_the_pieces_of_a_large_one() -> None:
    large = bytes(range(256)) * (limits.PIECE_BYTES // 100)
    first, *rest = pieces(large)
    unframer = Unframer(1 << 20)
    unframer.feed(first + whole(b"beat"))
    assert take(unframer) == [b"beat"]
    assert unframer.waiting_bytes == len(first) - HEAD_BYTES
    unframer.feed(b"".join(rest))
    assert take(unframer) == [large]


@pytest.mark.parametrize("stream", [
    (101).to_bytes(4, "big"),
    (101 | PIECE).to_bytes(4, "big"),
    (60 | PIECE).to_bytes(4, "big") + bytes(60) + (60 | PIECE).to_bytes(4, "big"),
    (5 | LAST).to_bytes(4, "big") + bytes(5),
], ids=["too long", "piece too long", "pieces too long together", "end without pieces"])
def test_absurd_lengths_are_refused(stream: bytes) -> None:
    unframer = Unframer(100)
    unframer.feed(stream)
    with pytest.raises(ValueError, match="a frame of"):
        unframer.next()


@given(st.lists(st.tuples(st.binary(max_size=50), st.booleans()), max_size=10), st.integers(1, 80), st.integers(1, 30))
def test_a_read_of_exactly_one_frame_is_a_message_only_between_others(
    sent: list[tuple[bytes, bool]], cut: int, piece_bytes: int,
) -> None:
    """Reads as they may come: a whole frame each, or any cut of the stream."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PIECE_BYTES", piece_bytes)
        frames = [frame for data, large in sent for frame in (pieces(data) if large and data else (whole(data),))]
    unframer, messages = Unframer(1000), []
    for number, frame in enumerate(frames):
        for read in (frame,) if number % 3 else (frame[:cut], frame[cut:]):
            if not read:
                continue
            only = unframer.only(read)
            if only is not None:
                messages.append(bytes(only))
            else:
                unframer.feed(read)
                messages += take(unframer)
    assert messages == [data for data, _ in sent]


def test_a_message_above_the_limit_is_left_to_the_check() -> None:
    unframer = Unframer(10)
    assert unframer.only(whole(bytes(11))) is None
    assert unframer.only(whole(bytes(10))) == bytes(10)
