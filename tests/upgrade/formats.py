"""The formats of a release in figures: what its entries, messages and journal consist of.

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
from msgspec import Struct
from msgspec.inspect import type_info

from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.journal_format import JournalRecord, body_crc, encode
from sockpqd.cluster.journal.journal_state import StateSummary
from sockpqd.cluster.wire import messages
from sockpqd.core import FIRST_LEVEL, encode_operation
from sockpqd.core.ops.entry import ENTRY_FORMAT
from tests.samples import OPERATIONS, forms

FORMATS = Path(__file__).parent / "data" / "formats"
JOURNAL_ID = b"journal."
KINDS = ("ENTRY", "TRUNCATE", "PREFIX", "CLEAR", "TERM", "VOTER", "STATE", "ACKNOWLEDGED")

Parts = dict[str, Any]


def described() -> Parts:
    """The formats of this program."""
    return {
        "entry format": ENTRY_FORMAT,
        "wire format": messages.WIRE_FORMAT,
        "journal version": journal_format.VERSION,
        "operations": {str(tag): fields for tag, fields in sorted(operations().items())},
        "samples": {tag: " ".join(found) for tag, found in samples_of_operations().items()},
        "messages": {tag: encoded.hex() for tag, encoded in sorted(samples().items())},
        "journal": frame().hex(),
    }


def operations() -> dict[int, list[str]]:
    """The fields of each operation in their order, by its tag: an operation is an array on disk."""
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
    """One message of each kind with something in all its fields, by its tag."""
    kinds = (messages.Hello, *get_args(messages.Message))
    return {str(kind.__struct_config__.tag): messages.encode(_sample(kind)) for kind in kinds}


def _sample(kind: type[Struct]) -> Any:
    info = type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    return msgspec.convert({field.encode_name: _value(field.type) for field in info.fields}
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
    """A frame of the journal with a record of each kind."""
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
    (FORMATS / f"{sys.argv[1]}.json").write_text(json.dumps(described(), indent=1) + "\n", "utf-8")
