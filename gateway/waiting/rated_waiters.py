"""Tracks queues whose jobs need a grant before waiters can take them: which have a grant, and which gets the next.

Nothing here visits all queues of a pulse: queues that lack grants are noted by pulse, and served from these notes when
there are new grants, until these are used up. Waiters for any queue need no note, as they can use every queue of the
pulse; these are tried in portions. A pulse without a free grant is skipped by a single check (PulseWindows.shut).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator

from sockpqd.cluster.api import Cluster
from sockpqd.core import Get
from sockpqd.gateway.limits import FED_QUEUES_MAX, LINES_PER_COMMAND
from sockpqd.gateway.waiting.job_grants import GrantReservations


class RatedQueues:
    """The queues with a rate, for waiters for jobs."""

    def __init__(self, cluster: Cluster, grants: GrantReservations) -> None:
        self._cluster = cluster
        self._grants = grants
        self._hungry: dict[str, OrderedDict[str, None]] = {}    # queues that lacked a grant when waiters came, by pulse
        self._fed: dict[str, str] = {}      # up to which queue a portion went, by pulse

    def granted(self, queue: str, free: int) -> int:
        """Return for how many of the free jobs there is a grant; if not for all, the queue is fed when there are more.
        """
        pulse = self._grants.pulse_of(queue)
        if pulse is None:
            return free
        granted = self._grants.free(pulse)
        if granted < free:
            self._note(pulse, queue)
            self._grants.windows.await_grants(pulse, shut=not granted)
        return min(free, granted)

    def has_grant(self, queue: str) -> bool:
        """Return whether the rate of the queue, if it has one, allows it to hand out a job."""
        pulse = self._grants.pulse_of(queue)
        return pulse is None or self._grants.free(pulse) > 0

    def asked(self, get: Get) -> Iterator[str]:
        """Yield the queues with jobs for this Get that may have a grant, for `granted` to check; others are noted."""
        shut, machine = self._grants.windows.shut, self._cluster.machine
        if get.queues is None and get.item is None:
            yield from self._any(shut)
            return
        found = machine.with_rate_of_item(get.item or "") if get.queues is None else machine.with_rate(get.queues)
        self._grants.charge(len(found) // LINES_PER_COMMAND)
        for pulse, queue in found:
            if pulse in shut:
                self._note(pulse, queue)
            else:
                yield queue

    def _any(self, shut: Collection[str]) -> Iterator[str]:
        looked = 0
        try:
            for pulse, names in self._cluster.machine.ready_of_pulse.items():
                if pulse in shut:
                    continue
                for queue in names:
                    looked += 1
                    yield queue
                    if pulse in shut:
                        break
        finally:
            self._grants.charge(looked // LINES_PER_COMMAND)

    def _note(self, pulse: str, queue: str) -> None:
        hungry = self._hungry.get(pulse)
        if hungry is None:
            hungry = self._hungry[pulse] = OrderedDict()
        hungry[queue] = None

    def forget(self, pulse: str) -> None:
        """Drop the notes about a pulse, as there are no waiters."""
        self._hungry.pop(pulse, None)

    def clear(self) -> None:
        """Drop all notes, as there are no waiters."""
        self._hungry.clear()
        self._fed.clear()

    def feed(self, pulse: str, send: Callable[[str], None], *, for_any: bool) -> bool:
        """`send` waiters for queues that lacked a grant, while there are grants; `for_any`: and for others that have
        jobs. Returns whether a portion was not enough, so that it has to be called again.
        """
        hungry = self._hungry.get(pulse)
        for _ in range(FED_QUEUES_MAX):
            if not self._is_open(pulse):
                return False
            if not hungry:
                self._hungry.pop(pulse, None)
                return for_any and self._feed_any(pulse, send)
            send(hungry.popitem(last=False)[0])
        return True

    def _feed_any(self, pulse: str, send: Callable[[str], None]) -> bool:
        portion = self._cluster.machine.with_rate_behind(pulse, self._fed.pop(pulse, ""), FED_QUEUES_MAX)
        for queue in portion:
            if not self._is_open(pulse):
                return False
            send(queue)
        if len(portion) < FED_QUEUES_MAX:
            return False
        self._fed[pulse] = portion[-1]
        return True

    def _is_open(self, pulse: str) -> bool:
        windows = self._grants.windows
        if pulse in windows.shut:
            return False
        if self._grants.free(pulse):
            return True
        windows.await_grants(pulse, shut=True)
        return False
