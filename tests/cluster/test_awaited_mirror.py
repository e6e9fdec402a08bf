"""The mirror of a replica for coroutines: the outcome of a snapshot whose pieces get lost."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from sockpqd.cluster.mirror import awaited_mirror
from sockpqd.cluster.mirror.awaited_mirror import CUT, NOT_LEADING, AwaitedMirror
from sockpqd.cluster.mirror.mirroring import (
    NEWER,
    NOT_EMPTY,
    PROMOTED,
    REPLACED,
    UNREADABLE,
    Mirroring,
    MirrorOperation,
)
from sockpqd.core import InvalidSnapshot, MirrorChunk, Mirrored, NotYet, ReplicaRefused, Reply

INDEX = 7


class Log:
    """A log in memory that loses the outcome of some operations. `active`: as of the mirror."""

    def __init__(self, *lost: int) -> None:
        self.active = True
        self.lost = set(lost)           # counted from 0
        self.ends_with: int | None = None       # the operation at which this node leads no longer
        self.answers: dict[int, Reply] = {}     # to these operations, in place of the usual ones
        self.cuts: Path | None = None           # the file that loses its second half when the first operation comes
        self.proposed: list[MirrorOperation] = []
        self.data = b""
        self.size = 0

    def propose(self, operation: MirrorOperation, done: Callable[[Reply | None], None]) -> None:
        """Implement Mirroring."""
        number = len(self.proposed)
        self.proposed.append(operation)
        if number == self.ends_with:
            self.active = False
        if self.cuts is not None and not number:
            os.truncate(self.cuts, self.cuts.stat().st_size // 2)
        if number in self.lost:
            done(None)
            return
        if number in self.answers:
            done(self.answers[number])
            return
        assert isinstance(operation, MirrorChunk)
        if operation.total_bytes is not None:
            self.data, self.size = b"", operation.total_bytes
        elif operation.offset == len(self.data):
            self.data += operation.data
        done(Mirrored(INDEX if len(self.data) == self.size else 0))

    def objection(self, reply: Reply, index: int) -> str | None:
        """Judge as Mirroring does."""
        return Mirroring.objection(cast(Mirroring, self), reply, index)

    def _halt(self, why: str) -> str:
        self.active = False
        return why


def installed(log: Log, path: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
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
    assert installed(log, tmp_path / "snapshot", monkeypatch) is None
    assert log.data == b"123456789"
    begun = [one for one in log.proposed if isinstance(one, MirrorChunk) and one.total_bytes is not None]
    assert len(begun) == 1 + len(lost)


def test_a_snapshot_is_given_up_when_this_node_leads_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(2)
    log.ends_with = 2
    assert installed(log, tmp_path / "snapshot", monkeypatch) == NOT_LEADING
    assert len(log.proposed) == 3


@pytest.mark.parametrize(("number", "reply", "objection"), [
    (0, ReplicaRefused("promoted"), PROMOTED),
    (0, ReplicaRefused("not empty"), NOT_EMPTY),
    (1, Mirrored(INDEX - 1), None),
    (2, NotYet(), NEWER),
    (3, InvalidSnapshot(), UNREADABLE),
    (3, Mirrored(INDEX - 1), REPLACED),
])
def test_a_snapshot_that_does_not_become_the_mirror_has_a_reason(
    number: int, reply: Reply, objection: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log()
    log.answers = {number: reply}
    if objection is None:
        log.answers[3] = Mirrored(INDEX)
    assert installed(log, tmp_path / "snapshot", monkeypatch) == objection
    assert len(log.proposed) == (4 if objection is None else number + 1)


def test_a_file_that_becomes_shorter_is_no_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    log.cuts = tmp_path / "snapshot"
    assert installed(log, log.cuts, monkeypatch) == CUT
    assert log.data == b"1234"
    assert len(log.proposed) == 2
