"""What an entry brought about, for those who wait for it on the node that owns the clients."""

from __future__ import annotations

from msgspec import Struct, field


class Effects(Struct):
    """Where something happened. Dicts without values: sets that keep the order of occurrence."""

    # Queues in which a job became ready: put, requeued, returned or expired; and its item, when it has one.
    ready: dict[str, None] = field(default_factory=dict)
    ready_items: dict[tuple[str, str], None] = field(default_factory=dict)
    # Queues in which a running job ended for good: DONE, or expiry THEN DONE.
    ended: dict[str, None] = field(default_factory=dict)
    # A CLONE replaced everything.
    restored: bool = False

    def job_ready(self, queue: str, item: str | None) -> None:
        """A job of `queue` became ready."""
        self.ready[queue] = None
        if item is not None:
            self.ready_items[queue, item] = None
