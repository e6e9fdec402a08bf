"""The record of a job that has ended."""

from __future__ import annotations

from msgspec import Struct

from sockpqd.core.ops.queues import EndState
from sockpqd.core.store.job import Extras


class JobRecord(Struct, frozen=True, gc=False, array_like=True):
    """A job as it was when it ended, with its result. array_like: how pages are encoded."""

    number: int
    state: EndState
    ended_ms: int           # replicated time
    priority: int
    item: str | None
    data: bytes             # its headers and body
    attempts: int
    extras: Extras
    result: bytes = b""
    error: bytes = b""

    @property
    def kept_bytes(self) -> int:
        """The bytes that count for RETAINBYTES."""
        return len(self.data) + len(self.result) + len(self.error)
