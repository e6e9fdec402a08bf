"""The entry of the log: operations that are executed together, and their encoding.

An entry is one record of the replicated log: the leader's clock, 64 random bits, and the operations collected in one
turn of its event loop. Its bytes are a MessagePack array with the format number first, so that a node can refuse
formats it does not know. The tag of an operation is its number on disk: numbers are never reused.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from sockpqd.core.levels import FEATURE_LEVEL, FIELD_LEVELS, FIRST_LEVEL
from sockpqd.core.ops import cluster, fragments, jobs, pulses, queues, sessions, topics, users, workers

ENTRY_FORMAT = 3

Operation = (
    jobs.Atomic
    | jobs.Get
    | jobs.Return
    | jobs.GetWith
    | jobs.Kick
    | jobs.Batch
    | jobs.Await
    | jobs.RetryItem
    | jobs.CancelItem
    | queues.OnQueues
    | queues.OnGroups
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
    | cluster.Tick
    | cluster.Lead
    | cluster.Resume
    | cluster.CloneChunk
    | cluster.ChangeMember
    | cluster.SwitchService
    | cluster.RaiseLevel
    | cluster.SetMap
    | fragments.Fragment
    | cluster.MirrorEntries
    | cluster.MirrorChunk
    | cluster.Promote
    | cluster.Fence
)


# Format 2, of 1.0.0rc1, had other operations for clients. The operations that a cluster logs by itself are unchanged.
_OLD_FORMAT = 2
_OF_BOTH_FORMATS = frozenset({cluster.Tick, cluster.Lead, cluster.Resume, cluster.SwitchService})


class OldEntry(ValueError):
    """The entry has the format of 1.0.0rc1, with operations that cannot be read from it."""


class Entry(Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """One record of the log. `now_ms` and `seed` are set by the leader; `operations` are executed in order."""

    format: int
    now_ms: int
    seed: int
    operations: list[Operation]


class EntryHead(Struct, array_like=True, frozen=True):
    """An entry of which only the first fields are decoded."""

    format: int
    now_ms: int
    seed: int
    operations: msgspec.Raw


_encoder = msgspec.msgpack.Encoder()
_head_decoder = msgspec.msgpack.Decoder(EntryHead)
_decoder = msgspec.msgpack.Decoder(Entry)
_OLD_HEAD = _encoder.encode([_OLD_FORMAT, 0, 0, []])[:2]
_operation_decoder: msgspec.msgpack.Decoder[Operation] = msgspec.msgpack.Decoder(Operation)


def encode_entry(now_ms: int, seed: int, operations: list[Operation], level: int = FEATURE_LEVEL) -> bytes:
    """Encode one log entry for programs of this feature level.

    `now_ms`: Unix time in milliseconds; `seed`: 64 random bits.
    """
    return _encoder.encode(as_of(level, Entry(ENTRY_FORMAT, now_ms, seed, operations)))


def decode_entry(data: bytes) -> Entry:
    """Decode one log entry.

    Raises OldEntry if it has the format of 1.0.0rc1, ValueError if its format is unknown.
    """
    try:
        entry = _decoder.decode(data)
    except msgspec.ValidationError:
        if data[:2] == _OLD_HEAD:               # an operation that only this format has
            raise OldEntry(_unread(_OLD_FORMAT)) from None
        raise
    if entry.format == ENTRY_FORMAT:
        return entry
    if entry.format == _OLD_FORMAT:
        if _OF_BOTH_FORMATS.issuperset(map(type, entry.operations)):
            return entry
        raise OldEntry(_unread(_OLD_FORMAT))
    raise ValueError(_unread(entry.format))


def head_of_entry(data: bytes) -> EntryHead:
    """Decode time and seed of a log entry, which must be one, without its operations."""
    return _head_decoder.decode(data)


def _unread(number: int) -> str:
    never = ", which no release ever wrote" if number < _OLD_FORMAT else ""
    return f"log entry of format {number}{never}; this version reads format {ENTRY_FORMAT}"


def encode_operation(operation: Operation, level: int = FEATURE_LEVEL) -> bytes:
    """Encode an operation by itself, to be split into fragments."""
    return _encoder.encode(as_of(level, operation))


def as_of(level: int, value: Any) -> Any:
    """Return `value` as it is to be encoded for programs of this feature level: without fields of a higher level.

    Returns `value` itself if nothing must be left out.
    """
    return _cut(level, value) if level < FEATURE_LEVEL and FIELD_LEVELS else value


def _cut(level: int, value: Any) -> Any:
    """Return the value as nested arrays without the fields above this level."""
    if isinstance(value, list | tuple):
        return [_cut(level, one) for one in value]
    if not isinstance(value, Struct):
        return value
    kind = type(value)
    names = [
        name for name in kind.__struct_fields__ if FIELD_LEVELS.get((kind.__name__, name), FIRST_LEVEL) <= level
    ]
    tag = kind.__struct_config__.tag
    return [*([] if tag is None else [tag]), *[_cut(level, getattr(value, name)) for name in names]]


def decode_operation(data: bytes | bytearray) -> Operation:
    """Decode an operation. Raises ValueError if the bytes are not an operation."""
    return _operation_decoder.decode(data)


def continues(operation: Operation, before: Operation) -> bool:
    """Return whether `operation` must directly follow `before`, in the same entry.

    The hand-out of a PUT .. WAIT must directly follow its Put (spec/state-machine 4.7).
    """
    if type(operation) is sessions.Request:
        if type(before) is fragments.Fragment:
            return before.last and operation.part > 0
        return (
            operation.part > 0 and type(before) is sessions.Request and type(before.operation) in jobs.PUTS
            and (before.session, before.number) == (operation.session, operation.number)
        )
    if type(operation) is not jobs.Get:
        return False
    if type(before) not in jobs.PUTS and not (type(before) is fragments.Fragment and before.last):
        return False
    return operation.item_of_put or operation.item is not None


def name_of(operation: Operation) -> str:
    """Return the name of the operation for log messages; for a Request the name of the requested operation."""
    return type(operation.operation if isinstance(operation, sessions.Request) else operation).__name__
