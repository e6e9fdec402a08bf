"""Events of jobs, queues and the cluster, as subscribers receive them (spec/events 2.1)."""

from __future__ import annotations

from msgspec import Struct

# The types that can be subscribed to, as clients name them. MSG does not come from the state: see NOTIFY.
EVENT_TYPES = (
    "FINQ", "FINI", "PUT", "TAKE", "DONE", "LATER", "EXPIRED", "DEAD", "TTL", "DEPTH", "PULSE", "LEADER", "IDLE",
    "DROP", "WORKER", "PROGRESS", "CANCEL", "FAILI",
)
GAP = "GAP"         # a CLONE replaced everything: recorded for any subscriber


class Event(Struct, gc=False, frozen=True):
    """One event. `seq`: its number, counted since the cluster began; `words`: the rest of its line after the name."""

    seq: int
    type: str
    name: str                           # the queue, item, pulse or worker; of LEADER and GAP ""
    words: tuple[int | str, ...] = ()
