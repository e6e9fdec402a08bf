"""The mirror of a replica for coroutines: the outcome of a snapshot whose pieces get lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from sockpqd.cluster.mirror import awaited_mirror
from sockpqd.cluster.mirror.awaited_mirror import AwaitedMirror
from sockpqd.cluster.mirror.mirroring import Mirroring, MirrorOperation
from sockpqd.core import MirrorChunk, Mirrored, Reply

INDEX = 7


class Log:
    """A log in memory that loses the outcome of some operations. `active`: as of the mirror."""

    def __init__(self, *lost: int) -> None:
        self.active = True
        self.lost = set(lost)           # counted from 0
        self.ends_with: int | None = None       # the operation at which this node leads no longer
        self.proposed: list[MirrorOperation] = []
        self.data = b""
        self.size = 0

    def propose(self, operation: MirrorOperation, done: Callable[[Reply | None], None]) -> None:
        """Implement Mirroring."""
        number = len(self.proposed)
        self.proposed.append(operation)
        if number == self.ends_with:
            self.active = False
        if number in self.lost:
            done(None)
            return
        assert isinstance(operation, MirrorChunk)
        if operation.total_bytes is not None:
            self.data, self.size = b"", operation.total_bytes
        elif operation.offset == len(self.data):
            self.data += operation.data
        done(Mirrored(INDEX if len(self.data) == self.size else 0))

    def judge(self, reply: Reply | None, index: int) -> bool:
        """Implement Mirroring."""
        return isinstance(reply, Mirrored) and reply.index >= index


def installed(log: Log, path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Install a snapshot of three pieces."""
    monkeypatch.setattr(awaited_mirror.limits, "MIRROR_PORTION_BYTES", 4)
    monkeypatch.setattr(awaited_mirror, "AGAIN_S", 0.001)
    path.write_bytes(b"123456789")
    mirror = AwaitedMirror(cast(Mirroring, log), lambda: None)
    return asyncio.run(mirror.install(path, INDEX, b"hash"))


@pytest.mark.parametrize("lost", [(), (0,), (2,), (3,), (1, 4, 8)])
def test_a_snapshot_begins_again_from_its_file_when_an_outcome_is_lost(
    lost: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log(*lost)
    assert installed(log, tmp_path / "snapshot", monkeypatch)
    assert log.data == b"123456789"
    begun = [one for one in log.proposed if isinstance(one, MirrorChunk) and one.total_bytes is not None]
    assert len(begun) == 1 + len(lost)


def test_a_snapshot_is_given_up_when_this_node_leads_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(2)
    log.ends_with = 2
    assert not installed(log, tmp_path / "snapshot", monkeypatch)
    assert len(log.proposed) == 3
