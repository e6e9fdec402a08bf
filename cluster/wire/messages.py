"""The messages between nodes: one Struct each, MessagePack on the wire.

Decoding is typed and strict: anything else is an error of the sender and ends the connection. Nothing from a peer is
ever unpickled. `sent` is the sending leader's own monotonic clock in seconds; a follower echoes it, so the leader knows
when it sent an acknowledged message without comparing clocks.
"""

from __future__ import annotations

from struct import Struct as Layout

import msgspec
from msgspec import Struct

from sockpqd.cluster.api import Channels, HostFigures
from sockpqd.core import FIRST_LEVEL

WIRE_FORMAT = 2
LogEntry = tuple[bytes, int, int]       # (command, index, term), as pysyncobj keeps them


class Hello(Struct, tag="hello", frozen=True):
    """The greeting: the first frame of each connection, in both directions.

    `format`, `sender` and `receiver` exist in every format, so a node can name what it does not understand.
    `cluster_id` is empty while unknown. `voter`: has the right to vote; `empty`: has never held an entry nor voted
    (voter_admission.py). `refused`: why the sender refuses the receiver and closes the connection. `configuration`:
    number of the membership that the sender knows; `address`, `client`: where nodes and clients dial it, for a receiver
    that does not know it yet, or finds nobody where it was (moved.py). `wall_ms`, `time_ms`, `level`, `raise_to` and
    `cluster_level`: as in Info. `acknowledged`: the sender knows committed entries up to this index to have been
    durable on the receiver. `journal`: random bytes of the journal, made when it was; `process`: random bytes of the
    process; both empty from older versions (duplicate_nodes.py). `term`, `last_term` and `last_index`: the sender's
    term and the last entry of its log (voting_right.py).
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
    level: int = FIRST_LEVEL
    raise_to: int = FIRST_LEVEL
    cluster_level: int = FIRST_LEVEL
    acknowledged: int = 0
    journal: bytes = b""
    process: bytes = b""
    term: int = 0
    last_term: int = 0
    last_index: int = 0
    client: str = ""


class Info(Struct, tag="info", frozen=True):
    """A node's description of itself, a few times a second: for CLUSTER STATUS, admission, and replicated time.

    `wall_ms`: its wall clock; `time_ms`: replicated time as it knows it, 0 if unknown; both at the time of sending.
    `level`: the feature level that it knows; `raise_to`: the highest level to which it lets the cluster's be raised;
    `cluster_level`: the cluster's level as far as it has applied the log. `prefer`: leader/preference.py, 0 from older
    versions; `sync_us`: the average time of a sync of its journal, likewise; `losses`: nodes that lost a leadership.
    """

    role: str
    term: int
    applied: int
    lag: int
    online: bool
    voter: bool
    empty: bool
    full: bool              # no room for more jobs, on disk or in memory
    wall_ms: int
    version: str
    checkpoint: int         # log index of its last checkpoint (state_hash.py), 0 without one
    chain: bytes            # the hash there
    time_ms: int = 0
    exhausted: bool = False     # its journal has no room for clients' entries
    subscribed: tuple[str, ...] | None = None   # types of events subscribed there; None: it does not know events
    level: int = FIRST_LEVEL
    raise_to: int = FIRST_LEVEL
    cluster_level: int = FIRST_LEVEL
    host: HostFigures | None = None     # None from older versions
    prefer: int = 0
    sync_us: int = 0
    losses: tuple[tuple[str, int, int], ...] = ()


def is_news(before: Info | None, info: Info) -> bool:
    """Return whether `info` differs from `before` in more than the node's position in the log, time and host."""
    return before is None or (
        info.role != before.role or info.term != before.term or info.online is not before.online
        or info.voter is not before.voter or info.empty is not before.empty or info.full is not before.full
        or info.exhausted is not before.exhausted or info.subscribed != before.subscribed
        or info.version != before.version or info.level != before.level or info.raise_to != before.raise_to
        or info.cluster_level != before.cluster_level
    )


class Append(Struct, tag="append", frozen=True):
    """AppendEntries: `entries` follow the entry (prev_index, prev_term).

    `promise_ms`: for how long a receiver that answers will not help to elect another node (lease.py); 0 from older
    versions.
    """

    term: int
    epoch: int
    sent: float
    commit: int
    prev_index: int
    prev_term: int
    entries: list[LogEntry]
    promise_ms: int = 0


class Heartbeat(Struct, tag="beat", frozen=True):
    """A leader's heartbeat without entries (a snapshot is being sent, or the connection is choked)."""

    term: int
    epoch: int
    sent: float
    commit: int
    promise_ms: int = 0


class Ack(Struct, tag="ack", frozen=True):
    """The answer to Append, Heartbeat and SnapshotChunk, echoing their term, epoch, `sent` and `promise_ms`.

    `success`: this log equals the leader's below `next_index`. `reset`: continue from `next_index`. Neither: only a
    sign of life. `snapshot`: the transfer that ends with this answer.
    """

    term: int
    epoch: int
    sent: float
    next_index: int
    reset: bool
    success: bool
    snapshot: int | None = None
    promise_ms: int = 0


class SnapshotChunk(Struct, tag="chunk", frozen=True):
    """A chunk of a snapshot file at `offset`; also a heartbeat.

    `size`: length of the whole file, 0 from older versions. `covered`: what the receiver ever acknowledged is on the
    disks of a majority of the voters without it.
    """

    term: int
    epoch: int
    sent: float
    commit: int
    transfer: int
    offset: int
    data: bytes
    last: bool
    promise_ms: int = 0
    size: int = 0
    covered: bool = False


