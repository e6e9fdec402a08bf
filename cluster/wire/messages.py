"""What nodes say to each other: one Struct for each message, MessagePack on the wire.

Decoding is typed and strict: whatever is not exactly one of these is an error of the sender and ends the connection.
Nothing from a peer is ever unpickled. `sent` is the sending leader's own monotonic clock in seconds; a follower echoes
it, so that the leader knows how old a proof of leadership is without comparing clocks.
"""

from __future__ import annotations

from struct import Struct as Layout

import msgspec
from msgspec import Struct

WIRE_FORMAT = 2
LogEntry = tuple[bytes, int, int]       # (command, index, term), as pysyncobj keeps them


class Hello(Struct, tag="hello", frozen=True):
    """First frame of each connection, in both directions: who speaks, and to whom.

    `format`, `sender` and `receiver` are there in every format, so that a node can say what it does not understand.
    `cluster_id` is empty while unknown. `voter`: may vote; `empty`: has never held an entry nor voted
    (voter_admission.py). `refused`: why the sender does not want to talk to the receiver, and closes the connection.
    `configuration`: of the membership that the sender knows; `address`: where it is dialed, for a receiver that does
    not know it yet. `wall_ms`, `time_ms`: as in Info.
    """

    format: int
    sender: str
    receiver: str
    cluster_id: bytes = b""
    version: str = ""
    voter: bool = False
    empty: bool = False
    refused: str = ""
    configuration: int = 0
    address: str = ""
    wall_ms: int = 0
    time_ms: int = 0


class Info(Struct, tag="info", frozen=True):
    """What a node says of itself a few times a second: for CLUSTER STATUS, admission, and replicated time.

    `wall_ms`: its wall clock; `time_ms`: replicated time as it knows it, 0 when it does not; both when this was sent.
    """

    role: str
    term: int
    applied: int
    lag: int
    online: bool
    voter: bool
    empty: bool
    full: bool              # no room for further jobs, on disk or in memory
    wall_ms: int
    version: str
    checkpoint: int         # state_hash.py: log index and chain value there; 0 and nothing while there is none
    chain: bytes
    time_ms: int = 0
    exhausted: bool = False     # its journal has no room for further entries of clients


class Append(Struct, tag="append", frozen=True):
    """AppendEntries: `entries` follow the entry (prev_index, prev_term)."""

    term: int
    epoch: int
    sent: float
    commit: int
    prev_index: int
    prev_term: int
    entries: list[LogEntry]


class Heartbeat(Struct, tag="beat", frozen=True):
    """I lead; nothing is said about the log (a snapshot is under way, or the connection is choked)."""

    term: int
    epoch: int
    sent: float
    commit: int


class Ack(Struct, tag="ack", frozen=True):
    """Answer to Append, Heartbeat and SnapshotChunk, echoing their term, epoch and `sent`.

    `success`: this log equals the leader's below `next_index`. `reset`: please go on from `next_index`. Neither: alive.
    `snapshot`: the transfer that ends with this answer.
    """

    term: int
    epoch: int
    sent: float
    next_index: int
    reset: bool
    success: bool
    snapshot: int | None = None


class SnapshotChunk(Struct, tag="chunk", frozen=True):
    """A piece of a snapshot file at `offset`; counts as a heartbeat."""

    term: int
    epoch: int
    sent: float
    commit: int
    transfer: int
    offset: int
    data: bytes
    last: bool


class PreVote(Struct, tag="prevote", frozen=True):
    """Would you vote for me? Changes nothing at either side (Ongaro's thesis, 9.6)."""

    round: int
    term: int
    last_index: int
    last_term: int


class PreVoteAnswer(Struct, tag="prevoted", frozen=True):
    """Answer to PreVote, with the answering node's term."""

    round: int
    term: int
    granted: bool


class RequestVote(Struct, tag="votereq", frozen=True):
    """Vote for me. `handover`: the old leader asked for it, so its liveness is no reason to refuse."""

    term: int
    last_index: int
    last_term: int
    handover: bool = False


class Vote(Struct, tag="vote", frozen=True):
    """You have my vote for this term."""

    term: int


class StaleTerm(Struct, tag="stale", frozen=True):
    """Your message is of an older term than mine."""

    term: int


class TimeoutNow(Struct, tag="timeoutnow", frozen=True):
    """Leadership transfer: start an election at once."""

    term: int


class Admit(Struct, tag="admit", frozen=True):
    """You have caught up: you may vote from now on (voter_admission.py)."""

    term: int


Message = (
    Info
    | Append
    | Heartbeat
    | Ack
    | SnapshotChunk
    | PreVote
    | PreVoteAnswer
    | RequestVote
    | Vote
    | StaleTerm
    | TimeoutNow
    | Admit
)

_encoder = msgspec.msgpack.Encoder()
_LARGE_BYTES = 1 << 16                  # from here on MessagePack writes lengths in 32 bits
_LARGE_ENTRY = Layout(">BBI")           # what stands before a command of that size
_ARRAY_OF_THREE, _BIN_32 = 0x93, 0xC6
_hello_decoder = msgspec.msgpack.Decoder(Hello)
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def encode(message: Hello | Message) -> bytes:
    """Bytes of one message, without the frame's length."""
    return _encoder.encode(message)


def encode_parts(message: Message) -> list[bytes]:
    """As encode(), but in parts that follow each other: the large commands of an Append are themselves, not copied."""
    if type(message) is Append:
        for command, _, _ in message.entries:
            if len(command) >= _LARGE_BYTES:
                return _parts(message)
    return [_encoder.encode(message)]


def _parts(message: Append) -> list[bytes]:
    # The entries are the last field; an array of as many empty values begins as that of the entries does.
    nothing = [None] * len(message.entries)
    array = _encoder.encode(nothing)[:-len(nothing)]
    parts = [_encoder.encode(msgspec.structs.replace(message, entries=[]))[:-1] + array]
    for entry in message.entries:
        command, index, term = entry
        if len(command) < _LARGE_BYTES:
            parts.append(_encoder.encode(entry))
        else:
            rest = _encoder.encode(index) + _encoder.encode(term)
            parts += [_LARGE_ENTRY.pack(_ARRAY_OF_THREE, _BIN_32, len(command)), command, rest]
    return parts


def decode(data: bytes | bytearray) -> Message:
    """The message in these bytes; raises msgspec.DecodeError or msgspec.ValidationError for anything else."""
    return _decoder.decode(data)


def decode_hello(data: bytes | bytearray) -> Hello:
    """The Hello in these bytes; raises like decode()."""
    return _hello_decoder.decode(data)
