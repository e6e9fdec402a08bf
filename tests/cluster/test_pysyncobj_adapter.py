"""What is put into the log is what the library itself would put there."""

from __future__ import annotations

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
