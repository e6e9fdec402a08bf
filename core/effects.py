"""What an entry brought about, for those who wait for it on the node that owns the clients."""

from __future__ import annotations

from msgspec import Struct, field


class Effects(Struct):
    """Queues in which something happened. Dicts without values: sets that keep the order of occurrence."""

    ready: dict[str, None] = field(default_factory=dict)    # a job became ready: put, requeued, returned or expired
    ended: dict[str, None] = field(default_factory=dict)    # a running job ended for good: DONE, or expiry THEN DONE
    restored: bool = False                                  # a CLONE replaced everything
