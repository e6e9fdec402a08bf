"""What the log carries: the operations of the queue machine, and the entry that groups them.

An entry is one record of the replicated log: the leader's clock, 64 random bits and the operations collected in one
turn of its loop. Its bytes are a MessagePack array with the format number first, so that a node can refuse what it
does not know. The tag of an operation is its number on disk: numbers are never reused.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from core.ops.jobs import (
    Batch,
    Bury,
    Change,
    Delete,
    Done,
    DoneAll,
    DoneLast,
    Get,
    Kick,
    Later,
    LaterAll,
    LaterWith,
    Move,
    Pick,
    Put,
    PutWith,
    Return,
    Then,
    Touch,
)
from core.ops.queues import (
    Configure,
    ConfigureQueue,
    CreateQueue,
    DeleteQueue,
    PauseQueue,
    PurgeQueue,
    ResumeQueue,
)

ENTRY_FORMAT = 2


class Tick(Struct, array_like=True, tag=6, gc=False, frozen=True):
    """Nothing; its entry carries the clock forward."""


class Address(Struct, array_like=True, gc=False, frozen=True):
    """Where a node is found: "host:port" for the other nodes and for clients, "" when it is not known."""

    name: str
    peer: str = ""
    client: str = ""


class Lead(Struct, array_like=True, tag=7, gc=False, frozen=True):
    """`node` leads from here on: the first operation of each leadership (spec/cluster 4.4).

    `members` are all configured nodes in name order. They, `cluster_id` (16 random bytes) and `expire_default` only
    count in the first Lead of an empty cluster. `grace_ms`: leases that would end sooner are extended to clock +
    grace_ms, once per hand-out. `addresses` are used for members whose address is not known yet.
    """

    node: str
    term: int
    members: tuple[str, ...]
    cluster_id: bytes
    grace_ms: int
    expire_default: Then = Then.LATER
    addresses: tuple[Address, ...] = ()


class CloneBegin(Struct, array_like=True, tag=8, gc=False, frozen=True):
    """A snapshot of `total_bytes` follows in chunks; an unfinished earlier one is dropped."""

    clone: int          # chosen by the proposer, tells the chunks of two clients apart
    total_bytes: int


class CloneChunk(Struct, array_like=True, tag=9, gc=False, frozen=True):
    """The next bytes of clone `clone`."""

    clone: int
    data: bytes


class CloneEnd(Struct, array_like=True, tag=10, gc=False, frozen=True):
    """Verify the collected snapshot and replace the state by it."""

    clone: int


class AddLearner(Struct, array_like=True, tag=11, gc=False, frozen=True):
    """`node` joins the cluster, at first without a vote (spec/cluster 7.2). `peer` and `client` are as in Address."""

    node: str
    peer: str
    client: str


class PromoteLearner(Struct, array_like=True, tag=12, gc=False, frozen=True):
    """The learner `node` becomes a voter, if the voters are still those of `configuration`."""

    node: str
    configuration: int


class RemoveMember(Struct, array_like=True, tag=13, gc=False, frozen=True):
    """`node` leaves the cluster: a voter if the voters are still those of `configuration`, the learner in any case."""

    node: str
    configuration: int


class SwitchService(Struct, array_like=True, tag=14, gc=False, frozen=True):
    """The whole service goes online or offline, whoever leads. While it is offline no lease ends.

    `grace_ms`: when it goes online, leases that would end sooner are extended to clock + grace_ms, once per hand-out,
    so that workers can finish what they could not meanwhile.
    """

    online: bool
    grace_ms: int = 0


class Resume(Struct, array_like=True, tag=42, gc=False, frozen=True):
    """For a while nothing could be logged, on full disks say, so nobody could prolong a lease or use a session.

    Those that would end sooner are extended to clock + `grace_ms`, also if they had the failover grace before, which
    is not used up by this (spec/state-machine 3.4). It is the first operation of its entry; nothing ends before it.
    """

    grace_ms: int


class OpenSession(Struct, array_like=True, tag=15, gc=False, frozen=True):
    """A client wants a session (spec/sessions 1), which ends `ttl_ms` after its last use.

    `secret`: 64 random bits, so that nobody can guess the name of somebody else's session. `user`: whose session it
    is, "" when the client has no name. `address`: where the client is. One user at one address may have `owner_max`
    sessions: for another one it loses its longest unused one without bound jobs.
    """

    secret: int
    ttl_ms: int
    user: str = ""
    address: str = ""
    owner_max: int | None = None        # None: any number


class AttachSession(Struct, array_like=True, tag=16, gc=False, frozen=True):
    """A client comes back to the session that it names by number and secret.

    A session of a user is there for this `user` only; "" for a client that has no name, which any session is there for.
    """

    session: int
    secret: int
    user: str = ""


class CloseSession(Struct, array_like=True, tag=17, gc=False, frozen=True):
    """The session ends now. Jobs bound to it go LATER with `release`, otherwise they run on (spec/sessions 4.2).

    Replies: Accepted, SessionNotFound; Removed when there were more jobs to unbind than one entry should: the session
    lives on with the others.
    """

    session: int
    release: bool


class TouchSession(Struct, array_like=True, tag=18, gc=False, frozen=True):
    """Use the session, so that it does not end."""

    session: int


OnQueues = CreateQueue | ConfigureQueue | DeleteQueue | PurgeQueue | PauseQueue | ResumeQueue | Configure

Requested = (
    Put | PutWith | Get | Pick | Done | DoneAll | DoneLast | Later | LaterAll | LaterWith | Touch | Change | Delete
    | Move | Bury | Kick | Batch | CloneEnd | OnQueues
)


class Request(Struct, array_like=True, tag=19, gc=False, frozen=True):
    """Execute `operation`, unless request `number` of the session was answered before: then answer the same again.

    `digest` (16 bytes) is that of the client's whole command: under one number there is one command only. A command of
    several operations gives each of them a `part` of its own: 0 is the command itself, 1 the hand-out of a PUT .. WAIT.
    An Empty is no answer yet with `keep_waiting` (GETB, GETBE, the hand-out of a WAIT): the same Request is proposed
    again when a job may be there. With `until_finished` as well (GETBE) only an Empty with unfinished jobs is none.
    """

    session: int
    number: int
    digest: bytes
    part: int
    keep_waiting: bool
    operation: Requested
    until_finished: bool = False


class SetUser(Struct, array_like=True, tag=20, gc=False, frozen=True):
    """`name` is a user from now on, or has these rights and this key from now on (spec/access 1.1).

    What the words of `rights` mean is known by those who ask for them.
    """

    name: str
    rights: str
    key: bytes


class DeleteUser(Struct, array_like=True, tag=21, gc=False, frozen=True):
    """`name` is no user any more."""

    name: str


Operation = (
    Put
    | Get
    | Done
    | Later
    | Return
    | Tick
    | Lead
    | CloneBegin
    | CloneChunk
    | CloneEnd
    | AddLearner
    | PromoteLearner
    | RemoveMember
    | SwitchService
    | Resume
    | OpenSession
    | AttachSession
    | CloseSession
    | TouchSession
    | Request
    | SetUser
    | DeleteUser
    | PutWith
    | Pick
    | DoneAll
    | LaterAll
    | DoneLast
    | LaterWith
    | Touch
    | Change
    | Delete
    | Move
    | Bury
    | Kick
    | Batch
    | OnQueues
)


class Entry(Struct, array_like=True, frozen=True):
    """One record of the log: `now_ms` and `seed` are the leader's, `operations` are executed in order."""

    format: int
    now_ms: int
    seed: int
    operations: list[Operation]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)


def encode_entry(now_ms: int, seed: int, operations: list[Operation]) -> bytes:
    """Bytes of one log entry. `now_ms`: Unix time in milliseconds; `seed`: 64 random bits."""
    return _encoder.encode(Entry(ENTRY_FORMAT, now_ms, seed, operations))


def decode_entry(data: bytes) -> Entry:
    """The entry in these bytes; raises ValueError when they are not an entry of a known format."""
    entry = _decoder.decode(data)
    if entry.format != ENTRY_FORMAT:
        never = ", which no release ever wrote" if entry.format < ENTRY_FORMAT else ""
        raise ValueError(f"log entry of format {entry.format}{never}; this version reads format {ENTRY_FORMAT}")
    return entry
