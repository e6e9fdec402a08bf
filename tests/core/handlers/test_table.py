"""The costs of operations."""

from __future__ import annotations

import types
from enum import IntEnum
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sockpqd.core import (
    OPERATION_BYTES_MAX,
    OPERATION_WORK_MAX,
    Batch,
    CloneChunk,
    End,
    Fragment,
    Get,
    GetWith,
    How,
    Kick,
    MirrorEntries,
    Operation,
    Put,
    PutWith,
    Request,
    Requested,
    UnbindQueue,
    cost,
    encode_entry,
)
from sockpqd.core.handlers.cost import JOB
from sockpqd.core.handlers.dispatch import ATOMIC, REQUESTED
from sockpqd.core.handlers.table import HANDLERS
from sockpqd.core.ops.jobs import Atomic
from tests.core.helpers.logs import LAW

ENTRY_BYTES = 32        # of an entry without operations

_letters = "abcXYZ019_.:@-"
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(_letters, max_size=300),
    bytes: st.binary(max_size=300),
    int: st.integers(-(2**63), 2**64 - 1),
    bool: st.booleans(),
    type(None): st.none(),
}


@cache
def anything(kind: Any) -> st.SearchStrategy[Any]:
    """Return values of this type, among them its longest forms."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, types.UnionType):
        return st.one_of([anything(one) for one in get_args(kind)])
    if get_origin(kind) is tuple and Ellipsis not in get_args(kind):
        return st.tuples(*map(anything, get_args(kind)))
    if get_origin(kind) is tuple:
        return st.lists(anything(get_args(kind)[0]), max_size=20).map(tuple)
    if issubclass(kind, IntEnum):
        return st.sampled_from(kind)
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: anything(hints[name]) for name in kind.__struct_fields__})


@pytest.mark.parametrize("kind", get_args(Operation), ids=lambda kind: kind.__name__)
@settings(LAW, max_examples=50)
@given(drawn=st.data())
def test_no_operation_is_longer_than_it_says(kind: type[Any], drawn: st.DataObject) -> None:
    operation = drawn.draw(anything(kind))
    size, work = cost(operation)
    assert len(msgspec.msgpack.encode(operation)) <= size
    assert work >= 0


@LAW
@given(st.lists(st.one_of([anything(kind) for kind in (Put, PutWith, Get, Request, Batch)]), max_size=20))
def test_no_entry_is_longer_than_its_operations_say(operations: list[Operation]) -> None:
    assert len(encode_entry(2**63, 2**64 - 1, operations)) <= ENTRY_BYTES + sum(cost(one)[0] for one in operations)


def test_the_table_has_every_operation_and_agrees_with_the_types() -> None:
    assert set(HANDLERS) == set(get_args(Operation))
    assert set(ATOMIC) == set(get_args(Atomic))
    assert set(REQUESTED) == set(get_args(Requested))


def test_names_items_ids_and_jobs_are_work() -> None:
    names = tuple(f"q{number}" for number in range(12_000))
    assert cost(Get(names))[1] > 12_000
    assert cost(PutWith(Put("q", 0, b""), after=names))[1] > 12_000
    assert cost(End(tuple(range(3000)), How.DONE))[1] == 3000 * JOB
    assert cost(Batch((Put("q", 0, b""),) * 3000, False))[1] >= 3000 * JOB
    assert cost(GetWith(Get(None), 3000))[1] >= 3000 * JOB
    assert cost(GetWith(Get(None), 10**9))[1] <= OPERATION_WORK_MAX + JOB
    assert cost(Kick("q", -1))[1] == 0
    assert cost(CloneChunk(1, bytes(100 * 300)))[1] > 300 * JOB
    assert cost(CloneChunk(1, bytes(100 << 20)))[1] == OPERATION_WORK_MAX


@pytest.mark.parametrize(("part", "whole"), [
    (Fragment(1, 0, b"x"), Fragment(1, 0, b"x", last=True)), (CloneChunk(1, b"x"), CloneChunk(1, b"x", last=True)),
    (MirrorEntries(0, (), last=False), MirrorEntries(0, ())), (UnbindQueue("t", "q"), UnbindQueue("t", None)),
], ids=["fragments", "a CLONE", "a frame", "the bindings of a topic"])
def test_what_may_be_any_amount_of_work_has_an_entry_of_its_own(part: Operation, whole: Operation) -> None:
    assert cost(part)[1] <= 2 * JOB
    assert cost(whole)[1] == OPERATION_WORK_MAX


def test_the_largest_job_can_be_put() -> None:
    put = Put("q" * 255, 0, bytes(8 << 20), "i" * 255)
    assert cost(PutWith(put, after=("x" * 255,) * 100))[0] < OPERATION_BYTES_MAX
