"""Operations of the reference model on held jobs, and on jobs named by key."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import (
    Accepted,
    AnySelector,
    Await,
    Change,
    DataDropped,
    DataTooLarge,
    Delete,
    Done,
    End,
    EndState,
    Feedback,
    Finished,
    How,
    ItemCancelled,
    JobRunning,
    Later,
    Leased,
    NotFound,
    Number,
    Place,
    Rearmed,
    Reply,
    Results,
    Return,
    Selector,
    Then,
    Touch,
    Until,
)
from tests.core.model.jobs import ModelJob
from tests.core.model.spread import ModelSpread
from tests.core.model.time import CANCELLED

OnRunning = Done | Later | End | Return | Touch
OnMany = End | Touch


class ModelEnd(ModelSpread):
    """Done, Later, End, Return, Touch, Change, Delete."""

    def on_many(self, operation: OnMany) -> Reply:
        """Apply it to each job alone."""
        replies = []
        assert isinstance(operation.ids, tuple)
        for number in operation.ids:
            replies.append(self.on_running(replace(operation, ids=number)))
            self.end_operation()
        return Results(tuple(replies))

    def on_running(self, operation: OnRunning) -> Reply:
        """Execute an operation that names a running job."""
        job = self.job(operation.id)
        if job is None:
            return NotFound()
        match operation:
            case Done():
                return self._done(job)
            case Later() if self.cancelling(job.item):
                self.cancel_job(job)
            case Later():
                job.went_through(releases=1)
                job.counts = replace(job.counts, delay_ms=0)
                self.failed(job)
            case End():
                return self._end(job, operation)
            case Return():
                self.undo(job, self.clock_ms)
            case Touch():
                return self._touch(job, operation)
        return Accepted()

    def _end(self, job: ModelJob, end: End) -> Reply:
        if end.how is How.DONE and 0 < self.settings_of(job.queue).data_bytes_max < len(end.text or b""):
            return DataTooLarge()
        reply = self._ended(job, end)
        assert isinstance(reply, Accepted | Finished | Rearmed)
        return DataDropped(reply) if end.dropped and isinstance(end.ids, int) else reply

    def _ended(self, job: ModelJob, end: End) -> Reply:
        if end.feedback is Feedback.SLEEP:
            self.sleep_group(job, end.sleep_ms)
        if end.how is How.DONE:
            return self._done(job, end.last, end.text or b"")
        if self.cancelling(job.item):
            queue = job.queue
            self.cancel_job(job)
            return Accepted() if end.how is How.LATER else Finished(not self.unfinished(queue), False)
        if end.text is not None:
            job.error = (self.new_seq(), end.text) if end.text else None
        if end.how is How.BURY and end.here:
            return self._bury_here(job, end)
        if end.reason is not None:
            job.reason = end.reason
        if end.how is How.BURY:
            queue = job.queue
            self.die(job)
            return Finished(not self.unfinished(queue), False)
        self._later(job, end)
        return Accepted()

    def _done(self, job: ModelJob, last: bool = False, result: bytes = b"") -> Reply:
        queue, item = job.queue, job.item
        self.tell("DONE", queue, job.priority, job.id or 0)
        next_ms = self.done(job, last, result)
        return self._finished(queue, item) if next_ms is None else Rearmed(next_ms)

    def _finished(self, queue: str, item: str | None) -> Finished:
        return Finished(not self.unfinished(queue), item is not None and not self.has_item(item))

    def _bury_here(self, job: ModelJob, bury: End) -> Reply:
        self.count(job.queue, "dead")
        job.went_through(buries=1)
        job.counts = replace(job.counts, died_ms=self.clock_ms)
        self.tell("DEAD", job.queue, job.queue, bury.id)
        self.new_seq()
        job.reason = job.reason if bury.reason is None else bury.reason
        job.priority = job.priority if bury.priority is None else bury.priority
        self.stop(job)
        job.buried, job.fade_ms = True, None
        self.jobs.remove(job)
        self.buried.append(job)
        self.tell_death(job)
        self.regroup()
        self.left_queue(job.queue)
        return Finished(not self.unfinished(job.queue), False)

    def _later(self, job: ModelJob, later: End) -> None:
        self.count(job.queue, "later")
        if not later.first or later.priority is not None:
            job.went_through(releases=1)
            delay_ms = 0 if later.when is None else max(0, self.time_of(later.when) - self.clock_ms)
            job.counts = replace(job.counts, delay_ms=delay_ms)
        dies = not later.yielded and self.exhausted(job)
        stays = dies or later.priority is None
        self.tell("LATER", job.queue, job.priority if stays else later.priority or 0, later.id)
        if dies:
            self.die(job)
            return
        job.attempts -= later.yielded
        if later.priority is not None:
            job.priority = later.priority
        if later.first:
            job.back_ms = self.clock_ms
        says_when = later.first or later.yielded or later.when is not None
        number = job.id or 0
        backoff_ms = 0 if says_when else self.backoff_ms(number, job.attempts, job.queue)
        self.come_back(job, later.when, later.first, backoff_ms)

    def undo(self, job: ModelJob, clock_ms: int) -> None:
        if self.cancelling(job.item):
            self.stop(job, charged=False)
            self.cancel_job(job)
            return
        job.attempts -= 1
        job.went_through(reserves=-1)
        job.hand_outs = job.hand_outs[:-1]
        if job.at_ms is not None and job.at_ms > clock_ms:
            self.become_delayed(job, job.at_ms, charged=False)
            return
        fade_ms = job.fade_ms
        self.become_ready(job, None, charged=False)
        job.fade_ms = fade_ms

    def _touch(self, job: ModelJob, touch: Touch) -> Reply:
        if self.fair is not None or self.ran_ms is not None:
            self.charge(job)
            job.since_ms = self.clock_ms
        if touch.expire_ms is not None:
            then = touch.then
            if then is Then.DEFAULT:
                then = self.settings.expire_default if job.deadline_ms is None else job.then
            self.lease(job, touch.expire_ms, then)
            job.then = then
        else:
            job.deadline_ms = None if job.lease_ms is None else self.clock_ms + job.lease_ms
            job.graced = False
        if touch.progress is not None and touch.progress != job.progress:
            job.progress = touch.progress
            self.tell("PROGRESS", job.queue, touch.id, touch.progress)
        return Leased(job.deadline_ms)

    # --- selectors

    def selected(self, selector: AnySelector) -> ModelJob | None:
        """Return the job that is named."""
        if isinstance(selector, Place):
            named = (selector.queue, selector.seq)
            return next((job for job in self.jobs if (job.queue, job.seq) == named and job.id is None), None)
        if isinstance(selector, Number):
            everywhere = [*self.jobs, *self.buried]
            return next((job for job in everywhere if job.known_as == selector.number), None)
        if selector.id:
            return self.job(selector.id)
        return self.holder(selector.queue, selector.key)

    def await_end(self, operation: Await) -> Reply:
        """Wait for the end of a job: it has ended, is dead, or its end is still to come."""
        selector = operation.selector
        if isinstance(selector, Number):
            return self.answer_to(self.selected(selector), self.record(selector.number))
        return self.answer_to(self.holder(selector.queue, selector.key), None)

    def delete_job(self, delete: Delete) -> Reply:
        """Delete a job or a record."""
        job = self.selected(delete.selector)
        if delete.ended:
            record = self.record(delete.selector.number) if isinstance(delete.selector, Number) else None
            if record is None or job is not None:
                return NotFound()
            self.take_record(record)
            return Finished(False, False)
        if job is None:
            return NotFound()
        if job.id is not None and delete.unless_running:
            return JobRunning()
        if job.id is not None and isinstance(delete.selector, Selector) and not delete.selector.id:
            return JobRunning()
        if job.id is not None:
            self.use(job.queue)
            if not delete.own:
                self.tell("CANCEL", job.queue, job.id)
        self.count(job.queue, "deleted")
        self.remove(job)
        self.ended(job, EndState.CANCELLED)
        ended = self._finished(job.queue, job.item)
        return Finished(False, ended.item_done) if job.buried else ended

    def change_job(self, change: Change) -> Reply:
        """Change the named fields of a job."""
        job = self.selected(change.selector)
        if job is None:
            return NotFound()
        if job.id is not None and isinstance(change.selector, Selector) and not change.selector.id:
            return JobRunning()
        if (change.no_item or change.item is not None) and (
            self.cancelling(job.item) or self.cancelling(change.item)
        ):
            return ItemCancelled()
        changed = change.data is not None or change.headers is not None
        size = len(b"".join(self.rewritten(job, change)))
        if changed and 0 < self.settings_of(job.queue).data_bytes_max < size:
            return DataTooLarge()
        self.rewrite(job, change)
        if change.priority is not None:
            job.priority = change.priority
        item = None if change.no_item else job.item if change.item is None else change.item
        if item != job.item:
            if job.item is not None:
                self.left.append(job.item)
            job.item = item
        if change.when is not None:
            job.at_ms = self.time_of(change.when)
        put_off = job.due_ms is not None and job.due_ms > self.clock_ms
        if not job.buried and job.id is None and (change.when is not None or (job.delayed and not put_off)):
            self._reschedule(job)
        return Accepted()

    def _reschedule(self, job: ModelJob) -> None:
        if (job.until is Until.FAILED and job.told) or any(
            one[0] is job and one[2] == CANCELLED for one in self.releases
        ):
            return                      # it is READY or removed soon, whatever its time
        if job.waits:
            job.told = []               # notices received so far do not count;
            return                      # its time counts when its items are finished
        if job.at_ms is not None and job.at_ms > self.clock_ms:
            self.become_delayed(job, job.at_ms)
            job.told = []
        elif job.delayed:
            self.become_ready(job, self.next_place(job), job.at_ms)
        else:
            self.place_at(job, job.at_ms or 0)
