"""The effects of an entry, for the blocked clients of the node that serves."""

from __future__ import annotations

from msgspec import Struct, field


class Effects(Struct):
    """Queues and items to look at. The dicts have no values: they are sets that keep the order of occurrence."""

    # Queues in which a job became READY, or one that was blocked by ITEMLIMIT became eligible; and its item, if any.
    ready: dict[str, None] = field(default_factory=dict)
    ready_items: dict[tuple[str, str], None] = field(default_factory=dict)
    # Queues that may hand out more than before (LIMIT, PAUSE).
    reopened: dict[str, None] = field(default_factory=dict)
    # Queues, and pairs (queue, item), whose last unfinished job has ended.
    ended: dict[str, None] = field(default_factory=dict)
    ended_items: dict[tuple[str, str], None] = field(default_factory=dict)
    # A CLONE replaced everything.
    restored: bool = False

    def add(self, other: Effects) -> None:
        """Add effects that came after these."""
        self.ready.update(other.ready)
        self.ready_items.update(other.ready_items)
        self.reopened.update(other.reopened)
        self.ended.update(other.ended)
        self.ended_items.update(other.ended_items)
        self.restored |= other.restored
