"""What an entry brought about, for those who wait for it on the node that owns the clients."""

from __future__ import annotations

from msgspec import Struct, field


class Effects(Struct):
    """Where something happened. Dicts without values: sets that keep the order of occurrence."""

    # Queues in which a job became ready, or one of an item that was withheld (ITEMLIMIT) may be given; and its item,
    # when it has one.
    ready: dict[str, None] = field(default_factory=dict)
    ready_items: dict[tuple[str, str], None] = field(default_factory=dict)
    # Queues that gave less than they had (LIMIT, PAUSE), or nothing, and may give more now.
    reopened: dict[str, None] = field(default_factory=dict)
    # Queues that have no unfinished job any more, and pairs (queue, item) of which the same is true.
    ended: dict[str, None] = field(default_factory=dict)
    ended_items: dict[tuple[str, str], None] = field(default_factory=dict)
    # A CLONE replaced everything.
    restored: bool = False

    def add(self, other: Effects) -> None:
        """What `other` says has happened too, after this."""
        self.ready.update(other.ready)
        self.ready_items.update(other.ready_items)
        self.reopened.update(other.reopened)
        self.ended.update(other.ended)
        self.ended_items.update(other.ended_items)
        self.restored |= other.restored
