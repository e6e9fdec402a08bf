"""The wire between nodes: exact, typed, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from sockpqd.cluster.api import HostFigures
from sockpqd.cluster.wire.messages import (
    Ack,
    Admit,
    Append,
    Heartbeat,
    Hello,
    Info,
    Message,
    PreVote,
    PreVoteAnswer,
    RequestVote,
    SnapshotChunk,
    StaleTerm,
    TimeoutNow,
    Vote,
    decode,
    decode_hello,
    encode,
    encode_parts,
    is_news,
)

ALL: list[Message] = [
    Info("LEADER", 3, 4, 0, True, True, False, False, 1_700_000_000_000, "0.1.0", 64, b"y" * 16, 1_700_000_000_123),
    Append(3, 1, 12.5, 9, 8, 3, [(b"\0abc", 9, 3), (b"\1", 10, 3)]),
    Heartbeat(3, 1, 12.5, 9),
    Ack(3, 1, 12.5, 11, False, True, None),
    Ack(3, 1, 12.5, 11, True, False, 7),
    SnapshotChunk(3, 1, 12.5, 9, 7, 1 << 33, b"data", True, 300, 1 << 34, True),
    PreVote(5, 3, 10, 3),
    PreVoteAnswer(5, 3, True),
    RequestVote(4, 10, 3, True),
    Vote(4),
    StaleTerm(9),
    TimeoutNow(3),
    Admit(3),
]


@pytest.mark.parametrize("message", ALL, ids=lambda message: type(message).__name__)
def test_every_message_arrives_as_it_was_sent(message: Message) -> None:
    assert decode(encode(message)) == message


LARGE = bytes(range(256)) * 256         # the smallest command that is not copied


@pytest.mark.parametrize("commands", [
    [], [b"small"], [LARGE[1:]], [LARGE], [LARGE + b"x"], [b"small", LARGE, b"small", LARGE], [b"small"] * 20 + [LARGE],
], ids=["none", "small", "almost", "large", "larger", "mixed", "many"])
@pytest.mark.parametrize("first", [1, 127, 70_000, 1 << 40])
def test_a_message_in_parts_is_the_same_bytes(commands: list[bytes], first: int) -> None:
    entries = [(command, index, first) for index, command in enumerate(commands, first)]
    message = Append(first, 1, 12.5, 9, first - 1, first, entries)
    assert b"".join(encode_parts(message)) == encode(message)


def test_a_large_command_is_not_copied() -> None:
    assert any(part is LARGE for part in encode_parts(Append(3, 1, 12.5, 9, 8, 3, [(b"small", 9, 3), (LARGE, 10, 3)])))


@pytest.mark.parametrize("message", ALL, ids=lambda message: type(message).__name__)
def test_any_message_can_be_had_in_parts(message: Message) -> None:
    assert b"".join(encode_parts(message)) == encode(message)


def test_hello_arrives_as_it_was_sent_and_is_no_other_message() -> None:
    hello = Hello(1, "n1", "n2", b"", "0.1.0", True, False, "no", 4, "h:1", 1_700_000_000_000, 1_700_000_000_123)
    assert decode_hello(encode(hello)) == hello
    with pytest.raises(msgspec.ValidationError):
        decode(encode(hello))
    with pytest.raises(msgspec.ValidationError):
        decode_hello(encode(Vote(1)))


@pytest.mark.parametrize("data", [
    b"", b"\xc1", b"\x80", b"\x93\x01\x02\x03", b"\x82\xa4type\xa4vote\xa4term\xa1x", b"\x81\xa4type\xa4vote",
    encode(Append(1, 1, 0.0, 1, 1, 1, [(b"x", 2, 1)])).replace(b"\x93\xc4\x01x", b"\x92\xc4\x01x"),
    encode(Vote(1)) + b"\x00",
])
def test_anything_else_is_an_error(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode(data)


def test_how_far_a_node_is_and_what_time_it_is_there_is_no_news() -> None:
    info = Info(
        role="FOLLOWER", term=3, applied=7, lag=1, online=True, voter=True, empty=False, full=False, wall_ms=5,
        version="1", checkpoint=0, chain=b"",
    )
    assert is_news(None, info)
    later = {"applied": 9, "lag": 0, "wall_ms": 6, "checkpoint": 2, "chain": b"x", "time_ms": 8, "host": HostFigures(),
             "prefer": 9, "sync_us": 9, "losses": (("n1", 5, 600),)}
    assert not is_news(info, msgspec.structs.replace(info, **later))
    for field, value in (
        ("role", "LEADER"), ("term", 4), ("online", False), ("voter", False), ("empty", True), ("full", True),
        ("version", "2"), ("exhausted", True), ("subscribed", ("PUT",)), ("level", 9), ("raise_to", 9),
        ("cluster_level", 9),
    ):
        assert is_news(info, msgspec.structs.replace(info, **{field: value})), field
    assert len(later) + 12 == len(info.__struct_fields__)
