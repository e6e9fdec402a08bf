"""Which jobs may be in pages by their extras, and the extras of jobs that were read from one."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import force_setattr

from sockpqd.core.store.job import DelayedJob, Extras, Job, of_many

_Job = TypeVar("_Job", Job, DelayedJob)

# By these a job is neither found nor listed; of numbered ones in pages there is an index.
_UNLISTED = ("tries", "every_ms", "ready_ms", "reason", "lease_ms", "counts")
_LISTED = tuple(field for field in Extras.__struct_fields__ if field not in _UNLISTED)
_NOTHING = tuple(getattr(Extras(), field) for field in _LISTED)


def fit_pages(jobs: list[_Job]) -> list[bool]:
    """Of each of these jobs, whether it may be in a page: a plain one, and a numbered one without a place elsewhere.

    A job with an item, a key, a TTL or a group stands in a second list as well.
    """
    last: Extras | None = None          # those of the job before: most jobs of a page share theirs
    last_fit = False
    fit: list[bool] = []
    for job in jobs:
        extras = job.extras
        if extras is None or job.item is not None:
            fit.append(job.item is None)
            continue
        if extras is not last:
            last = extras
            last_fit = extras.counts is not None and tuple([getattr(extras, field) for field in _LISTED]) == _NOTHING
        fit.append(last_fit)
    return fit


def with_shared_extras(jobs: list[_Job]) -> list[_Job]:
    """These jobs, which were just read from a page, with one object for all that have the same extras."""
    known: dict[Extras, Extras] = {}
    for job in jobs:
        extras = job.extras
        if extras is not None:
            shared = known.get(extras)
            if shared is None:
                shared = known[extras] = of_many(extras)
            force_setattr(job, "extras", shared)
    return jobs
