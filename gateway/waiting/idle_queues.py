"""Unused queues: the serving leader has them deleted when their IDLE time has passed (spec/state-machine 10.2).

Most uses are in the log, so the state knows when each queue was last used. Only the leader knows which clients wait for
a job. So it proposes the deletion, with the time since which it knows the queue to be idle, and the operation does
nothing if the state has recorded a later use. A leader does not know which clients waited at its predecessor, so it
counts from the start of its own service.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from sockpqd.cluster.api import Cluster
from sockpqd.core import DeleteQueue, Removed, Reply
from sockpqd.gateway.limits import IDLE_DELETIONS_MAX, IDLE_LOOK_S, IDLE_LOOKS_MAX


class IdleQueues:
    """Looks for idle queues while this node serves. `waiting`: whether clients wait for a queue by name."""

    def __init__(self, cluster: Cluster, waiting: Callable[[str], bool]) -> None:
        self._cluster = cluster
        self._waiting = waiting
        self._since_ms = 0                      # replicated time from which on this leader knows who waits
        self._left_ms: dict[str, int] = {}      # when somebody last stopped waiting, by queue
        self._to_see: list[str] = []            # queues that this round has yet to look at
        self._due: deque[str] = deque()         # those whose deletion is to be proposed,
        self._expiring: set[str] = set()        # and the same with those whose deletion is in flight
        self._looked_ms = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Begin to look for idle queues, as this node serves."""
        self._since_ms = self._looked_ms = self._cluster.time_ms
        self._left_ms.clear()
        self._to_see.clear()
        self._schedule()

    def stop(self) -> None:
        """Stop looking for idle queues."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def left(self, name: str) -> None:
        """Record that a client has stopped waiting for this queue."""
        if name in self._cluster.machine.expiring:
            self._left_ms[name] = self._cluster.time_ms

    def applied(self) -> None:
        """Look for idle queues, if that is due after an applied entry."""
        if self._cluster.machine.expiring and self._cluster.time_ms - self._looked_ms >= IDLE_LOOK_S * 1000:
            self._look()

    def _schedule(self) -> None:
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(IDLE_LOOK_S, self._tick)

    def _tick(self) -> None:
        self._schedule()
        if self._cluster.machine.expiring:
            self._look()

    def _look(self) -> None:
        """Check some of the queues, so that a round takes the intended number of checks."""
        self._looked_ms = self._cluster.time_ms
        if not self._to_see:
            expiring = self._cluster.machine.expiring
            self._left_ms = {name: left_ms for name, left_ms in self._left_ms.items() if name in expiring}
            self._to_see = list(expiring)
        some, self._to_see = self._to_see[:IDLE_LOOKS_MAX], self._to_see[IDLE_LOOKS_MAX:]
        for name in some:
            if name not in self._expiring and self._idle_since_ms(name) is not None:
                self._expiring.add(name)
                self._due.append(name)
        self._delete_some()

    def _idle_since_ms(self, name: str) -> int | None:
        """Return the time from which the queue, if to be deleted when idle, has been unused; None if it is in use."""
        machine = self._cluster.machine
        used_ms, settings = machine.used_ms(name), machine.queue_settings(name)
        if used_ms is None or settings is None or self._waiting(name):
            return None
        since_ms = max(used_ms, self._since_ms, self._left_ms.get(name, 0))
        return since_ms if self._cluster.time_ms - since_ms >= settings.idle_ms else None

    def _delete_some(self) -> None:
        """Propose deletions while few are in flight, as they precede clients' operations."""
        due, expiring = self._due, self._expiring
        while due and len(expiring) - len(due) < IDLE_DELETIONS_MAX:
            name = due.popleft()
            since_ms = self._idle_since_ms(name)
            if since_ms is None:
                expiring.discard(name)
            else:
                self.delete(_Deletion(self, name, since_ms))

    def delete(self, deletion: _Deletion) -> None:
        """Begin a deletion, or continue one that has removed a portion of the jobs."""
        operation = DeleteQueue(deletion.name, force=True, idle_since_ms=deletion.since_ms)
        self._cluster.propose(operation, deletion)

    def ended(self, name: str) -> None:
        """Forget the deletion, which has an outcome, and begin the next one."""
        self._expiring.discard(name)
        self._delete_some()

    def given_up(self, name: str) -> None:
        """Forget this deletion and all due ones: this node no longer serves."""
        self._expiring.difference_update(self._due, (name,))
        self._due.clear()


class _Deletion:
    """The outcome of the deletion of an idle queue."""

    def __init__(self, queues: IdleQueues, name: str, since_ms: int) -> None:
        self.name = name
        self.since_ms = since_ms
        self._queues = queues

    def applied(self, reply: Reply) -> None:
        """Continue if there were more jobs than one entry may remove."""
        if isinstance(reply, Removed):
            self._queues.delete(self)
        else:
            self._queues.ended(self.name)

    def refused(self) -> None:
        """Record that nothing was deleted."""
        self._queues.given_up(self.name)

    def unknown(self) -> None:
        """Record that another leader is responsible now."""
        self._queues.given_up(self.name)
