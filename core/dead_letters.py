"""Names of dead-letter queues that no settings name: from a queue to its dead-letter queue, and back."""

from __future__ import annotations

from sockpqd.core import limits

DEAD_SUFFIX = "_dead"


def dead_queue_of(queue: str) -> str:
    """Return the dead-letter queue of a queue whose settings name none (spec/state-machine 8.2).

    Of a long name only the beginning is kept: queues that differ after it have the same dead-letter queue.
    """
    return queue[: limits.NAME_CHARS_MAX - len(DEAD_SUFFIX)] + DEAD_SUFFIX


def alive(name: str) -> str:
    """Return the queue whose dead-letter queue has this name; any other name is returned unchanged."""
    while name.endswith(DEAD_SUFFIX) and len(name) > len(DEAD_SUFFIX):
        name = name[:-len(DEAD_SUFFIX)]
    return name
