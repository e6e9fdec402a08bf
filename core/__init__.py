"""The queue as a function of the log: no clock, no randomness, no input or output."""

from core.effects import Effects
from core.job import RunningJob
from core.machine import Applied, Machine, Totals
from core.operations import (
    CloneBegin,
    CloneChunk,
    CloneEnd,
    Done,
    Entry,
    Get,
    Later,
    Lead,
    Operation,
    Put,
    Return,
    Then,
    Tick,
    decode_entry,
    encode_entry,
)
from core.replies import (
    Accepted,
    Empty,
    Finished,
    Handed,
    InvalidSnapshot,
    NotFound,
    Reply,
    Stored,
)
from core.snapshot import SnapshotError

__all__ = [
    "Accepted",
    "Applied",
    "CloneBegin",
    "CloneChunk",
    "CloneEnd",
    "Done",
    "Effects",
    "Empty",
    "Entry",
    "Finished",
    "Get",
    "Handed",
    "InvalidSnapshot",
    "Later",
    "Lead",
    "Machine",
    "NotFound",
    "Operation",
    "Put",
    "Reply",
    "Return",
    "RunningJob",
    "SnapshotError",
    "Stored",
    "Then",
    "Tick",
    "Totals",
    "decode_entry",
    "encode_entry",
]
