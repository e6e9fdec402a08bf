"""The jobs of the reference model, the settings of its queues, and what the other parts need to know of them."""

from __future__ import annotations

from collections import Counter

from msgspec import structs

from sockpqd.core import (
    DURATION_MS_MAX,
    Accepted,
    BadSetting,
    ClusterSettings,
    Configure,
    ConfigureQueue,
    DeleteQueue,
    EndState,
    Event,
    GroupBy,
    JobEnded,
    JobState,
    NotFound,
    Order,
    PauseQueue,
    Policy,
    Purged,
    PurgeQueue,
    QueueExists,
    QueueNotEmpty,
    QueueNotFound,
    QueueSettings,
    Removed,
    Reply,
    Sched,
    TooManyQueues,
)
from sockpqd.core.ops.queues import QueueChange
from tests.core.model.awaited import ModelAwaited
from tests.core.model.jobs import ModelFate, ModelHold, ModelJob

QUEUES_MAX = 100_000
PORTION = 1000
RESORTED_MAX = 2_000

OnQueue = (
    ConfigureQueue | DeleteQueue | PurgeQueue | PauseQueue
    | Configure
)


class ModelQueues(ModelAwaited):
    """All jobs in one list, and the settings of the queues."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[ModelJob] = []                          # the unfinished ones
        self.buried: list[ModelJob] = []                        # in the order in which that happened
        self.queues: dict[str, QueueSettings] = {}              # those that have settings
        self.settings = ClusterSettings()
        self.kept: dict[tuple[str, str], int] = {}              # until when a key of a queue counts as taken
        self.remembered: dict[tuple[str, str], tuple[int, int | None]] = {}     # keys of DEDUP: until when; the number
        self.left: list[str] = []       # items, in the order in which a job left them, since the last operation
        self.clock_ms = 0
        self.next_seq = 1
        self.given_ms: dict[int, int] = {}                      # when each place was given
        self.used: dict[str, int] = {}                          # the last use of each queue with IDLE
        self.topics: dict[str, list[tuple[str, str | None]]] = {}       # the queues bound to each, and the patterns
        self.past: dict[str, Counter[str]] = {}                 # what happened in the queues that there are
        self.event_seq = 0                                      # how many events there have been
        self.events: list[Event] = []                           # those of this entry
        self.had: tuple[set[str], set[str]] = (set(), set())    # queues and items that were unfinished
        self.holds: dict[str, ModelHold] = {}                   # by item
        self.fates: dict[str, ModelFate] = {}                   # marks of cancelled items
        self.cancelled_items: set[str] = set()                  # that have ended since the last operation, and how
        self.owners: dict[str, str] = {}                        # for whom items were made
        self.newly_failing: list[str] = []                      # since the last operation
        self.failing: set[str] = set()                          # items that had a DEAD or BURIED job
        self.done_of: Counter[str] = Counter()                  # jobs that were done of each item that there is

    # --- what is asked

    def settings_of(self, queue: str) -> QueueSettings:
        """Return its settings; a queue without any has the defaults."""
        return self.queues.get(queue, QueueSettings())

    def unfinished(self, queue: str | None, item: str | None = None) -> bool:
        """Return whether there is a job of this queue and item."""
        return any(queue in (None, job.queue) and item in (None, job.item) for job in self.jobs)

    def has_item(self, item: str) -> bool:
        """Return whether there is a job of this item, even if only a buried one, or it is held."""
        return item in self.holds or any(item == job.item for job in [*self.jobs, *self.buried])

    def cancelling(self, item: str | None) -> bool:
        """Return whether the item is cancelled."""
        return item is not None and item in self.fates and self.fates[item].cancelling

    def has_lost(self, item: str) -> bool:
        """Return whether there is a DEAD or BURIED job of this item."""
        return any(item == job.item and job.lost for job in [*self.jobs, *self.buried])

    def has_live(self, item: str) -> bool:
        """Return whether there is another job of this item, or it is held."""
        return item in self.holds or any(item == job.item and not job.lost for job in self.jobs)

    def known(self, queue: str) -> bool:
        """Return whether there is such a queue."""
        known = queue in self.queues or self.unfinished(queue) or queue in self.bound_queues()
        return known or bool(self.in_state(queue, JobState.BURIED))

    def bound_queues(self) -> set[str]:
        """Return the queues that are bound to a topic."""
        return {queue for bindings in self.topics.values() for queue, _ in bindings}

    def drop_bindings(self, topic: str, gone: set[tuple[str, str | None]]) -> None:
        """Drop these bindings of the topic."""
        self.topics[topic] = [one for one in self.topics[topic] if one not in gone]
        if not self.topics[topic]:
            del self.topics[topic]
        for queue, _ in sorted(gone, key=str):
            self.left_queue(queue)

    def in_state(self, queue: str, state: JobState) -> list[ModelJob]:
        """Return its jobs in this state, the first one first."""
        if state is JobState.DEAD:
            return sorted((job for job in self.jobs if job.origin == queue and job.ready), key=ModelJob.place)
        if state is JobState.BURIED:
            return [job for job in self.buried if job.queue == queue]
        jobs = [job for job in self.jobs if job.queue == queue and job.state() is state]
        if state is JobState.DELAYED:
            return sorted(jobs, key=lambda job: (job.due_ms is None, job.due_ms, job.seq))
        return sorted(jobs, key=ModelJob.place if state is JobState.READY else lambda job: job.id or 0)

    def new_seq(self) -> int:
        """Return the place after all others."""
        self.given_ms[self.next_seq] = max(self.clock_ms, self.next_seq // 1024)    # later, if a CLONE's clock was
        self.next_seq += 1
        return self.next_seq - 1

    def next_place(self, job: ModelJob) -> int:
        """Return the tail of its priority; a job that stays at the place of its number returns to that."""
        if not job.stays:
            return self.new_seq()
        job.back_ms = self.clock_ms
        return job.seq

    # --- events

    def tell(self, event_type: str, name: str, *words: int | str) -> None:
        """Add the next event, with the words after its name."""
        self.event_seq += 1
        self.events.append(Event(self.event_seq, event_type, name, words))

    def end_operation(self) -> None:
        """Report queues, then items, that have no unfinished job any more and had one before the operation."""
        queues, items = self.had
        everywhere = [*self.jobs, *self.buried]
        self.had = {job.queue for job in self.jobs}, {
            *self.holds, *[job.item for job in everywhere if job.item is not None],
        }
        for queue in sorted(queues - self.had[0]):
            self.tell("FINQ", queue)
        for item in sorted(items - self.had[1]):
            self.tell("FINI", item)
            self.done_of.pop(item, None)
            self.owners.pop(item, None)
            fate = self.fates.pop(item, ModelFate())
            if fate.cancelling or fate.tainted:
                self.cancelled_items.add(item)
        failing = {job.item for job in everywhere if job.item is not None and job.lost}
        for item in sorted(failing - self.failing):
            self.tell("FAILI", item)
            self.newly_failing.append(item)
        self.failing = failing
        for queue, settings in sorted(self.queues.items()):
            waiting = len([job for job in self.jobs if job.queue == queue and job.id is None])
            half = settings.alarm // 2
            if settings.alarm and (waiting <= half if settings.alarmed else waiting >= settings.alarm):
                self.queues[queue] = structs.replace(settings, alarmed=not settings.alarmed)
                self.tell("DEPTH", queue, half if settings.alarmed else settings.alarm)

    # --- settings of groups of FAIR (fair.py)

    def regroup(self) -> None:
        """Note that a job has taken a step."""
        raise NotImplementedError

    def charge(self, job: ModelJob) -> None:
        """Charge a hand-out that ends."""
        raise NotImplementedError

    def use_fair(self) -> object:
        """Count groups from now on."""
        raise NotImplementedError

    def resize_rates(self, queue: str, per_ms: int) -> None:
        """Change the period of the rate of each group of the queue; 0: there is none."""
        raise NotImplementedError

    # --- what happens to jobs

    def count(self, queue: str, event: str) -> None:
        """Count something that happened in this queue."""
        self.past.setdefault(queue, Counter())[event] += 1

    def use(self, queue: str) -> None:
        """Record a use of the queue now, if it has an IDLE time."""
        if self.settings_of(queue).idle_ms:
            self.used[queue] = self.clock_ms

    def left_queue(self, queue: str) -> None:
        """Note that a job, or the settings, are gone: a queue that does not exist any more has no history."""
        if not self.known(queue):
            self.past.pop(queue, None)

    def remove(self, job: ModelJob) -> None:
        """Remove a job for good."""
        if job.id is not None:
            self.charge(job)
        (self.buried if job.buried else self.jobs).remove(job)
        self.regroup()
        self.left_queue(job.queue)
        if job.item is not None:
            self.left.append(job.item)

    def ended(self, job: ModelJob, state: EndState, result: bytes = b"") -> None:
        """Note the end of a job; its queue may keep a record."""
        self.tell_end(job, JobEnded(job.queue, state, result))
        self.keep_record(job, self.settings_of(job.queue), self.settings.retained_bytes, state, result)

    def cancel_job(self, job: ModelJob) -> None:
        """End a job of a cancelled item."""
        item = job.item or ""
        self.fates[item].cancelled += 1
        self.end_removed(job, self.fates[item].reason)

    def end_removed(self, job: ModelJob, reason: str | None) -> None:
        """End a job because an item was cancelled."""
        if reason is not None:
            job.reason = reason
        self.count(job.queue, "deleted")
        if job.id is not None:
            self.use(job.queue)
        self.remove(job)
        self.ended(job, EndState.CANCELLED)

    def keep_key(self, job: ModelJob) -> None:
        """Keep the key of a finished job as taken for a while."""
        keep_ms = self.settings_of(job.queue).keep_ms
        if job.key is not None and keep_ms > 0:
            self.kept[job.queue, job.key] = self.clock_ms + keep_ms

    def holder(self, queue: str, key: str | None) -> ModelJob | None:
        """Return the unfinished job of the queue that has this key."""
        return next((job for job in self.jobs if key is not None and (job.queue, job.key) == (queue, key)), None)

    def key_kept(self, queue: str, key: str | None) -> bool:
        """Return whether a job of the queue had this key not long ago."""
        return key is not None and self.clock_ms < self.kept.get((queue, key), 0)

    # --- what is done to queues

    def on_queue(self, operation: OnQueue) -> Reply:
        """Execute an operation on queues and settings."""
        match operation:
            case ConfigureQueue(create=True):
                if self.known(operation.queue):
                    return QueueExists()
                settings = _changed(QueueSettings(bound=operation.session or 0), operation.change)
                if settings.sched is Sched.FIFO and _holds_groups(settings):
                    return BadSetting()
                reply = self._give_settings(operation.queue, settings)
                self._use_sched(operation.change, reply)
                self._follow_rates(QueueSettings(), operation.queue, reply)
                return reply
            case ConfigureQueue():
                return self._configure(operation)
            case PauseQueue():
                if operation.pause_ms is not None:
                    return self._pause_for(operation.queue, min(operation.pause_ms, DURATION_MS_MAX))
                if operation.incoming or operation.outgoing:
                    return self._pause(operation)
                if not self.known(operation.queue):
                    return QueueNotFound()
                if operation.queue in self.queues:
                    old = self.queues[operation.queue]
                    self.queues[operation.queue] = structs.replace(old, paused_in=False)
                    self.use(operation.queue)
                    self.end_pause(operation.queue)
                return Accepted()
            case DeleteQueue(idle_since_ms=int() as since_ms):
                return self._expire(operation, since_ms)
            case DeleteQueue():
                return self._delete_queue(operation)
            case PurgeQueue():
                own = operation.purged in (Purged.OWN, Purged.RUNNING)
                return self._purge_own(operation) if own else self._purge(operation)
            case Configure():
                changes = {name: value for name, value in structs.asdict(operation).items() if value is not None}
                self.settings = structs.replace(self.settings, **changes)
                self.limit_all_records(self.settings.retained_bytes)
                if operation.policy is Policy.FAIR:
                    self.use_fair()
                return Accepted()

    def _pause(self, pause: PauseQueue) -> Reply:
        queue, old = pause.queue, self.settings_of(pause.queue)
        new = structs.replace(old, paused_in=old.paused_in or pause.incoming, passing=False)
        if pause.outgoing:
            new = structs.replace(new, paused_out=True, pause_ms=0, pause_ends_ms=0)
        reply = self._give_settings(queue, new)
        if reply == Accepted() and pause.outgoing:
            self.count(queue, "pauses")
        return reply

    def _pause_for(self, queue: str, pause_ms: int) -> Reply:
        if pause_ms == 0:
            if queue in self.queues:
                self.use(queue)
                self.end_pause(queue)
            if self.known(queue):
                self.count(queue, "pauses")
            return Accepted()
        old = self.queues.get(queue, QueueSettings(passing=True))
        reply = self._give_settings(queue, structs.replace(
            old, paused_out=True, pause_ms=pause_ms, pause_ends_ms=self.clock_ms + pause_ms))
        if reply == Accepted():
            self.count(queue, "pauses")
        return reply

    def end_pause(self, queue: str) -> None:
        """Let it give jobs again."""
        old = self.queues[queue]
        if old.passing:
            del self.queues[queue]
            self.left_queue(queue)
        else:
            self.queues[queue] = structs.replace(old, paused_out=False, pause_ms=0, pause_ends_ms=0)
        self.regroup()

    def _use_sched(self, change: QueueChange, reply: Reply) -> None:
        if change.sched is not None and reply == Accepted():
            self.use_fair()

    def _follow_rates(self, old: QueueSettings, queue: str, reply: Reply) -> None:
        """Follow changed settings of a queue, perhaps of its groups."""
        new = self.settings_of(queue)
        same = (old.sched, old.group_rate, old.group_per_ms) == (new.sched, new.group_rate, new.group_per_ms)
        if reply == Accepted() and not same:
            self.resize_rates(queue, 0 if new.sched is Sched.FIFO else new.group_per_ms)

    def _give_settings(self, queue: str, settings: QueueSettings) -> Reply:
        if queue not in self.queues and len(self.queues) >= QUEUES_MAX:
            return TooManyQueues()
        old, self.queues[queue] = self.settings_of(queue), settings
        for one in (old, settings):
            self.limit_records(queue, one)
        self.used.pop(queue, None)
        self.use(queue)
        if settings.keep_ms == 0:
            self._forget_keys(queue)
        return Accepted()

    def forget_puts(self, queue: str) -> None:
        """Forget what DEDUP remembers of the queue."""
        self.remembered = {name: known for name, known in self.remembered.items() if name[0] != queue}

    def _forget_keys(self, queue: str) -> None:
        self.kept = {name: until_ms for name, until_ms in self.kept.items() if name[0] != queue}

    def _configure(self, operation: ConfigureQueue) -> Reply:
        queue = operation.queue
        old = self.settings_of(queue)
        new = _changed(old, operation.change)
        if new.sched is Sched.FIFO and _holds_groups(new):
            return BadSetting()
        waiting = self.in_state(queue, JobState.READY)
        if (new.order, new.item_limit) != (old.order, old.item_limit) and len(waiting) > RESORTED_MAX:
            return QueueNotEmpty()
        reply = self._give_settings(queue, new)
        self._use_sched(operation.change, reply)
        self._follow_rates(old, queue, reply)
        if reply == Accepted() and new.order != old.order:
            for job in self.jobs:
                if job.queue == queue and job.ready:
                    active_ms = job.seq // 1024 if job.stays else job.at_ms or 0
                    job.place_ms = active_ms if new.order is Order.TIME else 0
        return reply

    def _delete_queue(self, operation: DeleteQueue) -> Reply:
        queue = operation.queue
        dead = [*self.in_state(queue, JobState.DEAD), *self.in_state(queue, JobState.BURIED)]
        if not operation.force and (self.unfinished(queue) or dead):
            return QueueNotEmpty()
        if not self.known(queue) and not self.in_state(queue, JobState.DEAD):
            return QueueNotFound()
        removed, gone = self.delete_all(queue, PORTION, leave=operation.leave)
        return Accepted() if gone else Removed(removed, True)

    def _expire(self, operation: DeleteQueue, since_ms: int) -> Reply:
        queue = operation.queue
        idle_ms = self.settings_of(queue).idle_ms
        if idle_ms == 0 or self.used[queue] > since_ms or self.in_state(queue, JobState.RUNNING):
            return Accepted()
        if since_ms + idle_ms > self.clock_ms:
            return Accepted()
        removed, gone = self.delete_all(queue, PORTION)
        if gone:
            self.tell("IDLE", queue)
        return Accepted() if gone else Removed(removed, True)

    def delete_all(self, queue: str, portion: int, *, leave: bool = False) -> tuple[int, bool]:
        """Delete a portion of its jobs, then the queue; returns their number, and whether the queue is gone.

        `leave`: the dead ones are no longer its.
        """
        found: list[ModelJob] = []
        own = (JobState.READY, JobState.DELAYED, JobState.BURIED, JobState.RUNNING)
        order = (*own, JobState.DEAD) if leave else (*own[:2], JobState.DEAD, *own[2:])
        for state in order:
            found += [job for job in self.in_state(queue, state) if job not in found]
        for job in found[:portion]:
            if leave and job.origin == queue and job.queue != queue:
                job.origin = job.every_ms = None
                job.attempts = 0
                continue
            self._drop(queue, job)
        if len(found) > portion:
            return portion, False
        self.queues.pop(queue, None)
        self.used.pop(queue, None)
        for topic in list(self.topics):
            self.drop_bindings(topic, {one for one in self.topics[topic] if one[0] == queue})
        self.left_queue(queue)
        self._forget_keys(queue)
        self.forget_puts(queue)
        self.forget_records(queue)
        return len(found), True

    def _purge(self, operation: PurgeQueue) -> Reply:
        queue = operation.queue
        dead = self.in_state(queue, JobState.DEAD)
        if not self.known(queue) and not dead:
            return QueueNotFound()
        if operation.purged is Purged.ENDED:
            return Removed(self.forget_records(queue), False)
        if operation.before_seq is None and operation.purged in (Purged.ALL, Purged.READY):
            self.forget_puts(queue)
        others = (JobState.READY, JobState.DELAYED, JobState.DEAD, JobState.BURIED)
        states = others if operation.purged is Purged.ALL else (JobState(operation.purged),)
        found: list[ModelJob] = []
        for state in states:
            found += [job for job in self.in_state(queue, state) if job not in found and job.id is None]
        if operation.before_seq is not None:
            found = [job for job in found if job.seq < operation.before_seq]
        for job in found[:PORTION]:
            self._drop(queue, job)
        ended = self.forget_records(queue) if operation.purged is Purged.ALL and len(found) <= PORTION else 0
        return Removed(min(len(found), PORTION) + ended, len(found) > PORTION)

    def _purge_own(self, operation: PurgeQueue) -> Reply:
        queue = operation.queue
        if not self.known(queue) and not self.in_state(queue, JobState.DEAD):
            return QueueNotFound()
        running = operation.purged is Purged.RUNNING
        if operation.before_seq is None and not running:
            self.forget_puts(queue)
        found: list[ModelJob] = []
        for state in (JobState.READY, JobState.DELAYED, JobState.BURIED):
            before = [job for job in self.in_state(queue, state)
                      if operation.before_seq is None or job.seq < operation.before_seq]
            found += [] if running else before
        found += [job for job in self.in_state(queue, JobState.RUNNING)
                  if operation.before_id is None or (job.id or 0) < operation.before_id]
        for job in found[:PORTION]:
            self._drop(queue, job)
        return Removed(min(len(found), PORTION), len(found) > PORTION)

    def _drop(self, queue: str, job: ModelJob) -> None:
        """Remove the job, and notify its worker."""
        if job.id is not None:
            self.use(queue)
            self.tell("CANCEL", queue, job.id)
        self.tell_end(job, NotFound())
        self.remove(job)


def _holds_groups(settings: QueueSettings) -> bool:
    """Return whether they are for queues that choose by groups."""
    return settings.group_by + settings.group_order + settings.group_limit + settings.group_rate > 0


def _changed(settings: QueueSettings, change: QueueChange) -> QueueSettings:
    values = {name: value for name, value in structs.asdict(change).items() if value is not None}
    values["passing"] = False
    if change.group_rate is not None:
        values["group_rate"] = min(change.group_rate, 10_000)
        values["group_per_ms"] = min(max(change.group_per_ms or 0, 100), 86_400_000) if change.group_rate else 0
    else:
        values.pop("group_per_ms", None)
    del values["spread"]                # read with a rate only, which the model has not
    if "alarm" in values:
        values["alarmed"] = False
    if change.expire_ms is None:
        values.pop("then")
    if change.tries is None:
        values.pop("dead", None)
    else:
        values["dead"] = change.dead
    if change.group_by is None:
        values.pop("group_header", None)
    else:
        values["group_header"] = change.group_header or "" if change.group_by is GroupBy.HEAD else ""
    if change.backoff_ms is None:
        values.pop("backoff_max_ms", None)
    else:
        values["backoff_max_ms"] = max(change.backoff_ms, change.backoff_max_ms or 0)
    return structs.replace(settings, **values)


