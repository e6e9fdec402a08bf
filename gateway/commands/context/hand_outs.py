"""The hand-outs of a connection: which jobs were handed to its client.

A hand-out is noted when it is written to the client, which does not know its id before. Nothing is done when it ends;
instead, with every few hand-outs, these and as many of the oldest ones are checked, and those that have ended are
dropped. So at most about half of those kept have ended, and no check takes long.
"""

from __future__ import annotations

from collections import deque

from sockpqd.core import Handed, HandedMany, Machine
from sockpqd.gateway.limits import HAND_OUT_BYTES, HAND_OUTS_PER_LOOK


class HandOuts:
    """The ids of jobs that were handed to one connection: all that are still running, and some others."""

    __slots__ = ("_ids", "_in_order", "new")

    def __init__(self) -> None:
        self.new: list[int] = []                # since the last look; the pipeline appends too
        self._ids: set[int] = set()             # those that were running at the last look
        self._in_order: deque[int] = deque()    # the same, the longest unlooked at first

    def __contains__(self, number: int) -> bool:
        """Return whether the job that runs under this id was handed to this connection."""
        return number in self._ids or number in self.new

    @property
    def held_bytes(self) -> int:
        """The approximate memory of the ids, in bytes; 0 while there are few."""
        count = len(self._ids) + len(self.new)
        return count * HAND_OUT_BYTES if count > 2 * HAND_OUTS_PER_LOOK else 0

    def note(self, reply: Handed | HandedMany) -> None:
        """Record the jobs handed to the client."""
        if isinstance(reply, Handed):
            self.new.append(reply.id)
        else:
            self.new += [job.id for job in reply.jobs]

    @property
    def looks(self) -> bool:
        """True if it is time to `look`."""
        return len(self.new) >= HAND_OUTS_PER_LOOK

    def look(self, machine: Machine) -> None:
        """Drop some of those that have ended, which changes `held_bytes`."""
        in_order = self._in_order
        oldest = [in_order.popleft() for _ in range(min(len(self.new), len(in_order)))]
        self._ids.difference_update(oldest)
        running = machine.still_running(oldest + self.new)
        in_order += running
        self._ids.update(running)
        self.new.clear()
