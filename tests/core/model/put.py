"""Operations that bring jobs into the queues of the reference model: Put, Move, Kick."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from sockpqd.core import (
    DURATION_MS_MAX,
    Change,
    DataTooLarge,
    Due,
    EndState,
    Finished,
    GroupBy,
    GroupDecided,
    IgnoredNumber,
    ItemCancelled,
    JobCounts,
    JobDropped,
    JobExists,
    JobIgnored,
    JobReplaced,
    JobRunning,
    JobState,
    Kick,
    Move,
    Moved,
    MoveJobs,
    NotFound,
    Number,
    OnDup,
    Overflow,
    Place,
    Put,
    PutWith,
    QueueFull,
    QueueNotFound,
    QueuePaused,
    Removed,
    Reply,
    Stored,
    StoredNumber,
    Until,
)
from sockpqd.core.store.body import bytes_of
from tests.core.model.cluster_map import elsewhere, own_name
from tests.core.model.give import LONGEST_MS, ModelGive
from tests.core.model.jobs import ModelJob, is_group
from tests.core.model.queues import PORTION


class ModelPut(ModelGive):
    """The operations that bring jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.next_item = 1
        self.cluster_id: bytes | None = None
        self.map = 0, b""                   # version and text of the map of clusters

    def elsewhere(self, names: Iterable[str]) -> Reply | None:
        """Return the refusal of the first of these names that another cluster of the map owns."""
        return elsewhere(self.map[1].decode(), self.cluster_id, names) if self.map[0] else None

    def put(self, operation: Put | PutWith) -> Reply:
        """Add a new job, unless it is refused or its key exists."""
        wish = PutWith(operation) if isinstance(operation, Put) else operation
        put = wish.put
        self.put_item = None
        known = self.remembered.get((put.queue, "" if wish.dedup is None else wish.dedup.key))
        if wish.dedup is not None and known is not None:
            return self._there_is(wish, known[1])
        if wish.group is not None and self.settings_of(put.queue).group_by is not GroupBy.PUT:
            return GroupDecided()
        refusal = self._closed(put.queue, put.data)
        if refusal is None and not put.new_item and self.cancelling(put.item):
            refusal = ItemCancelled()
        if refusal is not None:
            return refusal
        twin = self.holder(put.queue, wish.key)
        if twin is not None or self.key_kept(put.queue, wish.key):
            if wish.on_dup is OnDup.IGNORE:
                return self._there_is(wish, None if twin is None else twin.known_as)
            if twin is None or wish.on_dup is OnDup.FAIL:
                return JobExists()
            if twin.id is not None:
                return JobRunning()
            if self.cancelling(twin.item):
                return ItemCancelled()
        elif self._refuses(put.queue):
            return QueueFull()
        if self.remembers_all(put.queue, wish):
            return QueueFull()
        waits = self._to_wait_for(wish)
        if twin is None and wish.until is Until.FAILED and wish.after and not any(map(self.has_item, wish.after)):
            return JobDropped()
        leaving = self._leaving(put.queue) if twin is None else None
        item = self.new_item() if put.new_item else put.item
        if twin is not None and twin.item is not None:
            self.left.append(twin.item)
        if wish.group is not None:
            self.use_fair()
        job = twin or ModelJob(put.queue, put.priority, self.new_seq(), put.data, item, self.next_seq)
        if twin is None:
            self.jobs.append(job)
            job.stays = wish.number
        job.own_lease_ms = None if wish.lease_ms is None else min(max(0, wish.lease_ms), LONGEST_MS)
        job.priority, job.item = put.priority, item
        job.headers, job.data = put.data[: wish.head], put.data[wish.head :]
        if twin is not None and twin.delayed:
            job.back_ms = self.clock_ms
        job.key, job.tries, job.every_ms = wish.key, wish.tries, wish.every_ms
        job.ttl_ms = self._ttl_ms(put.queue, wish.ttl_ms)
        job.waits, job.told, job.reason, job.error = waits, [], None, None
        job.until = wish.until
        job.group = wish.group
        if self.settings_of(put.queue).group_by is GroupBy.USER:
            job.group = wish.user if is_group(wish.user) else None
        self.group_here(job)
        if job.known_as is None and self._gets_number(job) and wish.when is not None:
            job.counts = JobCounts(delay_ms=max(0, self.time_of(wish.when) - self.clock_ms))
        self._start(job, wish.when)
        self.use(put.queue)
        if wish.dedup is not None:
            until_ms = self.clock_ms + min(max(wish.dedup.duration_ms, 1), 86_400_000)
            self.remembered[put.queue, wish.dedup.key] = (until_ms, job.known_as)
        if twin is not None:
            return JobReplaced()
        self.put_item = item
        self.count(put.queue, "put")
        self.tell("PUT", put.queue, put.priority)
        if leaving is not None:
            self.remove(leaving)
            self.ended(leaving, EndState.CANCELLED)
            self.tell("DROP", put.queue)
        name = item if put.new_item else None
        return StoredNumber(job.seq, name) if job.stays else Stored(name)

    def _gets_number(self, job: ModelJob) -> bool:
        """Give a number to a job without one that comes into its queue, if it is to have one; returns whether it is."""
        if job.stays or self.settings_of(job.queue).numbered:
            job.known_as, job.counts, job.hand_outs = job.seq, JobCounts(), ()
        return job.known_as is not None

    @staticmethod
    def _there_is(wish: PutWith, number: int | None) -> Reply:
        return IgnoredNumber(number) if wish.number and number is not None else JobIgnored()

    def _to_wait_for(self, wish: PutWith) -> list[str]:
        """Return the items for which the job has to wait."""
        items = [one for one in dict.fromkeys(wish.after) if self.has_item(one)]
        if wish.until is Until.FAILED and any(self.has_lost(one) for one in items):
            return []
        return [one for one in items if wish.until is not Until.END or self.has_live(one)]

    def remembers_all(self, queue: str, wish: PutWith) -> bool:
        """Return whether the queue cannot remember one more."""
        most = self.queues[queue].dedup_max if queue in self.queues else 10_000
        return wish.dedup is not None and len([name for name in self.remembered if name[0] == queue]) >= most

    def _start(self, job: ModelJob, when: Due | None) -> None:
        time_ms = None if when is None else self.time_of(when)
        self.set_time(job, time_ms)
        if job.waits:
            self.become_delayed(job, None)
        elif time_ms is not None and time_ms > self.clock_ms:
            self.become_delayed(job, time_ms)
        else:
            self.become_ready(job, job.seq, time_ms)

    def new_item(self) -> str:
        own = own_name(self.map[1].decode(), self.cluster_id or b"")
        end = f".{own}" if own else ""
        while self.has_item(f"i{self.next_item}{end}"):
            self.next_item += 1
        self.next_item += 1
        return f"i{self.next_item - 1}{end}"

    def _closed(self, queue: str, data: bytes) -> Reply | None:
        """Return the reason why the queue refuses such jobs; None if it accepts them."""
        settings = self.settings_of(queue)
        if not self.settings.autocreate and not self.known(queue):
            return QueueNotFound()
        if settings.paused_in:
            return QueuePaused()
        if 0 < settings.data_bytes_max < len(data):
            return DataTooLarge()
        return None

    def _ttl_ms(self, queue: str, wish_ms: int | None) -> int | None:
        if wish_ms is None:
            return self.settings_of(queue).ttl_ms or None
        return None if wish_ms >= DURATION_MS_MAX else wish_ms

    def _refuses(self, queue: str) -> bool:
        return self._full(queue) and self.settings_of(queue).overflow is Overflow.REFUSE

    def _leaving(self, queue: str) -> ModelJob | None:
        """Return the job that makes room for a new one."""
        if not self._full(queue) or self._refuses(queue):
            return None
        ready, delayed = self.in_state(queue, JobState.READY), self.in_state(queue, JobState.DELAYED)
        least = min((job.priority for job in ready), default=0)
        return next((job for job in ready if job.priority == least), None) or delayed[-1]

    def _full(self, queue: str) -> bool:
        waiting = [*self.in_state(queue, JobState.READY), *self.in_state(queue, JobState.DELAYED)]
        return 0 < self.settings_of(queue).capacity <= len(waiting)

    @staticmethod
    def rewritten(job: ModelJob, wish: Change | Move) -> tuple[bytes, bytes]:
        """Return the headers and the body that it will have."""
        return job.headers if wish.headers is None else wish.headers, job.data if wish.data is None else wish.data

    def rewrite(self, job: ModelJob, wish: Change | Move) -> None:
        """Change headers and body. What stays of the old data has to be read."""
        if (wish.headers is not None and wish.data is None) or (wish.data is not None and wish.headers is None
                                                                and job.headers):
            self.spent += job.size
        job.headers, job.data = self.rewritten(job, wish)

    def move(self, move: Move) -> Reply:
        """Move a job: done here, put there."""
        job = self.job(move.id)
        if job is None:
            return NotFound()
        refusal = self._closed(move.queue, b"".join(self.rewritten(job, move)))
        if refusal is not None:
            return refusal
        taken = self.holder(move.queue, job.key) is not None or self.key_kept(move.queue, job.key)
        if taken and move.queue != job.queue:
            return JobExists()
        if self._refuses(move.queue):
            return QueueFull()
        old = job.queue
        if self.cancelling(job.item):
            self.cancel_job(job)
            return Finished(not self.unfinished(old), False)
        leaving = self._leaving(move.queue)
        self.use(old)
        self.count(old, "done")
        self.tell("DONE", old, job.priority, move.id)
        self.charge(job)
        job.queue = move.queue
        self.count(move.queue, "put")
        self.rewrite(job, move)
        self.group_here(job)
        job.priority = job.priority if move.priority is None else move.priority
        self.tell("PUT", move.queue, job.priority)
        job.attempts = 0
        job.every_ms = job.origin = job.at_ms = job.reason = job.error = None
        job.counts = replace(job.counts, died_ms=0)
        job.ttl_ms = self._ttl_ms(move.queue, None)
        job.seq = self.next_place(job)
        job.id = None
        if job.known_as is None:
            self._gets_number(job)
        self._start(job, move.when)
        self.use(move.queue)
        if leaving is not None:
            self.remove(leaving)
            self.ended(leaving, EndState.CANCELLED)
            self.tell("DROP", move.queue)
        self.left_queue(old)
        return Finished(not self.unfinished(old), False)

    def move_jobs(self, move: MoveJobs) -> Reply:
        """Move jobs into another queue: as many as are ready, or died elsewhere."""
        if move.seq is not None:
            return self._move_one(move, move.seq)
        if move.left is None and not self.known(move.queue) and not self.in_state(move.queue, JobState.DEAD):
            return QueueNotFound()
        if move.queue == move.to:
            return Moved(0)
        state, source = (JobState.READY, move.queue) if move.died is None else (JobState.DEAD, move.died)
        seen = [job for job in self.in_state(source, state) if move.behind is None or job.place() > move.behind]
        left = len(seen) if move.left is None else move.left
        seen = seen[: max(0, left)]
        moved = passed = 0
        behind = move.behind
        for job in seen:
            if moved == min(max(0, move.count), PORTION) or passed == PORTION:
                return Moved(moved, left, behind) if moved < move.count else Moved(moved)
            left -= 1
            if job.queue != move.queue:
                passed, behind = passed + 1, job.place()
                continue
            if self.cancelling(job.item):
                passed += 1
                self.cancel_job(job)
                self.end_operation()
                continue
            refusal = self._refused_move(job, move.to)
            if refusal is not None:
                return Moved(moved, refusal=refusal)
            self._transfer(job, move.to)
            moved += 1
        return Moved(moved)

    def _move_one(self, move: MoveJobs, seq: int) -> Reply:
        job = next((job for job in self.in_state(move.queue, JobState.READY) if job.seq == seq), None)
        if job is None or move.queue == move.to:
            return NotFound()
        if self.cancelling(job.item):
            return ItemCancelled()
        refusal = self._refused_move(job, move.to)
        if refusal is not None:
            return refusal
        self._transfer(job, move.to)
        return Moved(1)

    def _refused_move(self, job: ModelJob, to: str) -> Reply | None:
        """Return why the queue does not accept the job."""
        refusal = self.elsewhere([to]) or self._closed(to, job.headers + job.data)
        if refusal is None and (self.holder(to, job.key) is not None or self.key_kept(to, job.key)):
            refusal = JobExists()
        if refusal is None and self._refuses(to):
            refusal = QueueFull()
        return refusal

    def _transfer(self, job: ModelJob, to: str) -> None:
        leaving, old = self._leaving(to), job.queue
        self.jobs.remove(job)               # its group leaves its level and comes back
        self.regroup()
        self.jobs.append(job)
        if job.origin is not None:
            self.set_time(job, None)
        job.origin = job.reason = job.error = None
        job.attempts = 0
        job.counts = replace(job.counts, died_ms=0)
        job.ttl_ms = self._ttl_ms(to, None) if job.ttl_ms is None else job.ttl_ms
        self.carry(job, to)
        if job.known_as is None:
            self._gets_number(job)
        self.count(to, "put")
        self.tell("PUT", to, job.priority)
        self.use(to)
        if leaving is not None:
            self.remove(leaving)
            self.ended(leaving, EndState.CANCELLED)
            self.tell("DROP", to)
        self.left_queue(old)

    def _kick_here(self, kick: Kick) -> Reply:
        """Kick buried jobs, or else delayed ones."""
        buried = bool(self.in_state(kick.queue, JobState.BURIED)) if kick.buried is None else kick.buried
        jobs = self.in_state(kick.queue, JobState.BURIED if buried else JobState.DELAYED)
        jobs = self._passed([job for job in jobs if job.buried or job.due_ms is not None], kick.count)
        for job in jobs[:PORTION]:
            self.kick_one(job)
        return Removed(len(jobs[:PORTION]), len(jobs) > PORTION, buried)

    def _passed(self, jobs: list[ModelJob], count: int) -> list[ModelJob]:
        """Return the first of these, as many as are kicked; those of cancelled items among them end."""
        left: list[ModelJob] = []
        for job in jobs:
            if len(left) >= count:
                break
            if self.cancelling(job.item):
                self.cancel_job(job)
                self.end_operation()
            else:
                left.append(job)
        return left

    def _kick_selected(self, selector: Number | Place) -> Reply:
        job = self.selected(selector)
        dead = job is not None and isinstance(selector, Place) and job.origin is not None and not job.delayed
        if job is None or not (dead or job.buried or (job.delayed and job.due_ms is not None)):
            return NotFound()
        if self.cancelling(job.item):
            return ItemCancelled()
        self.kick_dead(job) if dead else self.kick_one(job)
        return Removed(1)

    def _kick_ended(self, selector: Number) -> Reply:
        record = self.record(selector.number)
        if record is None or self.selected(selector) is not None:
            return NotFound()
        if self.cancelling(record.view.item):
            return ItemCancelled()
        self.take_record(record)
        view, data = record.view, bytes_of(record.view.data)
        key = None if self.holder(view.queue, view.key) else view.key
        job = ModelJob(
            view.queue, view.priority, view.seq if record.stays else self.new_seq(), data[view.head:], view.item,
            view.seq, known_as=view.number, stays=record.stays,
            own_lease_ms=view.own_lease_ms, counts=view.counts or JobCounts(), key=key, tries=record.tries,
            ttl_ms=record.ttl_ms, group=view.group, headers=data[:view.head], hand_outs=record.hand_outs,
            back_ms=self.clock_ms,
        )
        job.went_through(kicks=1)
        self.group_here(job)
        self.jobs.append(job)
        self.become_ready(job, job.seq)
        self.tell("PUT", job.queue, job.priority)
        return Removed(1)

    def kick_one(self, job: ModelJob) -> None:
        job.kicked()
        if job.buried:
            job.reason = None
            job.attempts = 0
            self.set_time(job, None)
        self.dig_up(job)
        self.become_ready(job, self.next_place(job))
        self.tell("PUT", job.queue, job.priority)

    def kick(self, kick: Kick) -> Reply:
        """Kick dead jobs back to their queue, or others of it, or one."""
        if kick.selector is not None:
            if not kick.ended:
                return self._kick_selected(kick.selector)
            return NotFound() if isinstance(kick.selector, Place) else self._kick_ended(kick.selector)
        if kick.here:
            return self._kick_here(kick)
        dead = self._passed(self.in_state(kick.queue, JobState.DEAD), kick.count)
        for job in dead[:PORTION]:
            self.kick_dead(job)
        return Removed(len(dead[:PORTION]), len(dead) > PORTION)

    def kick_dead(self, job: ModelJob) -> None:
        queue = job.origin or ""
        self.jobs.remove(job)           # its group leaves its level and comes back
        self.regroup()
        self.jobs.append(job)
        job.origin = job.reason = None
        job.attempts = 0
        job.kicked()
        self.set_time(job, None)
        self.carry(job, queue)
        self.count(queue, "put")
        self.tell("PUT", queue, job.priority)
