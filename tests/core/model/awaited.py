"""The ends of jobs that clients await in the reference model."""

from __future__ import annotations

from sockpqd.core import EndState, JobAwaited, JobEnded, JobState, NotFound, Reply
from tests.core.model.jobs import ModelJob
from tests.core.model.records import ModelRecord, ModelRecords


class ModelAwaited(ModelRecords):
    """Await: each job whose end is awaited, under the place that it had when it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited: dict[int, ModelJob] = {}
        self.outcomes: dict[int, JobEnded | NotFound] = {}      # of this entry

    def answer_to(self, job: ModelJob | None, record: ModelRecord | None) -> Reply:
        """Return what is known of the job, or of the record if there is no such job."""
        if job is not None and not self._lies_dead(job):
            self.awaited[job.seq] = job
            return JobAwaited(job.seq, job.queue)
        if job is not None:
            return self._death(job)
        if record is None or record.view.state is None:
            return NotFound()
        done = record.view.state is EndState.DONE
        return JobEnded(record.view.queue, record.view.state, record.result if done else b"")

    def tell_end(self, job: ModelJob, end: JobEnded | NotFound) -> None:
        """Notify all clients that wait for this job of its end."""
        for place, one in list(self.awaited.items()):
            if one is job:
                self.outcomes[place] = end
                del self.awaited[place]

    def tell_death(self, job: ModelJob) -> None:
        """Notify clients that wait for a job that may be dead or buried now."""
        if self._lies_dead(job):
            self.tell_end(job, self._death(job))

    @staticmethod
    def _lies_dead(job: ModelJob) -> bool:
        return job.buried or (job.origin is not None and job.ready)

    @staticmethod
    def _death(job: ModelJob) -> JobEnded:
        state = JobState.BURIED if job.buried else JobState.DEAD
        return JobEnded(job.queue, state, b"" if job.error is None else job.error[1])
