"""The entry of the log: operations that are executed together, and its bytes.

An entry is one record of the replicated log: the leader's clock, 64 random bits, and the operations collected in one
turn of its event loop. Its bytes are a MessagePack array with the format number first, so that a node can refuse what
it does not know. The tag of an operation is its number on disk: numbers are never reused.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from sockpqd.core.levels import FEATURE_LEVEL, FIELD_LEVELS, FIRST_LEVEL
from sockpqd.core.ops import cluster, fragments, jobs, pulses, queues, sessions, topics, users, workers

ENTRY_FORMAT = 2

Operation = (
    jobs.Atomic
    | jobs.Get
    | jobs.Return
    | jobs.GetWith
    | jobs.Kick
    | jobs.Batch
    | queues.OnQueues
    | queues.ExpireQueue
    | pulses.OnPulses
    | pulses.Grant
    | sessions.OpenSession
    | sessions.AttachSession
    | sessions.CloseSession
    | sessions.TouchSession
    | sessions.Request
    | topics.OnTopics
    | workers.OnWorkers
    | users.SetUser
    | users.DeleteUser
    | cluster.Tick
    | cluster.Lead
    | cluster.Resume
    | cluster.CloneBegin
    | cluster.CloneChunk
    | cluster.CloneEnd
    | cluster.AddLearner
    | cluster.PromoteLearner
    | cluster.RemoveMember
    | cluster.SwitchService
    | cluster.RaiseLevel
    | fragments.Fragment
    | fragments.LastFragment
)


class Entry(Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """One record of the log. `now_ms` and `seed` are the leader's; `operations` are executed in order."""

    format: int
    now_ms: int
    seed: int
    operations: list[Operation]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)
_operation_decoder: msgspec.msgpack.Decoder[Operation] = msgspec.msgpack.Decoder(Operation)


def encode_entry(now_ms: int, seed: int, operations: list[Operation], level: int = FEATURE_LEVEL) -> bytes:
    """Bytes of one log entry, as programs of this feature level read it.

    `now_ms`: Unix time in milliseconds; `seed`: 64 random bits.
    """
    if level < FEATURE_LEVEL and FIELD_LEVELS:
        return _encoder.encode([ENTRY_FORMAT, now_ms, seed, _as_of(level, operations)])
    return _encoder.encode(Entry(ENTRY_FORMAT, now_ms, seed, operations))


def decode_entry(data: bytes) -> Entry:
    """The entry in these bytes. Raises ValueError when they are not an entry of a known format."""
    entry = _decoder.decode(data)
    if entry.format != ENTRY_FORMAT:
        never = ", which no release ever wrote" if entry.format < ENTRY_FORMAT else ""
        raise ValueError(f"log entry of format {entry.format}{never}; this version reads format {ENTRY_FORMAT}")
    return entry


def encode_operation(operation: Operation, level: int = FEATURE_LEVEL) -> bytes:
    """Bytes of an operation by itself, for its fragments."""
    return _encoder.encode(_as_of(level, operation) if level < FEATURE_LEVEL and FIELD_LEVELS else operation)


def _as_of(level: int, value: Any) -> Any:
    """The arrays of which this consists, without the fields that are of a higher level."""
    if isinstance(value, list | tuple):
        return [_as_of(level, one) for one in value]
    if not isinstance(value, Struct):
        return value
    kind = type(value)
    names = [
        name for name in kind.__struct_fields__ if FIELD_LEVELS.get((kind.__name__, name), FIRST_LEVEL) <= level
    ]
    tag = kind.__struct_config__.tag
    return [*([] if tag is None else [tag]), *[_as_of(level, getattr(value, name)) for name in names]]


def decode_operation(data: bytes | bytearray) -> Operation:
    """The operation in these bytes. Raises ValueError when they are none."""
    return _operation_decoder.decode(data)


def continues(operation: Operation, before: Operation) -> bool:
    """Whether `operation` must stand directly behind `before`, in the same entry.

    So must the hand-out of a PUT .. WAIT, behind its Put (spec/state-machine 4.7).
    """
    if type(operation) is sessions.Request:
        if type(before) is fragments.LastFragment:
            return operation.part > 0
        return (
            operation.part > 0 and type(before) is sessions.Request and type(before.operation) in jobs.PUTS
            and (before.session, before.number) == (operation.session, operation.number)
        )
    if type(operation) is not jobs.Get or type(before) not in (*jobs.PUTS, fragments.LastFragment):
        return False
    return operation.item_of_put or operation.item is not None


def name_of(operation: Operation) -> str:
    """What is done, for log messages; of a Request what it asks for."""
    return type(operation.operation if isinstance(operation, sessions.Request) else operation).__name__
