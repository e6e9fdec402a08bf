"""Numbers for what happens in a run: all that its digest has of words.

The digest of a seed must survive a renaming in the product, so it is made of the numbers in these tables, of numbers
that the run produced, and of bytes whose layout is a format: messages, log entries and snapshots. Names of classes and
modules, reprs, and texts of errors are for readers only. Numbers are never reused: digests are compared across commits.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import msgspec
from msgspec import Struct

from sockpqd import core
from sockpqd.core import Operation, Reply


class Kind(IntEnum):
    """The subjects of the records of the digest."""

    MESSAGE = 1             # sent
    CONNECTED = 2
    ENTRY = 3               # applied by one node
    STATE = 4               # of one node, after an entry
    ANSWER = 5              # to a client or an operator
    COMMAND = 6             # of an operator: it has been answered
    FAULT = 7
    STARTED = 8
    KILLED = 9
    LOST_POWER = 10
    REFUSED = 11            # a running node found damage
    STOPPED = 12            # by an error of its disk
    SERVES = 13
    SERVES_NO_MORE = 14
    LEADS = 15
    RETIRED = 16            # a removed node was stopped
    FAULTS_STOP = 17
    WELL = 18
    END = 19
    REJOINED = 20           # a node has set its damaged files aside
    PUT_BACK = 21           # a node has an older copy of its files
    TOO_OLD = 22            # a node stops at a feature level that it does not know


FAULTS = {
    "script": 0,            # of a scenario: it has reached its decisive point
    "connection lost": 1,
    "partition": 2,
    "one-way": 3,
    "bridge": 4,
    "isolated leader": 5,
    "random cuts": 6,
    "slow link": 7,
    "narrow link": 8,
    "deposed leader": 9,
    "crash": 10,
    "power loss": 11,
    "crash at a step": 12,
    "pause": 13,
    "clock jump": 14,
    "offline": 15,
    "snapshot": 16,
    "slow disk": 17,
    "failed fsync": 18,
    "full disk": 19,
    "full disks": 20,
    "damage": 21,
    "wiped disk": 22,
    "add node": 23,
    "add again": 24,
    "remove node": 25,
    "transfer": 26,
    "service offline": 27,
    "older copy": 28,
    "other release": 29,
    "twin": 30,
    "damaged pages": 31,
    "half-open": 32,
}

OUTCOMES = {"open": 0, "applied": 1, "refused": 2, "unknown": 3, "lost": 4}

# Replies have no numbers of their own: neither the log nor a message carries them.
REPLIES: dict[type[Any], int] = {
    core.Stored: 1,
    core.StoredNumber: 55,
    core.Meta: 2,
    core.Handed: 3,
    core.HandedMany: 4,
    core.Empty: 5,
    core.Finished: 6,
    core.Rearmed: 7,
    core.Leased: 8,
    core.JobExists: 9,
    core.JobIgnored: 10,
    core.IgnoredNumber: 99,
    core.JobReplaced: 11,
    core.JobRunning: 12,
    core.QueueNotFound: 13,
    core.QueueExists: 14,
    core.QueueNotEmpty: 15,
    core.QueueFull: 16,
    core.QueuePaused: 17,
    core.DataTooLarge: 18,
    core.TooManyQueues: 19,
    core.Removed: 20,
    core.Results: 21,
    core.Aborted: 22,
    core.Accepted: 23,
    core.NotFound: 24,
    core.InvalidSnapshot: 25,
    core.Joined: 26,
    core.NodeExists: 27,
    core.UnknownNode: 28,
    core.LastNode: 29,
    core.ChangeInProgress: 30,
    core.SessionOpened: 31,
    core.TooManySessions: 32,
    core.SessionAttached: 33,
    core.SessionNotFound: 34,
    core.RequestMismatch: 35,
    core.RequestTooOld: 36,
    core.UserNotFound: 37,
    core.TooManyUsers: 38,
    core.PulseExists: 39,
    core.PulseNotFound: 40,
    core.PulseInUse: 41,
    core.TooManyPulses: 42,
    core.BadSetting: 43,
    core.TicketNotFound: 44,
    core.Granted: 45,
    core.Turn: 46,
    core.Spread: 47,
    core.TopicNotFound: 48,
    core.BindingNotFound: 49,
    core.TooManyBindings: 50,
    core.WorkerBounds: 51,
    core.WorkerNotFound: 52,
    core.TooManyWorkers: 53,
    core.NotYet: 54,
    core.FragmentsMissing: 56,
    core.WorkerExists: 57,
    core.DataDropped: 58,
    core.JobAwaited: 59,
    core.JobEnded: 60,
    core.JobDropped: 61,
    core.ItemNotFound: 62,
    core.ItemNotHeld: 63,
    core.TooManyHolds: 64,
    core.ItemCancelled: 65,
    core.Moved: 70,
    core.Elsewhere: 71,
    core.MapChanged: 72,
    core.Mirrored: 73,
    core.ReplicaRefused: 74,
    core.ServiceFenced: 75,
    core.GroupNotFound: 171,
    core.TooManyGroups: 172,
    core.GroupDecided: 173,
}

_encode = msgspec.msgpack.Encoder().encode


def node_number(name: str) -> int:
    """Return 3 for "n3"."""
    return int(name[1:])


def operations_bytes(operations: list[Operation]) -> bytes:
    """Encode operations as in the log: the tag of an operation is its number there."""
    return core.encode_entry(0, 0, operations)


def replies_bytes(replies: list[Reply]) -> bytes:
    """Encode each reply as its number and its fields in order, without their names."""
    return _encode([_plain(reply) for reply in replies])


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return [REPLIES[type(value)], *map(_plain, msgspec.structs.astuple(value))]
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return None if value is msgspec.UNSET else value
