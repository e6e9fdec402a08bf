"""A mirror in memory around the real machine, that says what it was given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sockpqd.cluster.api import Frame, MirrorPosition
from sockpqd.core import Machine, decode_entry


class FakeMirror:
    """Implements cluster.api.Mirror. `checkpoint`: what its position says of the chain, as (index, hash)."""

    def __init__(self) -> None:
        self.active = True
        self.halted: str | None = None
        self.origin: bytes | None = None        # the id of the cluster that it is a copy of
        self.machine = Machine()
        self.index = 0
        self.checkpoint = (0, b"")
        self.offers: list[list[int]] = []       # the indexes of frames
        self.installed: list[int] = []
        self.refuses = False
        self.objection: str | None = None       # to each snapshot,
        self.unusable = 0                       # of which so many came

    def position(self) -> MirrorPosition:
        """Implement cluster.api."""
        return MirrorPosition(self.index, *self.checkpoint)

    async def offer(self, frames: Sequence[Frame]) -> bool:
        """Implement cluster.api."""
        if not self.active or self.refuses:
            return False
        self.offers.append([frame.index for frame in frames])
        for frame in frames:
            assert frame.index > self.index
            entry = decode_entry(frame.data)
            self.machine.apply(frame.index, frame.now_ms, frame.seed, entry.operations)
            self.index = frame.index
        return True

    async def install(self, path: Path, index: int, chain: bytes) -> str | None:
        """Implement cluster.api."""
        if not self.active or self.refuses:
            return "this node no longer leads the replica"
        if self.objection is not None:
            self.unusable += 1
            return self.objection
        self.machine.restore([path.read_bytes()])
        assert self.machine.index == index
        self.index, self.checkpoint = index, (index, chain)
        self.installed.append(index)
        return None

    def bytes(self) -> bytes:
        """The state, to be compared."""
        return b"".join(self.machine.snapshot())
