"""Round-robin among queues: with BY PRIORITY, queues that hold jobs of the same priority take turns.

The order belongs to the connection (spec/state-machine 4.3): it goes into the log with each operation, and a queue that
has given a job moves to the end.
"""

from __future__ import annotations

from core import Handed, HandedMany, Reply
from gateway.limits import ROTATION_QUEUES_MAX


class Rotation:
    """Remembers when each queue was last used on a connection. With too many names it starts over."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._turn = 0

    def order(self, queues: tuple[str, ...]) -> tuple[str, ...]:
        """Sort the queues, least recently used first; those never used keep their order."""
        return tuple(sorted(queues, key=lambda queue: self._used.get(queue, 0)))

    def note(self, reply: Reply) -> Reply:
        """Move the queues that gave these jobs to the end; returns the reply."""
        if isinstance(reply, Handed | HandedMany):
            for job in (reply,) if isinstance(reply, Handed) else reply.jobs:
                self._turn += 1
                self._used[job.queue] = self._turn
            if len(self._used) > ROTATION_QUEUES_MAX:
                self._used.clear()
        return reply
