"""Dead jobs that stay where they are when the queue they came from is deleted (spec/state-machine 8.2)."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core.state import State
from sockpqd.core.store.job import Extras, of_many


def leave_dead(state: State, name: str, jobs_max: int) -> int:
    """Make up to `jobs_max` dead jobs that came from this queue ordinary jobs of the queues that hold them.

    They keep their places, reasons and errors; attempts are counted from 0, and a periodic job loses its period.
    Returns their number.
    """
    left = 0
    state.replace_ready(begins=True)
    while left < jobs_max and name in state.dead:
        job = state.dead[name].first
        queue = state.queues.by_name[job.queue]
        assert job.extras is not None
        extras = of_many(replace(job.extras, origin=None, every_ms=None))
        state.remove(queue, job)
        state.add(queue, replace(job, attempts=0, extras=None if extras == Extras() else extras))
        left += 1
    state.replace_ready(begins=False)
    return left
