"""The record of a job that has ended."""

from __future__ import annotations

from msgspec import Struct

from sockpqd.core.ops.queues import EndState
from sockpqd.core.store.job import Extras, counts_after_attempt


class JobRecord(Struct, frozen=True, gc=False, array_like=True):
    """A job as it was when it ended, with its result. Pages hold it as an array of its fields."""

    number: int
    state: EndState
    ended_ms: int           # replicated time
    priority: int
    item: str | None
    data: bytes             # its headers and body
    attempts: int
    own: Extras             # as they were, often an object that jobs share; what lasts of them: `extras`
    result: bytes = b""
    error: bytes = b""
    started_ms: int | None = None   # when the last attempt began; None: as `own` says

    @property
    def kept_bytes(self) -> int:
        """The bytes that count for RETAINBYTES."""
        return len(self.data) + len(self.result) + len(self.error)

    @property
    def extras(self) -> Extras:
        """The part of the job's extras that its record keeps, with its last attempt."""
        own = self.own
        counts = own.counts
        if self.started_ms is not None and counts is not None:
            counts = counts_after_attempt(counts, self.started_ms)
        return Extras(
            own.key, own.tries, own.ttl_ms, None, None, own.origin, (), None, own.reason, own.group, None,
            own.lease_ms, counts, own.head,
        )
