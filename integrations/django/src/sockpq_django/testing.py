"""Tasks in tests, without a server: they are kept in memory, and run when the test asks for it.

    # settings of the tests
    TASKS = sockpq_django.testing.in_memory(TASKS)

    # a test
    order.pay()
    assert sockpq_django.testing.run_tasks() == 1

With OUTBOX rows are written to its database as usual, so a task whose transaction is rolled back does not run.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sockpq_django.backend import SockpqBackend
from sockpq_django.backends import own_backend
from sockpq_django.tasks.body import TaskBody
from sockpq_django.tasks.names import TaskId
from sockpq_django.tasks.reading import SeenJob, result_of
from sockpq_django.work.attempt import Failed, Outcome, PutBack, attempt

BACKEND = "sockpq_django.SockpqBackend"
IN_MEMORY = "sockpq_django.testing.MemoryBackend"
WORKER = "test"
RUNS_MAX = 10_000           # of tasks that enqueue each other for ever


def in_memory(tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the setting TASKS with backends in memory instead of ours; others stay as they are."""
    return {
        alias: {**one, "BACKEND": IN_MEMORY} if one.get("BACKEND") == BACKEND else dict(one)
        for alias, one in tasks.items()
    }


def run_tasks(queues: Iterable[str] | None = None, *, backend: str | None = None) -> int:
    """Run all tasks that are due in these queues (None: in all), with all their tries; returns the number of attempts.

    Pauses between tries are left out. Tasks that these tasks enqueue are run as well.
    """
    return own_backend(backend).run(queues, WORKER)


def clear_tasks() -> None:
    """Forget the tasks of all backends in memory, and their results: for the setUp() of tests."""
    _memories.clear()


class MemoryJob(NamedTuple):
    """A job in memory. `at`: the Unix time at which it is due; `place`: jobs of one priority are run in this order."""

    seen: SeenJob
    at: float
    place: int


_memories: dict[str, dict[str, MemoryJob]] = {}      # by the alias of the backend and the id of the result
_places = itertools.count()


class MemoryBackend(SockpqBackend):
    """The backend with the jobs of this process in memory, and no server. Not for production."""

    @property
    def _jobs(self) -> dict[str, MemoryJob]:
        return _memories.setdefault(self.alias, {})

    def run(self, queues: Iterable[str] | None = None, worker: str = WORKER) -> int:
        """Run all tasks that are due. See run_tasks()."""
        wanted = set(self.queues if queues is None else queues)
        for ran in range(RUNS_MAX):
            self._fetch_rows(wanted)
            due = [
                job for job in self._jobs.values()
                if job.seen.state in ("ready", "delayed") and job.seen.id.queue in wanted and job.at <= time.time()
            ]
            if not due:
                return ran
            self._attempt(min(due, key=lambda job: (-job.seen.priority, job.place)), worker)
        raise RuntimeError(f"after {RUNS_MAX} attempts there are still tasks")

    def _attempt(self, job: MemoryJob, worker: str) -> None:
        now = time.time()
        first = job.seen.first or now
        seen = job.seen._replace(state="running", attempt=job.seen.attempt + 1, first=first, last=now)
        self._keep(job, seen)
        result = result_of(seen, self.alias)
        result.worker_ids[-1:] = [worker]

        def conclude(outcome: Outcome) -> bool:
            later = job._replace(at=now + outcome.pause) if isinstance(outcome, PutBack) else job
            self._keep(later, after(seen, outcome))
            return True

        try:
            attempt(seen, result, worker, self.settings, type(self), conclude)
        except BaseException:
            self._keep(job, job.seen)           # KeyboardInterrupt: as if it had not been taken
            raise

    def _keep(self, job: MemoryJob, seen: SeenJob) -> None:
        self._jobs[str(seen.id)] = job._replace(seen=seen)

    def _put(self, task_id: TaskId, body: TaskBody, priority: int, at: float | None) -> None:
        self._jobs[str(task_id)] = MemoryJob(SeenJob(task_id, "ready", body, priority, 0), at or 0.0, next(_places))

    def _look_in_cluster(self, task_id: TaskId) -> SeenJob | None:
        job = self._jobs.get(str(task_id))
        return job and job.seen

    def _cancel_in_cluster(self, task_id: TaskId) -> bool:
        job = self._jobs.get(str(task_id))
        if job is None or job.seen.state not in ("ready", "delayed", "running"):
            return False
        self._keep(job, job.seen._replace(state="cancelled", ended=time.time()))
        return True


def after(seen: SeenJob, outcome: Outcome) -> SeenJob:
    """Return the job after an attempt with this outcome."""
    if isinstance(outcome, PutBack):
        return seen._replace(state="ready", attempt=seen.attempt - 1)
    if isinstance(outcome, Failed):
        state = "dead" if outcome.pause is None else "ready"
        return seen._replace(state=state, body=seen.body.with_failure(outcome.failure))
    return seen._replace(state="done", returned=outcome.returned, ended=time.time())
