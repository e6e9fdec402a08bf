"""The extras that allow a job to be paged, and shared extras of jobs that were read from a page.

Headers are part of a job's data, so a job with headers and no other extras is paged as a plain one.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import force_setattr

from sockpqd.core.store.job import DelayedJob, Extras, Job, is_plain, of_many

_Job = TypeVar("_Job", Job, DelayedJob)

# No index or list uses these extras; numbered jobs in pages have an index of their own.
_UNLISTED = ("tries", "every_ms", "ready_ms", "reason", "lease_ms", "counts", "head")
_LISTED = tuple(field for field in Extras.__struct_fields__ if field not in _UNLISTED)
_NOTHING = tuple(getattr(Extras(), field) for field in _LISTED)
_GROUP = _LISTED.index("group")


def fit_pages(jobs: list[_Job]) -> list[bool]:
    """Return whether each of these jobs may be paged: plain jobs, and numbered ones that are in no second list.

    A job with an item, a key, a TTL or a group is also in a second list. One that is no longer at the place of its
    number could not be found by that number.
    """
    last: Extras | None = None          # of the job before: most jobs of a page share theirs
    last_fit = False
    fit: list[bool] = []
    for job in jobs:
        extras = job.extras
        if extras is None or job.item is not None:
            fit.append(job.item is None)
            continue
        if extras is not last:
            last = extras
            unlisted = tuple([getattr(extras, field) for field in _LISTED]) == _NOTHING
            last_fit = unlisted and (not extras.counts.number if extras.counts is not None else is_plain(extras))
        fit.append(last_fit)
    return fit


def fit_group_pages(jobs: list[Job]) -> list[bool]:
    """Return whether each of these jobs, all with a GROUP, may be in a page of jobs of their group.

    All jobs of such a page are indexed by seq, and none is dropped unread. So any extras that are in no list are
    allowed, whether the job is numbered or not.
    """
    last: Extras | None = None
    last_fits = False
    fit: list[bool] = []
    for job in jobs:
        if job.extras is not last:
            last = job.extras
            last_fits = _has_only_a_group(last)
        fit.append(last_fits and job.item is None and not job.when)
    return fit


def fit_delayed_pages(jobs: list[DelayedJob]) -> list[bool]:
    """Return whether each of these jobs may be paged: as fit_pages says or, with a GROUP, as fit_group_pages does."""
    return [
        fits or (job.item is None and _has_only_a_group(job.extras))
        for job, fits in zip(jobs, fit_pages(jobs), strict=True)
    ]


def _has_only_a_group(extras: Extras | None) -> bool:
    """Return whether a job with these extras has a GROUP, and is in no list but its group's."""
    if extras is None or extras.group is None:
        return False
    listed = [getattr(extras, field) for field in _LISTED]
    listed[_GROUP] = None
    return tuple(listed) == _NOTHING and (extras.counts is None or not extras.counts.number)


def with_shared_extras(jobs: list[_Job]) -> list[_Job]:
    """Return these jobs, just read from a page, with equal extras replaced by one shared object."""
    known: dict[Extras, Extras] = {}
    for job in jobs:
        extras = job.extras
        if extras is not None:
            shared = known.get(extras)
            if shared is None:
                shared = known[extras] = of_many(extras)
            force_setattr(job, "extras", shared)
    return jobs
