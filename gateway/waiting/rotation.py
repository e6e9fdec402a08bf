"""Which of several queues is next: with BY PRIORITY those that hold jobs of the same priority take turns.

The order is the connection's (spec/state-machine 4.3): it goes with each operation into the log, and the queue that
gave a job stands last from then on.
"""

from __future__ import annotations

from core import Handed, HandedMany, Reply
from gateway.limits import ROTATION_QUEUES_MAX


class Rotation:
    """When each queue was used last on a connection. With too many names it begins anew."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._turn = 0

    def order(self, queues: tuple[str, ...]) -> tuple[str, ...]:
        """The queues, whose turn it is first; those never used as they were named."""
        return tuple(sorted(queues, key=lambda queue: self._used.get(queue, 0)))

    def note(self, reply: Reply) -> Reply:
        """The queues that gave these jobs go to the end."""
        if isinstance(reply, Handed | HandedMany):
            for job in (reply,) if isinstance(reply, Handed) else reply.jobs:
                self._turn += 1
                self._used[job.queue] = self._turn
            if len(self._used) > ROTATION_QUEUES_MAX:
                self._used.clear()
        return reply
