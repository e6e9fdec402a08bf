"""The formats of a release in figures: what its entries, messages, calls and journal consist of.

    .venv/bin/python -m tests.upgrade.formats level1        records data/formats/level1.json

Recorded again only until the release; from then on what is recorded stays, and test_formats.py holds every later
program to it. Snapshots have recorded directories of their own (scenario.py).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct
from msgspec.inspect import type_info

from sockpqd.beanstalk import CallFailure, calls
from sockpqd.cluster import limits
from sockpqd.cluster.damage.rejoin import RejoinRecord
from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.journal_format import JournalRecord, body_crc, encode
from sockpqd.cluster.journal.journal_state import StateSummary
from sockpqd.cluster.wire import framing, messages
from sockpqd.core import FIRST_LEVEL, End, encode_operation
from sockpqd.core.handlers.dispatch import LEVELS
from sockpqd.core.ops.entry import ENTRY_FORMAT
from sockpqd.gateway.beanstalkd import remote
from tests.samples import OPERATIONS, forms

FORMATS = Path(__file__).parent / "data" / "formats"
JOURNAL_ID = b"journal."
FRAMED, FRAMED_TIMES = b"message", 3        # in pieces there are so many
KINDS = ("ENTRY", "TRUNCATE", "PREFIX", "CLEAR", "TERM", "VOTER", "STATE", "ACKNOWLEDGED")

Parts = dict[str, Any]


def described(level: int) -> Parts:
    """Return the formats of this program, with the operations up to this feature level."""
    known = {str(kind.__struct_config__.tag) for kind in OPERATIONS if LEVELS.get(kind, FIRST_LEVEL) <= level}
    return {
        "entry format": ENTRY_FORMAT,
        "wire format": messages.WIRE_FORMAT,
        "journal version": journal_format.VERSION,
        "operations": {str(tag): fields for tag, fields in sorted(operations().items()) if str(tag) in known},
        "samples": {tag: " ".join(found) for tag, found in samples_of_operations().items() if tag in known},
        "messages": {tag: encoded.hex() for tag, encoded in sorted(samples().items())},
        "calls": {tag: encoded.hex() for tag, encoded in sorted(samples_of_calls().items())},
        "outcomes": {tag: encoded.hex() for tag, encoded in sorted(samples_of_outcomes().items())},
        "frames": b"".join(frames_of_messages()).hex(),
        "rejoins": msgspec.json.encode(_sample(RejoinRecord)).decode(),
        "journal": frame().hex(),
    }


def operations() -> dict[int, list[str]]:
    """Return the fields of each operation in order, by its tag: an operation is an array on disk."""
    found = {}
    for operation in OPERATIONS:
        tag = operation.__struct_config__.tag
        assert isinstance(tag, int)
        found[tag] = list(operation.__struct_fields__)
    return found


def samples_of_operations() -> dict[str, list[str]]:
    """The bytes of each operation, plain and with each value of each field, as the first level has them; by its tag."""
    return {
        str(kind.__struct_config__.tag): [encode_operation(one, FIRST_LEVEL).hex() for one in forms(kind)]
        for kind in OPERATIONS
    }


def samples() -> dict[str, bytes]:
    """Return one message of each kind with a value in each of its fields, by its tag."""
    kinds = (messages.Hello, *get_args(messages.Message))
    return {str(kind.__struct_config__.tag): messages.encode(_sample(kind)) for kind in kinds}


def samples_of_calls() -> dict[str, bytes]:
    """Return the data of ForwardedCall, of each kind, by its tag: a read is named by the tags of the call in it."""
    request = remote.RemoteRequest(next(iter(forms(End))), 300, first=True)
    found = {str(request.__struct_config__.tag): remote.encode(request, FIRST_LEVEL)}
    for kind in get_args(calls.Lookup):
        read = remote.RemoteRead(_sample(kind))
        found[f"{read.__struct_config__.tag} {kind.__struct_config__.tag}"] = remote.encode(read, FIRST_LEVEL)
    return found


def samples_of_outcomes() -> dict[str, bytes]:
    """Return the data of CallOutcome, of each kind, by its tag; the reasons of a failure are named by their numbers."""
    kinds = (*get_args(calls.Result), remote.Retry, remote.SessionLost)
    found = {str(kind.__struct_config__.tag): remote.encode(_sample(kind), FIRST_LEVEL)
             for kind in kinds if kind is not type(None)}
    return found | {"nothing": remote.encode(None, FIRST_LEVEL)} | {
        f"failure {failure.value}": remote.encode(failure, FIRST_LEVEL) for failure in CallFailure}


def frames_of_messages() -> list[bytes]:
    """Return a message as it goes over the connection between two nodes, whole and then in pieces."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "PIECE_BYTES", len(FRAMED))
        return [framing.whole(FRAMED), *framing.pieces(FRAMED * FRAMED_TIMES)]


def _sample(kind: type[Struct]) -> Any:
    info = type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    values = [_value(field.type) for field in info.fields]
    if info.array_like:
        return kind(*values)
    return msgspec.convert({field.encode_name: value for field, value in zip(info.fields, values, strict=True)}
                           | {"type": kind.__struct_config__.tag}, kind)


def _value(kind: Any) -> Any:
    inspect = msgspec.inspect
    match kind:
        case inspect.UnionType():
            return _value(next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 300
        case inspect.FloatType():
            return 1.5
        case inspect.StrType():
            return "name"
        case inspect.BytesType():
            return b"bytes"
        case inspect.ListType() | inspect.VarTupleType():
            return [_value(kind.item_type)]
        case inspect.TupleType():
            return [_value(item) for item in kind.item_types]
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.StructType():
            return {field.encode_name: _value(field.type) for field in kind.fields}
        case inspect.DictType():
            return {_value(kind.key_type): _value(kind.value_type)}
    raise TypeError(kind)


def frame() -> bytes:
    """Return a frame of the journal with a record of each kind."""
    bodies = {
        "ENTRY": b"command", "TERM": b"n2", "ACKNOWLEDGED": b"n3",
        "STATE": StateSummary(1, 2, 0, 3, "n2", True, {"n3": 2}).pack(),
    }
    records = [
        JournalRecord(getattr(journal_format, kind), number, 1, body := bodies.get(kind, b""), body_crc(number, body))
        for number, kind in enumerate(KINDS)
    ]
    pieces, _ = encode(records, JOURNAL_ID, 1, 2)
    return b"".join(pieces)


if __name__ == "__main__":
    FORMATS.mkdir(exist_ok=True)
    formats = described(int(sys.argv[1].removeprefix("level")))
    (FORMATS / f"{sys.argv[1]}.json").write_text(json.dumps(formats, indent=1) + "\n", "utf-8")
