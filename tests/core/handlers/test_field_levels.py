"""A field of a later release makes an operation one of its level, and is not written below that."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields, force_setattr

from sockpqd.core import Batch, Done, End, How, Put, Request, decode_entry, encode_entry, encode_operation
from sockpqd.core.handlers.dispatch import LEVELS, level_of
from sockpqd.core.levels import FEATURE_LEVEL, FIELD_LEVELS, FIRST_LEVEL
from sockpqd.core.ops import entry
from sockpqd.core.ops.entry import Operation
from tests.samples import forms

OPTIONS = [
    (kind, field.name) for kind in get_args(Operation) for field in fields(kind) if field.default is not NODEFAULT
]
NEXT = FEATURE_LEVEL + 1


@pytest.fixture(autouse=True)
def next_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "FEATURE_LEVEL", NEXT)


@pytest.mark.parametrize(("kind", "name"), OPTIONS)
def test_each_field_with_a_level_is_seen(kind: type[Any], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FIELD_LEVELS, (kind.__name__, name), NEXT)
    operation = next(forms(kind))
    assert level_of(operation) == LEVELS.get(kind, FIRST_LEVEL)
    force_setattr(operation, name, object())
    assert level_of(operation) == NEXT


@pytest.mark.parametrize(("kind", "name"), OPTIONS)
def test_each_field_with_a_level_is_left_out_below_it(
    kind: type[Any], name: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    operation = next(forms(kind))
    before = msgspec.msgpack.decode(encode_operation(operation))
    monkeypatch.setitem(FIELD_LEVELS, (kind.__name__, name), NEXT)
    at = kind.__struct_fields__.index(name) + 1         # behind the tag
    assert msgspec.msgpack.decode(encode_operation(operation, FEATURE_LEVEL)) == before[:at] + before[at + 1:]
    assert msgspec.msgpack.decode(encode_operation(operation, NEXT)) == before


def test_it_is_seen_and_left_out_inside_another_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FIELD_LEVELS, ("Put", "new_item"), NEXT)
    monkeypatch.setitem(FIELD_LEVELS, ("End", End.__struct_fields__[-1]), NEXT)
    plain, new = Put("q", 0, b"\xff"), Put("q", 0, b"", None, True)
    assert level_of(Request(1, 1, b"", 0, False, new)) == NEXT
    assert level_of(Request(1, 1, b"", 0, False, plain)) == FIRST_LEVEL
    assert level_of(Done(1)) == FIRST_LEVEL
    operations: list[Operation] = [Batch((plain, End((1, 2), How.LATER, reason="why")), atomic=True), Done(7)]
    written = encode_entry(1, 2, operations, FEATURE_LEVEL)
    assert decode_entry(written).operations == operations       # by their defaults
    fields_then, fields_now = (
        [len(part) for part in msgspec.msgpack.decode(data)[3][0][1]]
        for data in (written, encode_entry(1, 2, operations, NEXT))
    )
    assert fields_then == [count - 1 for count in fields_now]


def test_all_levels_are_of_fields_at_the_ends_of_operations() -> None:
    assert FIELD_LEVELS.keys() <= {(kind.__name__, name) for kind, name in OPTIONS}
    for kind in get_args(Operation):
        levels = [FIELD_LEVELS.get((kind.__name__, name), FIRST_LEVEL) for name in kind.__struct_fields__]
        assert levels == sorted(levels)
