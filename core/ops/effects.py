"""The effects of an entry, for the blocked clients of the node that serves."""

from __future__ import annotations

from msgspec import Struct, field

from sockpqd.core.ops.replies import JobEnded, NotFound


class Effects(Struct):
    """Queues and items that clients may wait for. Dicts without values are sets in order of occurrence."""

    # Queues in which a job became READY, or one that was blocked by ITEMLIMIT became eligible; and its item, if any.
    ready: dict[str, None] = field(default_factory=dict)
    ready_items: dict[tuple[str, str], None] = field(default_factory=dict)
    # Queues that may hand out more than before (LIMIT, PAUSE).
    reopened: dict[str, None] = field(default_factory=dict)
    # Groups that may hand out more than before; None: no groups.
    opened_groups: dict[str, None] | None = None
    # Queues, and pairs (queue, item), whose last unfinished job has ended.
    ended: dict[str, None] = field(default_factory=dict)
    ended_items: dict[tuple[str, str], None] = field(default_factory=dict)
    # Pulses that were created, changed or deleted, or whose speed has changed; None: none of them.
    pulses: dict[str, None] | None = None
    # The outcomes of watched jobs, by handle (store/watches.py); None: no outcomes.
    outcomes: dict[int, JobEnded | NotFound] | None = None
    # Items that were cancelled; None: none.
    cancelled_items: dict[str, None] | None = None
    # A CLONE replaced everything.
    restored: bool = False

    def add(self, other: Effects) -> None:
        """Append the effects of operations that were executed after those with these effects."""
        self.ready.update(other.ready)
        self.ready_items.update(other.ready_items)
        self.reopened.update(other.reopened)
        if other.opened_groups is not None:
            self.opened_groups = {**(self.opened_groups or {}), **other.opened_groups}
        self.ended.update(other.ended)
        self.ended_items.update(other.ended_items)
        if other.pulses is not None:
            for pulse in other.pulses:
                self.pulse_changed(pulse)
        if other.outcomes is not None:
            self.outcomes = {**(self.outcomes or {}), **other.outcomes}
        for item in other.cancelled_items or ():
            self.cancel_item(item)
        self.restored |= other.restored

    def cancel_item(self, item: str) -> None:
        """Record that the item was cancelled."""
        if self.cancelled_items is None:
            self.cancelled_items = {}
        self.cancelled_items[item] = None

    def pulse_changed(self, pulse: str) -> None:
        """Record that the pulse was created, changed or deleted."""
        if self.pulses is None:
            self.pulses = {}
        self.pulses[pulse] = None
