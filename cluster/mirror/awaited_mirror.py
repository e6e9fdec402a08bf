"""The mirror of a replica for coroutines: implements cluster.api.Mirror (spec/region 5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from sockpqd.cluster import limits
from sockpqd.cluster.api import Frame, MirrorPosition
from sockpqd.cluster.mirror.mirroring import Mirroring, MirrorOperation
from sockpqd.core import MirrorChunk, Reply

AGAIN_S = 0.5           # before a snapshot is logged again from its beginning

NOT_LEADING = "this node no longer leads the replica"
CUT = "the file with the snapshot of the origin became shorter while it was read"

_Value = TypeVar("_Value")


class _Lost(Exception):
    """The outcome of an operation is unknown."""


class AwaitedMirror:
    """Implements api.Mirror on the leader's part of a node; `wake` lets the node take a turn."""

    def __init__(self, mirroring: Mirroring, wake: Callable[[], None]) -> None:
        self._mirroring = mirroring
        self._wake = wake

    @property
    def active(self) -> bool:
        return self._mirroring.active

    @property
    def halted(self) -> str | None:
        return self._mirroring.halted

    @property
    def origin(self) -> bytes | None:
        return self._mirroring.origin

    def position(self) -> MirrorPosition:
        return self._mirroring.position()

    async def offer(self, frames: Sequence[Frame]) -> bool:
        outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._mirroring.offer(frames, partial(_settle, outcome))
        self._wake()
        return await outcome

    async def install(self, path: Path, index: int, chain: bytes) -> str | None:
        file = await asyncio.to_thread(path.open, "rb")
        try:
            while self.active:
                with suppress(_Lost):
                    return await self._install(file, index, chain)
                await asyncio.sleep(AGAIN_S)
            return NOT_LEADING
        finally:
            await asyncio.to_thread(file.close)

    async def _install(self, file: BinaryIO, index: int, chain: bytes) -> str | None:
        """Log the snapshot once, from its beginning; returns why it is not the mirror then. Raises _Lost."""
        total_bytes = await asyncio.to_thread(file.seek, 0, 2)
        await asyncio.to_thread(file.seek, 0)
        begin = MirrorChunk(index, 0, b"", total_bytes, chain)
        objection = self._mirroring.objection(await self._outcome(begin), 0)
        offset = 0
        while objection is None and offset < total_bytes:
            data = await asyncio.to_thread(file.read, limits.MIRROR_PORTION_BYTES)
            if not data:
                return CUT
            reply = await self._outcome(MirrorChunk(index, offset, data))
            offset += len(data)
            objection = self._mirroring.objection(reply, index if offset == total_bytes else 0)
        return objection

    async def _outcome(self, operation: MirrorOperation) -> Reply:
        """Execute an operation. Raises _Lost if it is unknown whether it was executed."""
        outcome: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
        self._mirroring.propose(operation, partial(_settle, outcome))
        self._wake()
        reply = await outcome
        if reply is None:
            raise _Lost
        return reply


def _settle(outcome: asyncio.Future[_Value], value: _Value) -> None:
    if not outcome.done():
        outcome.set_result(value)
