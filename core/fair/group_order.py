"""GROUPORDER: a job is handed out only while no earlier job of its group is RUNNING in its queue (spec/fair 7)."""

from __future__ import annotations

from msgspec import Struct, field

from sockpqd.core.ops.queues import Order
from sockpqd.core.store.job import Job, RunningJob
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.queues import Queue

Standing = tuple[int, int, int]         # rank, when, seq: the order of the jobs of a queue


def standing(queue: Queue, job: RunningJob) -> Standing:
    """Return the place to which a RUNNING job of the queue would go back by LATER .. FIRST."""
    in_time = queue.settings is not None and queue.settings.order is Order.TIME
    return -job.priority, job.when if in_time else 0, job.seq


class GroupOrder(Struct, gc=False, eq=False):
    """The places of the RUNNING jobs of each group in one queue.

    Jobs that the current command has handed out count only after it has ended: see `choose` and `settle`.
    """

    running: dict[str, JobList[Standing]] = field(default_factory=dict)
    giving: str | None = None           # the group whose job was last handed out to this command,
    given: list[tuple[str, Standing]] = field(default_factory=list)     # and all its jobs handed out to this command
    chosen: bool = False                # the next job that becomes RUNNING belongs to this command

    @property
    def empty(self) -> bool:
        """True if no job is RUNNING or about to be."""
        return not (self.running or self.given or self.chosen)

    def choose(self, group: str) -> None:
        """Record that a job of this group, chosen by its group, is about to be handed out to the current command."""
        self.giving, self.chosen = group, True

    def start(self, group: str, place: Standing) -> None:
        """Record that a job became RUNNING."""
        if self.chosen:
            self.chosen = False
            self.given.append((group, place))
            return
        places = self.running.get(group)
        if places is None:
            places = self.running[group] = JobList()
        places.add(place)

    def stop(self, group: str, place: Standing) -> None:
        """Record that a job is no longer RUNNING."""
        places = self.running[group]
        places.remove(place)
        if not places.size:
            del self.running[group]

    def settle(self) -> list[str]:
        """End the current command: the jobs handed out to it count from now on. Returns their groups."""
        given, self.given, self.giving = self.given, [], None
        for group, place in given:
            self.start(group, place)
        return list(dict.fromkeys([group for group, _ in given]))

    def holds(self, group: str, job: Job) -> bool:
        """Return whether a RUNNING job of the group has a place before this one."""
        places = self.running.get(group)
        return places is not None and places.first < (job.rank, job.when, job.seq)
