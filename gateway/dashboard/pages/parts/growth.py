"""Finds queues whose backlog grows: in each of the last minutes more jobs waited than in the one before."""

from __future__ import annotations

from itertools import pairwise

from msgspec import Struct

from sockpqd.gateway.dashboard.pages.parts.picture import MINUTE_S
from sockpqd.gateway.dashboard.pages.parts.view import View

GROWS_MINUTES = 5           # in each of which more jobs wait on average than in the one before
GREW_JOBS = 20              # from the first of these minutes to the last one, at least,
GREW_SHARE = 0.05           # and this share of the first one's jobs


class Growth(Struct, frozen=True):
    """The growth of a backlog over the last minutes, in jobs, and the rates that explain it, in jobs per second."""

    jobs: int
    came: float         # put, or put back
    taken: float


def growth(view: View, name: str) -> Growth | None:
    """Return the growth of the queue's backlog; None if it does not grow all the time, or is not known that long."""
    counts = view.cluster.machine.counts(name)
    if counts is None or counts.ready < GREW_JOBS:
        return None
    series, now_s = view.samples.queues.courses.get(name), view.samples.now_s
    if series is None or series.known_s(now_s) < (GROWS_MINUTES - 1) * MINUTE_S:
        return None

    def means(field: str) -> list[float]:
        rows = series.window(now_s, GROWS_MINUTES * MINUTE_S, GROWS_MINUTES, (field,))
        return [value for value in rows.values[field] if value is not None]

    waiting = means("waiting")
    if len(waiting) < GROWS_MINUTES or any(after <= before for before, after in pairwise(waiting)):
        return None
    more = waiting[-1] - waiting[0]
    if more < max(GREW_JOBS, GREW_SHARE * waiting[0]):
        return None
    put, failed, taken = (sum(means(field)) / GROWS_MINUTES for field in ("put", "failed", "taken"))
    return Growth(round(more), put + failed, taken)
