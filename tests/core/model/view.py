"""The readable state of the reference model."""

from __future__ import annotations

from collections import Counter

from sockpqd.core import GroupSettings, ItemCounts, JobState, JobView, QueueCounts, QueueHistory, Sched, Selector
from tests.core.model.end import ModelEnd
from tests.core.model.jobs import ModelFate, ModelJob, counted
from tests.core.model.time import BUCKET_MS

EVENTS = ("put", "taken", "done", "later", "expired", "dead", "expired_ttl", "deleted", "pauses")
SECOND_MS = 1024        # keys and records are forgotten as exactly as that


class ModelView(ModelEnd):
    """The names are those of core's Machine."""

    def total(self, queue: str | None) -> tuple[int, int, int, int]:
        """Return queues, priorities, waiting and running jobs."""
        jobs = [job for job in self.jobs if queue is None or job.queue == queue]
        waiting = [job for job in jobs if job.id is None]
        without = {*self.queues, *self.bound_queues(), *(job.queue for job in self.buried)}
        kept = {name for name in without if queue in (None, name)}
        return (
            len({job.queue for job in jobs} | kept),
            len({(job.queue, job.priority) for job in waiting}),
            len(waiting),
            len(jobs) - len(waiting),
        )

    def queue_names(self, prefix: str) -> set[str]:
        """Return the names with this prefix of all queues that exist."""
        names = {job.queue for job in [*self.jobs, *self.buried]}
        names |= {job.origin for job in self.jobs if job.origin and job.ready}
        return {name for name in names | set(self.queues) | self.bound_queues() if name.startswith(prefix)}

    def counts(self, queue: str) -> QueueCounts | None:
        """Return how many jobs are in each state."""
        return counted(self.jobs, self.buried, queue) if queue in self.queue_names("") else None

    def used_ms(self, queue: str) -> int | None:
        """Return the last use of a queue with IDLE in which no job runs."""
        return None if self.in_state(queue, JobState.RUNNING) else self.used.get(queue)

    def history(self, queue: str) -> QueueHistory:
        """Return its counters, and how long ago the READY job got its place that has it for longest."""
        past = self.past.get(queue, Counter())
        ages = [self.clock_ms - self.given_ms[job.seq] for job in self.in_state(queue, JobState.READY)]
        return QueueHistory(**{event: past.get(event, 0) for event in EVENTS}, oldest_ms=max([0, *ages]))

    def peek(self, selector: Selector) -> JobView | None:
        """Return the selected job as PEEK shows it; None if there is none."""
        job = self.selected(selector)
        return None if job is None else job.seen()

    def peek_queue(self, queue: str, state: JobState, count: int) -> list[JobView]:
        """Return the first jobs in this state."""
        return [job.seen(state) for job in self.in_state(queue, state)[:count]]

    def item(self, name: str) -> ItemCounts | None:
        """Return the figures of an item."""
        if not self.has_item(name):
            return None
        jobs = [job for job in [*self.jobs, *self.buried] if job.item == name]
        states = Counter(JobState.DEAD if job.lost and not job.buried else job.state() for job in jobs)
        return ItemCounts(
            states[JobState.READY], states[JobState.DELAYED], states[JobState.RUNNING], states[JobState.DEAD],
            states[JobState.BURIED], self.done_of[name], self.fates.get(name, ModelFate()).cancelled,
            name in self.holds, self.cancelling(name), sum(name in job.waits for job in self.jobs),
        )

    def taken(self, session: int) -> list[ModelJob]:
        """Return running jobs bound to a session, in rising id."""
        found = self.sessions.find(session)
        return [job for job in self.running() if found is not None and job.session == session]

    def ready(self, queue: str, item: str | None = None) -> int:
        """Return how many jobs of a queue Gets would be given, one after the other."""
        settings = self.settings_of(queue)
        running = self.in_state(queue, JobState.RUNNING)
        items = [job.item for job in running]
        number = 0
        for job in self.givable(queue, item):
            if job.item is None or not 0 < settings.item_limit <= items.count(job.item):
                number += 1
                items.append(job.item)
        number = number if settings.limit == 0 else max(0, min(number, settings.limit - len(running)))
        return self._of_open_groups(queue, item, number)

    def _of_open_groups(self, queue: str, item: str | None, number: int) -> int:
        """Return as many of these jobs as groups may give, if the queue chooses by them."""
        if self.settings_of(queue).sched is Sched.FIFO or self.fair is None:
            return number
        through = self._let_through(queue, self.givable(queue, item))
        groups = Counter(job.unit for job in through if not self.held(job))
        if item is not None:
            return number if any(self.is_open(name, queue) for name in groups) else 0
        if self.settings_of(queue).group_order:
            groups = Counter(dict.fromkeys(groups, 1))
        room = 0
        for name, jobs in groups.items():
            limit, here = self.groups.get(name, GroupSettings()).limit, self.settings_of(queue).group_limit
            jobs = min(jobs, limit - self.runs(name)) if limit else jobs
            jobs = min(jobs, here - self.runs(name, queue)) if here else jobs
            room += jobs if self.is_open(name, queue) else 0
        return min(room, number)

    def opens_or_ends_ms(self, name: tuple[str, str]) -> int:
        """Return when the rate of this name allows hand-outs again, or else is forgotten."""
        (queue, group), rate = name, self.rates.known[name]
        here = self.settings_of(queue)
        most = self.groups.get(group, GroupSettings()).rate if not queue else (
            0 if here.sched is Sched.FIFO else here.group_rate)
        opens_ms = rate.opens_ms(most, self.clock_ms)
        return opens_ms if opens_ms > self.clock_ms else rate.over_ms()

    def nonempty(self) -> list[str]:
        """Return the names of the queues with a job that would be given."""
        return sorted(queue for queue in {job.queue for job in self.jobs} if self.givable(queue))

    def next_due_ms(self) -> int | None:
        """Return the time of the next end of a lease or session, or of another timer."""
        ends = [job.deadline_ms for job in self.jobs] + [session.deadline_ms for session in self.sessions.all]
        times = [(time_ms // BUCKET_MS + 1) * BUCKET_MS for time_ms in ends if time_ms is not None]
        starts: list[int | None] = [hold.deadline_ms for hold in self.holds.values()]
        starts += [job.due_ms for job in self.jobs] + [job.fade_ms for job in self.jobs if job.ready]
        times += [(time_ms + BUCKET_MS - 1) // BUCKET_MS * BUCKET_MS for time_ms in starts if time_ms is not None]
        pauses = [one.pause_ends_ms for one in self.queues.values() if one.pause_ends_ms]
        pauses += [one.pause_ends_ms for one in self.groups.values() if one.pause_ends_ms]
        pauses += [self.opens_or_ends_ms(name) for name in self.rates.known]
        times += [(time_ms + BUCKET_MS - 1) // BUCKET_MS * BUCKET_MS for time_ms in pauses]
        # Those that a CLONE brought although their time was over are forgotten in its entry.
        remembered = [time_ms for time_ms, _ in self.remembered.values() if time_ms > self.clock_ms]
        until_ms = [*self.kept.values(), *remembered]
        until_ms += [one.ended_ms + self.settings_of(one.view.queue).retain_ms for one in self.records]
        pending: list[object] = [*self.releases]
        pending += [job for job in [*self.jobs, *self.buried] if job.id is None and self.cancelling(job.item)]
        pending += [True] if self.too_many_bytes(self.settings.retained_bytes) else []
        if self.fair is not None:
            keep_ms = self.fair.settings.keep_ms
            until_ms += [one.idle_ms + keep_ms for one in self.fair.groups.values() if one.idle_ms is not None]
            pending += self.fair.pending
        times += [(time_ms + SECOND_MS - 1) // SECOND_MS * SECOND_MS for time_ms in until_ms]
        return min([*times, *(self.clock_ms for _ in pending)], default=None)
