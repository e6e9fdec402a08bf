"""Counts what a relay does, for its log, its metrics and tests."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock

from sockpq_outbox.rows import Counts

NONE = Counts(0, 0, 0, None)


@dataclass
class Statistics:
    """Counters since the start, and the state of the table when it was last looked at. Safe to read in any thread."""

    put: int = 0
    batches: int = 0
    failed: int = 0
    takeovers: int = 0
    errors: int = 0
    holds: bool = False
    counts: Counts = NONE
    blocked: tuple[str, ...] = ()
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def lag_s(self) -> float:
        """The age of the oldest row that waits, in seconds."""
        oldest = self.counts.oldest
        return 0.0 if oldest is None else max(time.time() - oldest, 0.0)

    def count(self, *, put: int = 0, batches: int = 0, failed: int = 0, takeovers: int = 0, errors: int = 0) -> None:
        """Add to the counters; callable from any thread."""
        with self._lock:
            self.put += put
            self.batches += batches
            self.failed += failed
            self.takeovers += takeovers
            self.errors += errors
