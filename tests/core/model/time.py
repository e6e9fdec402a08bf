"""The life of a job in the reference model: how it becomes ready, how it dies, and what time does to it."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import Due, EndState, GroupBy, HoldThen, JobState, NotFound, Order, Then, Until, WorkerPool
from tests.core.model.fair import ModelFair
from tests.core.model.jobs import ModelFate, ModelJob, is_group, random_bits
from tests.core.model.sessions import ModelSessions

# What an item decides for jobs that wait for it.
MET, UNMET, AT_ONCE, CANCELLED = "met", "unmet", "at once", "cancelled"

BUCKET_MS = 16          # leases and sessions end when the 16 ms in which their deadline lies are over
DUE_MAX = 1000
NAME_MAX = 255
WORKER_SILENT_MS = 30_000       # a name may go to another session when its own was not used for so long
WORKER_LEFT_MS = 60_000         # how long an operator's last setting outlives its pool
LATEST_MS = 2**62       # a time beyond is this one
DEAD_SUFFIX = "_dead"


class ModelTime(ModelFair):
    """Ends of leases and sessions, TTLs, dependencies, activations."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions = ModelSessions()
        self.workers: dict[str, WorkerPool] = {}
        self.bits = 0               # of the entry
        self.releases: list[tuple[ModelJob, str, str]] = []     # jobs that do not know yet what this item decided

    # --- steps of a job

    def become_ready(
        self, job: ModelJob, seq: int | None, time_ms: int | None = None, *, charged: bool = True,
    ) -> None:
        """Make it READY at this place, or at its old one without `seq`; `time_ms`: when it is activated."""
        self.stop(job, charged=charged)
        if seq is None:
            self.place_at(job, job.place_ms)
        else:
            job.seq = seq
            self.place_at(job, self.clock_ms if time_ms is None else time_ms)
        job.delayed = False
        job.due_ms = None
        job.waits, job.told = [], []
        job.fade_ms = None if job.ttl_ms is None else self.clock_ms + job.ttl_ms
        self.tell_death(job)
        self.regroup()

    def become_delayed(self, job: ModelJob, due_ms: int | None, *, charged: bool = True) -> None:
        """Delay it; None: until items are finished."""
        self.stop(job, charged=charged)
        job.delayed = True
        job.due_ms = due_ms
        job.fade_ms = None
        self.regroup()

    def place_at(self, job: ModelJob, time_ms: int) -> None:
        """Return the place of a job that became active then."""
        if job.stays:
            time_ms = job.seq // 1024
        job.place_ms = time_ms if self.settings_of(job.queue).order is Order.TIME else 0

    def time_of(self, when: Due) -> int:
        """Return the time that is meant."""
        return self.clock_ms + when.delay_ms if when.at_ms is None else sorted([0, when.at_ms, LATEST_MS])[1]

    def come_back(self, job: ModelJob, when: Due | None = None, first: bool = False, backoff_ms: int = 0) -> None:
        """Let a job wait again after a hand-out: for its time, at the end, or where it was (`first`)."""
        if when is not None:
            job.at_ms = self.time_of(when)
        if not first:
            job.seq = self.next_place(job)
        if backoff_ms:
            job.counts = replace(job.counts, delay_ms=backoff_ms)
            self.become_delayed(job, max(self.clock_ms + backoff_ms, job.at_ms or 0))
        elif job.at_ms is not None and job.at_ms > self.clock_ms:     # also by a CHANGE while it ran
            self.become_delayed(job, job.at_ms)
        elif first:
            self.become_ready(job, None)
        else:
            self.become_ready(job, job.seq, None if when is None else job.at_ms)

    def set_time(self, job: ModelJob, time_ms: int | None) -> None:
        """Set its time; a periodic job without one counts from now."""
        job.at_ms = self.clock_ms if time_ms is None and job.every_ms is not None else time_ms

    def backoff_ms(self, number: int, attempts: int, queue: str) -> int:
        """Return how long a job waits after a hand-out that failed."""
        settings = self.settings_of(queue)
        full_ms = settings.backoff_ms
        for _ in range(min(attempts - 1, 62)):
            full_ms = min(2 * full_ms, settings.backoff_max_ms)
        tenths = full_ms // 10 + 1
        return full_ms - random_bits(self.bits + number) * tenths // 2**64

    def failed(self, job: ModelJob, *, expired: bool = False, asked: bool = False) -> None:
        """End a hand-out without success: the job waits again, or dies. `asked`: a client put it back."""
        if self.cancelling(job.item):
            self.cancel_job(job)
            return
        if not expired:
            self.count(job.queue, "later")
            self.tell("LATER", job.queue, job.priority, job.id or 0)
        if self.exhausted(job):
            self.die(job)
        else:
            self.come_back(job, backoff_ms=0 if asked else self.backoff_ms(job.id or 0, job.attempts, job.queue))

    def exhausted(self, job: ModelJob) -> bool:
        """Return whether all of its attempts are used."""
        tries = self.settings_of(job.queue).tries
        if job.tries is not None and job.origin is None:
            tries = job.tries
        return 0 < tries <= job.attempts

    def die(self, job: ModelJob) -> None:
        """Move it to the dead queue."""
        if self.cancelling(job.item):
            self.cancel_job(job)
            return
        self.count(job.queue, "dead")
        job.went_through(buries=1)
        job.counts = replace(job.counts, died_ms=self.clock_ms)
        self.use(job.queue)
        name = self.settings_of(job.queue).dead or job.queue[: NAME_MAX - len(DEAD_SUFFIX)] + DEAD_SUFFIX
        self.tell("DEAD", job.queue, name, job.id or 0)
        job.origin = job.queue
        job.at_ms = None
        job.ttl_ms = None
        self.carry(job, name)

    def group_here(self, job: ModelJob) -> None:
        """Decide its group again: the queue that it enters may derive it from the job."""
        settings = self.settings_of(job.queue)
        if settings.group_by is GroupBy.ITEM:
            job.group = job.item if is_group(job.item) else None
        elif settings.group_by is GroupBy.HEAD:
            lines = dict(line.split(b": ", 1) for line in job.headers.split(b"\n") if b": " in line)
            value = lines.get(settings.group_header.encode(), b"").decode()
            job.group = value if is_group(value) else None

    def carry(self, job: ModelJob, queue: str) -> None:
        """Append the job to another queue; its key stays behind when it is taken there."""
        if self.holder(queue, job.key) not in (None, job):
            job.key = None
        self.stop(job)         # in the queue where it ran, which is used by that
        old, job.queue = job.queue, queue
        self.group_here(job)
        self.become_ready(job, self.next_place(job))
        self.left_queue(old)

    def done(self, job: ModelJob, last: bool = False, result: bytes = b"") -> int | None:
        """Finish the job, or, if it is a periodic one, set its next activation."""
        self.count(job.queue, "done")
        self.use(job.queue)
        if job.every_ms is None or last or job.origin is not None or self.cancelling(job.item):
            self.remove(job)
            if job.item is not None:
                self.done_of[job.item] += 1
            self.keep_key(job)
            self.ended(job, EndState.DONE, result)
            return None
        next_ms = job.at_ms or 0
        next_ms += max(0, (self.clock_ms - next_ms) // job.every_ms + 1) * job.every_ms
        job.at_ms = next_ms
        job.attempts = 0
        job.error = None
        self.become_delayed(job, next_ms)
        job.seq = self.next_place(job)
        return next_ms

    def stop(self, job: ModelJob, *, charged: bool = True) -> None:
        """End the hand-out of a job, and charge its group unless `charged` is False."""
        if job.id is not None:
            self.use(job.queue)
            if charged:
                self.charge(job)
        job.id = job.progress = None
        job.deadline_ms = None
        job.lease_ms = None
        job.then = Then.LATER
        job.graced = False
        job.session = None

    def drop_texts(self) -> None:
        """Drop texts at the end of an entry: the oldest ones of each queue that has too many."""
        everywhere = [*self.jobs, *self.buried]
        for queue in {job.queue for job in everywhere}:
            texts = sorted((job.error, job) for job in everywhere if job.queue == queue and job.error is not None)
            while sum(len(error[1]) for error, _ in texts) > self.settings_of(queue).error_bytes:
                texts.pop(0)[1].error = None

    # --- what is due

    def end_due(self) -> None:
        """End what is due, at the beginning of an entry."""
        due = [(job.deadline_ms, "lease", job.id or 0) for job in self.running() if self._over(job.deadline_ms)]
        due += [(one.deadline_ms, "session", one.number) for one in self.sessions.all if self._over(one.deadline_ms)]
        left = DUE_MAX
        for _, kind, number in sorted(due):
            if left > 0:
                left -= self.end_session(number, left, lapsed=True) if kind == "session" else self._end_lease(number)
                self.end_operation()
        for _, item in sorted((hold.deadline_ms, item) for item, hold in self.holds.items()):
            if left > 0 and self.holds[item].deadline_ms <= self.clock_ms:
                left -= 1
                self.end_hold(item, cancels=self.holds[item].then is HoldThen.CANCEL)
                self.end_operation()
        shared = self.fair is not None          # then all that is due is one portion
        for portion in (
            self._end_ttls, self._remove_cancelled, self._release, self._activate, self.forget_groups, self.offer_more,
            self.end_group_pauses,
        ):
            done = portion(left if shared else DUE_MAX)
            left -= done
            self.settle()
            self.note_idle()

    def cancel(self, item: str, reason: str | None) -> None:
        """Stop handing out jobs of the item, and notify the holders of its running ones."""
        if self.cancelling(item):
            return
        fate = self.fates.setdefault(item, ModelFate())
        fate.cancelling, fate.reason = True, reason
        for job in self.running():
            if job.item == item:
                self.tell("CANCEL", job.queue, job.id or 0, *([] if reason is None else [reason]))

    def withheld(self, queue: str) -> bool:
        """Return whether there is a job in the queue that can be taken, except for its item."""
        cancelled = {item for item, fate in self.fates.items() if fate.cancelling}
        return bool(cancelled) and any(
            job.queue == queue and job.ready and job.item in cancelled for job in self.jobs)

    def _remove_cancelled(self, most: int) -> int:
        left = most
        for item in sorted(one for one in self.fates if self.cancelling(one)):
            mine = [job for job in self.jobs if job.item == item and job.id is None]
            mine.sort(key=lambda job: (job.delayed, "" if job.delayed else job.queue, job.delayed and (
                LATEST_MS * 2 if job.due_ms is None else job.due_ms, job.seq), not job.delayed and job.place()))
            for job in [*mine, *[one for one in self.buried if one.item == item]][:left]:
                left -= 1
                self.cancel_job(job)
                self.end_operation()
        return most - left

    def end_hold(self, item: str, *, cancels: bool = False) -> None:
        """End the hold of an item, which `cancels` the item or not."""
        if cancels:
            self.cancel(item, None)
        del self.holds[item]
        self.left.append(item)

    def _end_ttls(self, most: int) -> int:
        ending: list[tuple[int, int, str, ModelJob | None]] = [
            (job.fade_ms, job.seq, "", job) for job in self.jobs if job.ready and job.fade_ms is not None]
        ending += [(one.pause_ends_ms, 0, name, None) for name, one in self.queues.items() if one.pause_ends_ms]
        over = sorted((one for one in ending if one[0] <= self.clock_ms), key=lambda one: one[:3])[:most]
        for _, _, queue, job in over:
            if job is None:
                self.end_pause(queue)
                continue
            self.count(job.queue, "expired_ttl")
            self.tell("TTL", job.queue)
            self.remove(job)
            self.ended(job, EndState.EXPIRED)
            self.end_operation()
        return len(over)

    def _over(self, deadline_ms: int | None) -> bool:
        return deadline_ms is not None and deadline_ms // BUCKET_MS < self.clock_ms // BUCKET_MS

    def _end_lease(self, number: int) -> int:
        job = self.job(number)
        if job is None:
            return 0                # its session ended first
        self.count(job.queue, "expired")
        self.tell("EXPIRED", job.queue, number, job.then.name)
        job.went_through(timeouts=1)
        if job.then is Then.DONE:
            self.done(job)
        elif job.then is Then.DEAD:
            self.die(job)
        else:
            self.failed(job, expired=True)
        return 1

    def end_workers(self, ended: set[int]) -> None:
        """End these sessions: of their pools only an operator's last setting is kept, if it was not delivered."""
        for name, one in list(self.workers.items()):
            if one.session in ended and one.unheard:
                self.workers[name] = replace(one, session=0, beat_ms=self.clock_ms)
            elif one.session in ended:
                del self.workers[name]

    def end_session(self, number: int, ends_max: int, *, lapsed: bool = False) -> int:
        """End the session: a portion of its jobs waits again; returns how many."""
        (session,) = [one for one in self.sessions.all if one.number == number]
        if not session.ending:
            session.lapsed = lapsed
        self.end_workers({number})
        bound = [job for job in self.running() if job.session == number]
        if len(bound) > ends_max:
            bound.sort(key=lambda job: (-job.priority, job.seq))
        for job in bound[:ends_max]:
            self.failed(job, asked=not session.lapsed)
            self.end_operation()
        left = max(0, ends_max - len(bound))
        for queue in sorted(name for name, settings in self.queues.items() if settings.bound == number):
            if left > 0:
                removed, gone = self.delete_all(queue, left)
                left -= max(1, removed) if gone else left
                self.end_operation()
        if left == 0:
            session.ending = True
            session.deadline_ms = min(session.deadline_ms, self.clock_ms)
            return ends_max
        self.sessions.all.remove(session)
        return ends_max - left + 1

    def settle(self) -> None:
        """Let items decide, after an operation, for the jobs that wait for them."""
        for item in self.newly_failing:
            self._decide(item, Until.FAILED, AT_ONCE)
        for item in [one for one in self.left if one in self.cancelled_items]:
            self._decide(item, Until.END, MET)
            self._decide(item, Until.DONE, CANCELLED)
            self._decide(item, Until.FAILED, AT_ONCE)
        for item in sorted({name for job in self.jobs for name in job.waits}):
            if not self.has_live(item):
                self._decide(item, Until.END, MET)
        ended = sorted({*self.left}, key=lambda item: max(at for at, one in enumerate(self.left) if one == item))
        for item in ended:
            if not self.has_item(item):
                self._decide(item, Until.DONE, MET)
                self._decide(item, Until.FAILED, UNMET)
        self.releases = [one for one in self.releases if one[0] in self.jobs and one[1] in one[0].told]
        self.left, self.newly_failing, self.cancelled_items = [], [], set()

    def _decide(self, item: str, until: Until, outcome: str) -> None:
        for job in sorted(self.jobs, key=lambda job: job.seq):
            if item in job.waits and job.until is until:
                job.waits.remove(item)
                job.told.append(item)
                self.releases.append((job, item, outcome))

    def _release(self, most: int) -> int:
        left = most
        while self.releases and left:
            left -= 1
            job, item, outcome = self.releases.pop(0)
            job.told.remove(item)
            if outcome == CANCELLED:
                job.waits, job.told = [], []
                self.releases = [one for one in self.releases if one[0] is not job]
                if job.item is not None:
                    fate = self.fates.setdefault(job.item, ModelFate())
                    fate.tainted, fate.cancelled = True, fate.cancelled + 1
                self.end_removed(job, None)
                self.end_operation()
                self.settle()
                continue
            if outcome == AT_ONCE:
                job.waits, job.told = [], []
                self.releases = [one for one in self.releases if one[0] is not job]
            if job.waits or job.told:
                continue
            if outcome == UNMET:
                self.tell_end(job, NotFound())
                self.remove(job)
                self.end_operation()
                self.settle()
            else:
                job.due_ms = self.clock_ms if job.at_ms is None else job.at_ms
        return most - left

    def _activate(self, most: int) -> int:
        left = most
        due = [job for job in self.jobs if job.delayed and job.due_ms is not None and job.due_ms <= self.clock_ms]
        first: dict[str, int] = {}
        for job in due:
            first[job.queue] = min(job.due_ms or 0, first.get(job.queue, job.due_ms or 0))
        for queue in sorted(first, key=lambda name: (first[name], name)):
            portion = self.settings_of(queue).portion
            jobs = sorted((job for job in due if job.queue == queue), key=lambda job: (job.due_ms or 0, job.seq))
            for job in jobs[: min(portion, left)]:
                self.become_ready(job, self.next_place(job), job.at_ms if job.at_ms == job.due_ms else None)
                left -= 1
        return most - left

    # --- running jobs

    def job(self, number: int) -> ModelJob | None:
        """Return the running job of this id."""
        return next((job for job in self.jobs if job.id is not None and job.id == number), None)

    def running(self) -> list[ModelJob]:
        """Return running jobs in rising id."""
        return sorted((job for job in self.jobs if job.state() is JobState.RUNNING), key=lambda job: job.id or 0)

    def grant_grace(self, grace_ms: int, *, once: bool = True) -> None:
        """Prolong leases and sessions after a time in which clients could not use them."""
        until_ms = self.clock_ms + grace_ms
        for job in self.running():
            if job.deadline_ms is None or job.deadline_ms >= until_ms or (once and job.graced):
                continue
            if grace_ms > 0:
                job.deadline_ms = until_ms
                job.graced = job.graced or once
        if grace_ms > 0:
            self.sessions.grant_grace(until_ms, once=once)
            for hold in self.holds.values():
                if hold.deadline_ms < until_ms and not (once and hold.graced):
                    hold.deadline_ms, hold.graced = until_ms, hold.graced or once

    def grant_failover_grace(self, grace_ms: int, silence_ms: int) -> None:
        """Prolong leases after a time without a leader; a short one gets at most its own length."""
        if grace_ms <= 0:
            return
        heard_ms = self.clock_ms + min(max(silence_ms, 0), grace_ms)
        for job in self.running():
            until_ms = heard_ms + (grace_ms if job.lease_ms is None else min(grace_ms, job.lease_ms))
            if job.deadline_ms is not None and job.deadline_ms < until_ms and not job.graced:
                job.deadline_ms, job.graced = until_ms, True
        self.sessions.grant_grace(heard_ms + grace_ms)
        for hold in self.holds.values():
            until_ms = heard_ms + min(grace_ms, hold.length_ms)
            if hold.deadline_ms < until_ms and not hold.graced:
                hold.deadline_ms, hold.graced = until_ms, True
