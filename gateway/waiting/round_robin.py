"""Turns of a connection among queues: BY RR, and ties of BY PRIORITY (spec/state-machine 4.3).

The cycle belongs to the connection. Its order goes into the log with each operation that needs it; new names join at
its end, and a queue that has given a job by turns goes to the end. Gets of any queue need no cycle: the next queue by
name follows the one that gave the last job.
"""

from __future__ import annotations

from sockpqd.core import Handed, HandedMany, Reply
from sockpqd.gateway.limits import FEW_QUEUES, ROTATION_QUEUE_BYTES, ROTATION_QUEUES_MAX


class RoundRobin:
    """The cycle of queues of a connection. With too many names it starts from scratch."""

    __slots__ = ("_characters", "_places", "_turn", "last")

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._characters = 0                # of the names in the cycle
        self._turn = 0
        self.last: str | None = None        # the queue that gave the last job without names

    @property
    def held_bytes(self) -> int:
        """The approximate memory of the names, in bytes; 0 while there are few."""
        names = len(self._places)
        return 0 if names <= FEW_QUEUES else names * ROTATION_QUEUE_BYTES + self._characters

    def order(self, queues: tuple[str, ...]) -> tuple[str, ...]:
        """Return the queues in the order of the cycle, each once; new ones join at its end."""
        places = self._places
        if len(places) > ROTATION_QUEUES_MAX:
            self._places = places = {name: places[name] for name in queues if name in places}
            self._characters = sum(map(len, places))
        for name in queues:
            if name not in places:
                self._move_to_end(name)
        return tuple(sorted(dict.fromkeys(queues), key=places.__getitem__))

    def _move_to_end(self, name: str) -> None:
        self._turn += 1
        if name not in self._places:
            self._characters += len(name)
        self._places[name] = self._turn

    def note(self, reply: Reply, *, named: bool) -> Reply:
        """Advance the cycle by the jobs of this reply to a Get with (`named`) or without names; returns the reply."""
        if isinstance(reply, Handed | HandedMany):
            for job in (reply,) if isinstance(reply, Handed) else reply.jobs:
                if job.turned is not True:
                    continue
                if named:
                    self._move_to_end(job.queue)
                else:
                    self.last = job.queue
        return reply
