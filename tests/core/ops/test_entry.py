"""Entries of the log as bytes: what stands on disks and goes between nodes of different versions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sockpqd.core import (
    AttachSession,
    Done,
    Due,
    Fragment,
    Get,
    GetWith,
    Lead,
    OldEntry,
    OpenSession,
    Operation,
    Put,
    PutWith,
    QueueChange,
    Request,
    Resume,
    Selector,
    SwitchService,
    Then,
    Tick,
    continues,
    decode_entry,
    encode_entry,
    name_of,
)
from sockpqd.core.ops.entry import ENTRY_FORMAT, Entry
from tests.samples import OPERATIONS, SAMPLES, forms


def entry_of(form: list[object]) -> bytes:
    """Return an entry with one operation of this form."""
    return msgspec.msgpack.encode([ENTRY_FORMAT, 1_700_000_000_000, 2**64 - 1, [form]])


@pytest.mark.parametrize("kind", OPERATIONS, ids=lambda kind: kind.__name__)
def test_an_operation_is_its_tag_and_its_fields_whatever_their_values(kind: type[Any]) -> None:
    """tests/upgrade/test_formats.py holds the bytes to those of releases."""
    for operation in forms(kind):
        form = [kind.__struct_config__.tag, *map(plain, msgspec.structs.astuple(operation))]
        assert encode_entry(1_700_000_000_000, 2**64 - 1, [operation]) == entry_of(form)
        assert decode_entry(entry_of(form)).operations == [operation]


def plain(value: Any) -> Any:
    """Return structs as plain values."""
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if not isinstance(value, msgspec.Struct):
        return value
    tag = type(value).__struct_config__.tag
    return [*([] if tag is None else [tag]), *map(plain, msgspec.structs.astuple(value))]


def test_there_are_samples_of_each_operation_and_each_field() -> None:
    assert SAMPLES.keys() >= {*OPERATIONS}
    assert {kind: set(found) for kind, found in SAMPLES.items()} == {
        kind: set(kind.__struct_fields__) for kind in SAMPLES
    }


def test_lead_of_an_older_version_tells_no_addresses_and_no_silence() -> None:
    form: list[object] = [7, "a", 7, ["a", "b"], b"id", 9, 2]
    assert decode_entry(entry_of(form)).operations == [Lead("a", 7, ("a", "b"), b"id", 9, Then.DONE, (), 0)]


def test_get_of_an_older_version_is_bound_to_no_session() -> None:
    form: list[object] = [2, ["q"], 500, 2, "x", True]
    assert decode_entry(entry_of(form)).operations == [Get(("q",), 500, Then.DONE, "x", True, None)]


def test_sessions_of_an_older_version_are_nobodys() -> None:
    assert decode_entry(entry_of([15, 7, 900])).operations == [OpenSession(7, 900)]
    assert decode_entry(entry_of([16, 12, 7])).operations == [AttachSession(12, 7)]


def test_fields_that_a_newer_version_adds_are_refused() -> None:
    """All of an entry, at any depth: a replica that executed it without them would differ from the others."""
    kinds: list[msgspec.inspect.StructType] = []
    waiting: list[object] = [msgspec.inspect.type_info(Entry)]
    while waiting:
        found = waiting.pop()
        if isinstance(found, msgspec.inspect.StructType):
            if found in kinds:
                continue
            kinds.append(found)
            waiting.extend(field.type for field in found.fields)
        elif isinstance(found, msgspec.inspect.UnionType):
            waiting.extend(found.types)
        elif isinstance(found, msgspec.inspect.ListType | msgspec.inspect.VarTupleType):
            waiting.append(found.item_type)
    assert {kind.cls for kind in kinds} >= {*Operation.__args__, Selector, QueueChange, Due}
    assert [kind.cls for kind in kinds if not (kind.forbid_unknown_fields and kind.array_like)] == []
    with pytest.raises(msgspec.ValidationError, match="at most length"):
        decode_entry(entry_of([11, "a", 1, 4, "h:1", "h:2", "new"]))


@pytest.mark.parametrize("form", [
    [22, "a"], [20, "a"], [20, "a", ["put", "key"]], [21, 1], [15, 1, 1, 1],
    [11, "a"], [11, "a", 3], [11, "a", 1, "4"], [14, 1], [11, None, 2, 1], [15, "a", 1], [16, 1], [18, None], [],
    [19, 1, 2, b"d", 0, False, [5, 1]],
    [19, 1, 2, b"d", 0, False, [19, 1, 2, b"d", 0, False, [3, 7]]],
    [19, 1, 2, "d", 0, False, [3, 7]],
])
def test_unknown_or_malformed_operation_is_refused(form: list[object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_entry(entry_of(form))


@pytest.mark.parametrize("number", [1, 4])
def test_an_entry_of_another_format_is_refused_with_its_number_and_ours(number: int) -> None:
    never = ", which no release ever wrote" if number == 1 else ""
    with pytest.raises(ValueError, match=rf"format {number}{never}; this version reads format 3$") as raised:
        decode_entry(msgspec.msgpack.encode([number, 2, 3, [[3, 7]]]))
    assert not isinstance(raised.value, OldEntry)


CANDIDATE = 2       # the format of 1.0.0rc1


@pytest.mark.parametrize("operation", [Tick(), Lead("a", 7, ("a",), b"id", 9), Resume(30), SwitchService(False)])
def test_what_a_cluster_logs_by_itself_is_read_of_the_release_candidate_too(operation: Operation) -> None:
    """When its nodes are stopped one after the other, the others elect leaders behind the last snapshot."""
    data = msgspec.msgpack.encode([CANDIDATE, 1, 2, [operation]])
    assert decode_entry(data).operations == [operation]
    assert decode_entry(memoryview(data)).operations == [operation]         # type: ignore[arg-type]


@pytest.mark.parametrize("operations", [[[3, 7]], [[6], [1, "q", 0, b""]], [[32, 7]], [[24, 7]]], ids=str)
def test_other_operations_of_the_release_candidate_are_refused_as_its(operations: list[list[object]]) -> None:
    """Whether this format has them, had them, or has others with these numbers."""
    data = msgspec.msgpack.encode([CANDIDATE, 1, 2, operations])
    for form in (data, memoryview(data)):
        with pytest.raises(OldEntry, match=r"format 2; this version reads format 3$"):
            decode_entry(form)          # type: ignore[arg-type]


PUT, WITH = Put("q", 0, b""), PutWith(Put("q", 0, b""), ttl_ms=5)


@pytest.mark.parametrize(("operation", "before", "expected"), [
    (Get(("o",), item_of_put=True), PUT, True),
    (Get(("o",), item="i"), WITH, True),
    (Get(("o",)), PUT, False),
    (Get(("o",), item_of_put=True), Done(1), False),
    (GetWith(Get(("o",), item_of_put=True)), PUT, False),
    (Request(1, 2, b"d", 1, True, Get(("o",), item_of_put=True)), Request(1, 2, b"d", 0, False, PUT), True),
    (Request(1, 2, b"d", 0, True, Get(("o",), item_of_put=True)), Request(1, 2, b"d", 0, False, PUT), False),
    (Request(1, 2, b"d", 1, True, Get(("o",), item_of_put=True)), PUT, False),
    (Request(1, 2, b"d", 1, True, Get(("o",), item_of_put=True)), Request(1, 2, b"d", 0, False, Done(1)), False),
    (Request(1, 3, b"d", 1, True, Get(("o",), item_of_put=True)), Request(1, 2, b"d", 0, False, PUT), False),
    (Request(4, 2, b"d", 1, True, Get(("o",), item_of_put=True)), Request(1, 2, b"d", 0, False, PUT), False),
    (Get(("o",), item_of_put=True), Fragment(1, 9, b"t", last=True), True),
    (Get(("o",), item_of_put=True), Fragment(1, 0, b"pu"), False),
    (Request(1, 2, b"d", 1, True, Get(("o",), item_of_put=True)), Fragment(1, 9, b"t", last=True), True),
    (Request(1, 2, b"d", 1, True, Get(("o",), item_of_put=True)), Fragment(1, 0, b"pu"), False),
])
def test_the_hand_out_of_a_put_wait_stands_directly_behind_its_put(
    operation: Operation, before: Operation, expected: bool,
) -> None:
    assert continues(operation, before) is expected


def test_an_operation_is_called_by_what_it_does() -> None:
    assert name_of(PUT) == name_of(Request(1, 2, b"d", 0, False, PUT)) == "Put"


def test_a_put_with_options_begins_with_three_bytes() -> None:
    """An array of more than 15 elements, the tag among them, has such a header; the next one is needed above 65,535."""
    assert len(WITH.__struct_fields__) == 16
    assert msgspec.msgpack.encode(WITH)[:4] == bytes([0xDC, 0, 17, 22])
