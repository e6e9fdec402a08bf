"""When a lease or a session ends: at its deadline, which a new leader may put off once."""

from __future__ import annotations

BUCKET_MS = 16          # it ends when the 16 ms in which its deadline lies are over


class Deadline:
    """Of a lease, or of a session since its last use. None: it does not end by itself."""

    __slots__ = ("_graced", "ends_ms")

    def __init__(self, ends_ms: int | None) -> None:
        self.ends_ms = ends_ms
        self._graced = False

    def grant(self, until_ms: int, *, once: bool = True) -> None:
        """The failover grace: `once` per hand-out, and per use of a session; or that of a Resume."""
        if self.ends_ms is not None and self.ends_ms < until_ms and not (once and self._graced):
            self.ends_ms, self._graced = until_ms, self._graced or once

    def used(self, ends_ms: int) -> None:
        """It counts anew, and there may be a grace again."""
        assert self.ends_ms is not None
        self.ends_ms, self._graced = max(self.ends_ms, ends_ms), False

    def over(self, clock_ms: int) -> bool:
        """Has it passed?"""
        return self.ends_ms is not None and self.ends_ms // BUCKET_MS < clock_ms // BUCKET_MS
