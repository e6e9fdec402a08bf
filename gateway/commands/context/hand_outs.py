"""The hand-outs of a connection: which jobs were handed to its client.

A hand-out is noted when it is written to the client, which does not know its id before. Nothing is done when it ends;
instead, with every few hand-outs, twice as many of the oldest ones are checked, and dropped if they have ended. So at
most about half of those kept have ended, and no check takes long.
"""

from __future__ import annotations

from collections import deque

from sockpqd.core import Handed, HandedMany, Machine
from sockpqd.gateway.limits import HAND_OUT_BYTES, HAND_OUTS_PER_LOOK


class HandOuts:
    """The ids of jobs that were handed to one connection: all that are still running, and some others."""

    __slots__ = ("_ids", "_in_order", "_unlooked")

    def __init__(self) -> None:
        self._ids: set[int] = set()
        self._in_order: deque[int] = deque()    # the same, the longest unlooked at first
        self._unlooked = 0                      # hand-outs since the last look

    def __contains__(self, number: int) -> bool:
        """Return whether the job that runs under this id was handed to this connection."""
        return number in self._ids

    @property
    def held_bytes(self) -> int:
        """The approximate memory of the ids, in bytes; 0 while there are few."""
        return len(self._ids) * HAND_OUT_BYTES if len(self._ids) > 2 * HAND_OUTS_PER_LOOK else 0

    def note(self, reply: Handed | HandedMany) -> bool:
        """Note the jobs handed to the client; returns whether it is time to `look`."""
        if isinstance(reply, Handed):
            return self.note_job(reply.id)
        for job in reply.jobs:
            self.note_job(job.id)
        return self._unlooked >= HAND_OUTS_PER_LOOK

    def note_job(self, number: int) -> bool:
        """Note the job that runs under this id, handed to the client; returns whether it is time to `look`."""
        self._ids.add(number)
        self._in_order.append(number)
        self._unlooked += 1
        return self._unlooked >= HAND_OUTS_PER_LOOK

    def look(self, machine: Machine) -> None:
        """Drop some of those that have ended, which changes `held_bytes`."""
        in_order = self._in_order
        for _ in range(min(2 * self._unlooked, len(in_order))):
            number = in_order.popleft()
            if machine.running_job(number) is None:
                self._ids.discard(number)
            else:
                in_order.append(number)
        self._unlooked = 0
