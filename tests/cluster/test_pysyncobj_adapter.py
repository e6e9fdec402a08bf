"""What is put into the log is what the library itself would put there."""

from __future__ import annotations

import re
from pathlib import Path

import msgpack
import pytest

from sockpqd.cluster.raft import pysyncobj_adapter

METHOD = 3


@pytest.mark.parametrize("length", [0, 1, 255, 256, 65_535, 65_536, 1 << 20])
def test_a_call_is_written_and_read_as_msgpack_does(length: int) -> None:
    data = bytes(range(256)) * (length // 256) + bytes(length % 256)
    call = pysyncobj_adapter._call_head(METHOD, length) + data
    assert call == msgpack.packb([METHOD, [data]])
    method, (argument,) = pysyncobj_adapter._loads(call)
    assert (method, argument) == (METHOD, data)


@pytest.mark.parametrize("value", [
    None, 7, (7, (b"data",), {}), (7, ("text",)), (7, (b"data", b"more")), "", (300, (b"",)),
])
def test_whatever_else_the_library_keeps_comes_back(value: object) -> None:
    assert pysyncobj_adapter._loads(pysyncobj_adapter._dumps(value)) == value


@pytest.mark.parametrize("length", [1, 300, 70_000])
def test_a_call_that_was_cut_or_made_longer_is_no_call(length: int) -> None:
    call = pysyncobj_adapter._call_head(METHOD, length) + bytes(length)
    with pytest.raises(ValueError, match="incomplete"):
        pysyncobj_adapter._loads(call[:-1])
    with pytest.raises(ValueError, match="extra"):
        pysyncobj_adapter._loads(call + b"\0")


def test_the_private_names_of_the_library_that_are_used_are_documented() -> None:
    root = Path(__file__).parents[2]
    used = {
        path.name: set(re.findall(r"(?:_SyncObj|_field\(\")__(\w+)", path.read_text()))
        for path in sorted((root / "cluster").rglob("*.py"))
    }
    (row,) = [line for line in (root / "docs/ARCHITECTURE.md").read_text().splitlines()
              if line.startswith("| nothing it offers does a single step")]
    assert {name for name, names in used.items() if names} == {"pysyncobj_adapter.py"}
    assert {name for name in used["pysyncobj_adapter.py"] if f"`{name}`" not in row} == set()