class PreVote(Struct, tag="prevote", frozen=True):
    """Asks whether the receiver would vote for the sender, without changing either (Ongaro's thesis, 9.6)."""

    round: int
    term: int
    last_index: int
    last_term: int


class PreVoteAnswer(Struct, tag="prevoted", frozen=True):
    """The answer to PreVote, with the answering node's term."""

    round: int
    term: int
    granted: bool


class RequestVote(Struct, tag="votereq", frozen=True):
    """Asks for a vote. `handover`: the old leader asked for the election, so a live leader is no reason to refuse."""

    term: int
    last_index: int
    last_term: int
    handover: bool = False


class Vote(Struct, tag="vote", frozen=True):
    """The sender's vote for the receiver in this term."""

    term: int


class StaleTerm(Struct, tag="stale", frozen=True):
    """The answer to a leader's message of an older term than the sender's."""

    term: int


class TimeoutNow(Struct, tag="timeoutnow", frozen=True):
    """Asks the receiver to start an election at once, to hand leadership to it."""

    term: int


class Admit(Struct, tag="admit", frozen=True):
    """Grants the right to vote to a node that has caught up (voter_admission.py)."""

    term: int


class Listening(Struct, tag="listening", frozen=True):
    """The channels that subscribers of the sender listen to. `number` counts these lists; Heard repeats it."""

    number: int
    channels: list[Channels]


class Heard(Struct, tag="heard", frozen=True):
    """The answer to Listening: the leader knows it."""

    number: int


class Notice(Struct, tag="notice", frozen=True):
    """A message of NOTIFY, sent outside the log. `lost`: instead of a message, reports that some were dropped."""

    channel: str
    data: bytes
    lost: bool = False


class ForwardedCommand(Struct, tag="ask", frozen=True):
    """A command of the protocol, with its data, that the leader executes for this user.

    Sent only to nodes whose Info has `subscribed`: older ones do not know this message, and would close the connection.
    """

    number: int
    user: str | None
    address: str            # of the client
    command: bytes


class CommandAnswer(Struct, tag="answered", frozen=True):
    """The answer to ForwardedCommand. `executed`: False if it certainly was not; `data` is empty if that is unknown."""

    number: int
    data: bytes
    executed: bool


class ForwardedCall(Struct, tag="call", frozen=True):
    """A call that the leader executes for a client of this user (cluster/forwarding/forwarded_calls.py)."""

    number: int
    user: str | None
    address: str            # of the client
    data: bytes


class CancelCall(Struct, tag="recall", frozen=True):
    """Asks for an early end of the forwarded call of this number."""

    number: int


class CallOutcome(Struct, tag="reported", frozen=True):
    """The outcome of the forwarded call of this number, or None if there is none."""

    number: int
    data: bytes | None


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
    | Listening
    | Heard
    | Notice
    | ForwardedCommand
    | CommandAnswer
    | ForwardedCall
    | CancelCall
    | CallOutcome
)

_encoder = msgspec.msgpack.Encoder()
_LARGE_BYTES = 1 << 16                  # from here on MessagePack writes lengths in 32 bits
_LARGE_ENTRY = Layout(">BBI")           # what precedes a command of that size
_ARRAY_OF_THREE, _BIN_32 = 0x93, 0xC6
_hello_decoder = msgspec.msgpack.Decoder(Hello)
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def encode(message: Hello | Message) -> bytes:
    """Encode a message, without the frame's head."""
    return _encoder.encode(message)


def encode_parts(message: Message) -> list[bytes]:
    """Like encode(), but as consecutive parts, in which the large commands of an Append are not copied."""
    if type(message) is Append:
        for command, _, _ in message.entries:
            if len(command) >= _LARGE_BYTES:
                return _parts(message)
    return [_encoder.encode(message)]


def _parts(message: Append) -> list[bytes]:
    # The entries are the second-to-last field; an array of as many nils has the same head.
    nothing = [None] * len(message.entries)
    array = _encoder.encode(nothing)[:-len(nothing)]
    rest = _encoder.encode("promise_ms") + _encoder.encode(message.promise_ms)
    parts = [_encoder.encode(msgspec.structs.replace(message, entries=[]))[:-1 - len(rest)] + array]
    for entry in message.entries:
        command, index, term = entry
        if len(command) < _LARGE_BYTES:
            parts.append(_encoder.encode(entry))
        else:
            numbers = _encoder.encode(index) + _encoder.encode(term)
            parts += [_LARGE_ENTRY.pack(_ARRAY_OF_THREE, _BIN_32, len(command)), command, numbers]
    return [*parts, rest]


def decode(data: bytes | bytearray | memoryview) -> Message:
    """Decode a message. Raises msgspec.DecodeError or msgspec.ValidationError."""
    return _decoder.decode(data)


def decode_hello(data: bytes | bytearray) -> Hello:
    """Decode a Hello. Raises the errors of decode()."""
    return _hello_decoder.decode(data)


def incompatible(theirs: Hello, ours: Hello) -> str:
    """Return in a sentence why nodes with these greetings cannot work together; "" if they can (spec/cluster 12.3)."""
    if theirs.format != WIRE_FORMAT:
        return f"{theirs.sender} speaks format {theirs.format} of this protocol, {ours.sender} speaks {WIRE_FORMAT}"
    for one, other in ((theirs, ours), (ours, theirs)):
        if one.level < other.cluster_level:
            return (f"{one.sender} knows feature levels up to {one.level}, and the cluster has level "
                    f"{other.cluster_level}: start a newer version of sockpqd on {one.sender}")
    return ""
