"""Derives when a job certainly waited in its queue, and since when it had its place there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from msgspec import Struct

from tests.chaos.checker.evidence.jobs import HandOut, Job
from tests.chaos.checker.evidence.moments import NEVER, latest
from tests.chaos.checker.evidence.releases import Release, release
from tests.chaos.checker.facts import Facts


class Stay(Struct, eq=False):
    """A job entered the end of its queue between two moments, and was taken by `taken`; None: by no known hand-out.

    From `came_latest_ns` to `left_ns` it waited, unless a hidden hand-out had it. Such a hand-out may also have moved
    it to the end of its queue in that time.
    """

    job: Job
    came_earliest_ns: int
    came_latest_ns: int         # NEVER: unknown
    left_ns: int                # not before; NEVER: it was not seen again
    taken: HandOut | None


def stays(job: Job, facts: Facts) -> Iterator[Stay]:
    """All stays of a sound job in its queue, in order."""
    put = job.put
    assert put is not None
    came = Release(put.start_ns, latest(put))
    following: HandOut | None
    for hand_out, following in zip(chain([None], job.hand_outs), chain(job.hand_outs, [None]), strict=True):
        if hand_out is not None:
            if hand_out.done is not None:
                return
            came = release(hand_out, following, facts)
            if following is not None and came.earliest_ns > following.latest_ns:
                came.earliest_ns = put.start_ns     # two leases at a time: another rule reports it
        left_ns = NEVER if following is None else following.earliest_ns
        yield Stay(job, came.earliest_ns, came.latest_ns, left_ns, following)
