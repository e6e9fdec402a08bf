"""Lists the READY jobs of an item in one queue by group, so that the first job of each group is found without a search.

Only an item with many jobs there needs it (item.py).
"""

from __future__ import annotations

from msgspec import Struct

from sockpqd.core.store.job import Job, group_of
from sockpqd.core.store.job_list import JobList


class ItemGroups(Struct, gc=False, eq=False):
    """The jobs of each group, and the first one of each in the order of the queue.

    A single job of a group stands for itself, as there may be as many groups as jobs.
    """

    firsts: JobList[Job]
    by_name: dict[str, Job | JobList[Job]]

    @staticmethod
    def split(jobs: JobList[Job], others: list[Job]) -> ItemGroups:
        """List these jobs by group. `others`: those of them whose groups are not named like the queue."""
        own = JobList(jobs.size, [[*block] for block in jobs.blocks()])
        for job in others:
            own.remove(job)
        groups = ItemGroups(JobList(), {})
        if own.size:
            groups.by_name[own.first.queue] = own
            groups.firsts.add(own.first)
        for job in others:
            groups.add(job)
        return groups

    def add(self, job: Job) -> None:
        """List the job."""
        group = group_of(job)
        jobs = self.by_name.get(group)
        if jobs is None:
            self.by_name[group] = job
            self.firsts.add(job)
            return
        if not isinstance(jobs, JobList):
            single = jobs
            jobs = self.by_name[group] = JobList()
            jobs.add(single)
        first = jobs.first
        jobs.add(job)
        if job < first:
            self.firsts.remove(first)
            self.firsts.add(job)

    def remove(self, job: Job) -> None:
        """Remove the job, which must be listed."""
        group = group_of(job)
        jobs = self.by_name[group]
        if not isinstance(jobs, JobList):
            del self.by_name[group]
            self.firsts.remove(job)
            return
        was_first = jobs.first.seq == job.seq
        jobs.remove(job)
        if not jobs.size:
            del self.by_name[group]
        if was_first:
            self.firsts.remove(job)
            if jobs.size:
                self.firsts.add(jobs.first)
