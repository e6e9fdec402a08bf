"""When a lease or a session ends: at its deadline, which a new leader may put off once."""

from __future__ import annotations

BUCKET_MS = 16          # it ends when the 16 ms in which its deadline lies are over


class Deadline:
    """Of a lease, or of a session since its last use. None: it does not end by itself.

    `length_ms` of a lease: what a new leader grants it at most, beyond the silence before.
    """

    __slots__ = ("_graced", "_length_ms", "ends_ms")

    def __init__(self, ends_ms: int | None, length_ms: int | None = None) -> None:
        self.ends_ms = ends_ms
        self._length_ms = length_ms
        self._graced = False

    def lead(self, clock_ms: int, grace_ms: int, silence_ms: int) -> None:
        """A new leader begins, after a silence of which it knows."""
        length_ms = grace_ms if self._length_ms is None else min(grace_ms, self._length_ms)
        self.grant(clock_ms + max(0, min(silence_ms, grace_ms)) + length_ms)

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
