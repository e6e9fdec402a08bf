"""The reference model's hand-outs."""

from __future__ import annotations

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sockpqd.core import (
    AnySelector,
    Empty,
    Get,
    GetWith,
    Handed,
    HandedMany,
    ItemCancelled,
    JobRunning,
    JobState,
    Meta,
    NotFound,
    Number,
    Policy,
    Reply,
    Sched,
    SessionNotFound,
    Then,
)
from tests.core.model.choice import chosen_queue, ranks_behind
from tests.core.model.jobs import ModelJob, first
from tests.core.model.time import ModelTime

LONGEST_MS = (2**32 - 1) * 1000
PICK_BYTES = 16 * 1024 * 1024
GOLDEN = 0x9E3779B97F4A7C15


class ModelGive(ModelTime):
    """The part of the reference model that executes Get and GetWith."""

    def __init__(self) -> None:
        super().__init__()
        self.next_id = 1
        self.put_item: str | None = None
        self.spent = 0          # bytes handed out in this entry

    def givable(self, queue: str, item: str | None = None) -> list[ModelJob]:
        """Return the jobs of which the next Get is given the first."""
        settings = self.settings_of(queue)
        running = self.in_state(queue, JobState.RUNNING)
        if settings.paused_out or 0 < settings.limit <= len(running) or self.withheld(queue):
            return []
        items = [job.item for job in running if job.item is not None]
        return [
            job
            for job in self.in_state(queue, JobState.READY)
            if item in (None, job.item) and not 0 < settings.item_limit <= items.count(job.item or "")
        ]

    def get(self, get: Get, bits: int) -> Reply:
        """Give one job, without reporting whether it turned a cycle."""
        reply = self.pick(GetWith(get), bits, of_put=get.item_of_put)
        return replace(reply, turned=UNSET) if isinstance(reply, Handed) else reply

    def pick(self, pick: GetWith, bits: int, *, of_put: bool = False) -> Reply:
        """Give one job, or several; groups choose none for a PUT .. WAIT."""
        get = pick.get
        if get.session is not None and not self.sessions.use(get.session, self.clock_ms):
            return SessionNotFound()
        if get.item_of_put and self.put_item is None:
            return Empty(False)
        for queue in get.queues or ():
            self.use(queue)
        item = self.put_item if get.item_of_put else get.item
        policy = self.settings.policy if pick.policy is None else pick.policy
        if policy is Policy.FAIR and of_put:
            policy = Policy.RANDOM
        given = self.given = list[ModelJob]()
        turned: list[ModelJob] = []
        left_out = self._closed_queues(get) if item is None and not of_put and policy is not Policy.FAIR else set()
        ranked: dict[str, ModelJob] = {}        # queues that are ranked by another job than their first one
        order = list(dict.fromkeys(get.queues or ()))
        after = None if pick.turn is None else pick.turn.after
        room = PICK_BYTES - self.spent
        while len(given) < (1 if pick.count is None else pick.count):
            lists = self._candidates(get.queues, item, given)
            lists = {name: jobs for name, jobs in lists.items() if name not in left_out}
            if policy is Policy.FAIR:
                self.use_fair()
                by_turn, fairly, counts, job = False, True, True, self.next_by_fair(lists)
            else:
                by_turn, fairly, counts, job = False, False, False, None
            while policy is not Policy.FAIR and lists and job is None:
                by_rank = {one: [ranked[one]] if one in ranked else jobs for one, jobs in lists.items()}
                name, by_turn = chosen_queue(
                    by_rank, None if get.queues is None else order, policy, (bits + len(given) * GOLDEN) % 2**64,
                    in_turn=pick.turn is not None, after=after,
                    weights={name: self.settings_of(name).weight for name in lists}, of_item=item is not None,
                )
                assert name is not None
                opened = None if of_put else self.first_open(name, lists[name])
                if opened is not None and ranks_behind(policy, opened, ranked.get(name, first(lists[name]))):
                    ranked[name] = opened
                    continue
                one = {name: lists.pop(name)}
                sched = self.settings_of(name).sched
                fairly, counts = not of_put and sched is Sched.FAIR, not of_put and sched is not Sched.FIFO
                if fairly:
                    job = self.next_by_fair(one)
                elif not of_put and sched is Sched.GROUPS:
                    job = self.first_of_groups(one)
                else:
                    job = first(one[name])
                if job is None:             # its groups are closed
                    left_out.add(name)
            if job is None or (given and sum(one.size for one in [*given, job]) > room):
                break
            if fairly:
                self.fair_chose(job)
            if counts:
                self.count_hand_out(job)
            self._hand_out(job, get)
            self.end_operation()
            ranked.pop(job.queue, None)
            given.append(job)
            turned += [job] * by_turn
            if by_turn and pick.turn is not None:
                after = job.queue
                order = [one for one in order if one != after] + [after]
        self.given = []
        if not given:
            return Empty(any(self.unfinished(queue, item) for queue in (get.queues or ())) if get.queues is not None
                         else self.unfinished(None, item))
        if pick.count is None and pick.policy is None and pick.turn is None and not pick.meta and not pick.head:
            turned = []         # not reported, as for a Get
        jobs = tuple(self.handed(job, pick, turned=True if job in turned else UNSET) for job in given)
        return jobs[0] if pick.count is None else HandedMany(jobs)

    def _closed_queues(self, get: Get) -> set[str]:
        """Return the named queues that choose by groups, none of which is open: they do not take part."""
        lists = {} if get.queues is None else self._candidates(get.queues, None, [])
        return {
            name for name, jobs in lists.items()
            if self.settings_of(name).sched is not Sched.FIFO and self.first_open(name, jobs) is None
        }

    def get_number(self, asked: GetWith, number: int) -> Reply:
        """Give the job of this number."""
        get = asked.get
        if get.session is not None and not self.sessions.use(get.session, self.clock_ms):
            return SessionNotFound()
        job = self.selected(Number(number))
        if job is None:
            return NotFound()
        if job.id is not None:
            return JobRunning()
        if self.cancelling(job.item):
            return ItemCancelled()
        stood_still = not job.ready
        self.dig_up(job)
        job.delayed, job.due_ms, job.waits, job.told = False, None, [], []
        if stood_still:
            job.fade_ms = None if job.ttl_ms is None else self.clock_ms + job.ttl_ms
        self._hand_out(job, get)
        return self.handed(job, asked)

    def dig_up(self, job: ModelJob) -> None:
        """Make a buried or delayed job ready: its time has come, and its key may be another's by now."""
        if job.buried:
            if self.holder(job.queue, job.key) is not None:
                job.key = None
            job.buried = False
            self.buried.remove(job)
            self.jobs.append(job)
            job.at_ms = None if job.at_ms is None else min(job.at_ms, self.clock_ms)
        elif job.delayed:
            job.at_ms = None if job.at_ms is None else min(job.at_ms, self.clock_ms)

    def selected(self, selector: AnySelector) -> ModelJob | None:
        """Return the job of this number."""
        raise NotImplementedError

    def _candidates(
        self, asked: tuple[str, ...] | None, item: str | None, given: list[ModelJob],
    ) -> dict[str, list[ModelJob]]:
        names = {job.queue for job in self.jobs} if asked is None else {*asked}
        lists = {name: self.givable(name, item) for name in names if not self._has_given(name, given)}
        return {name: jobs for name, jobs in sorted(lists.items()) if jobs}

    def _has_given(self, queue: str, given: list[ModelJob]) -> bool:
        batch = self.settings_of(queue).batch
        return 0 < batch <= len([job for job in given if job.queue == queue])

    def _hand_out(self, job: ModelJob, get: Get) -> None:
        settings = self.settings_of(job.queue)
        self.count(job.queue, "taken")
        self.use(job.queue)
        job.id = self.next_id
        job.since_ms = self.clock_ms
        self.tell("TAKE", job.queue, job.priority, self.next_id)
        self.next_id += 1
        job.session = get.session
        job.attempts += 1
        job.went_through(reserves=1)
        job.hand_outs += (self.clock_ms,)
        self.spent += job.size
        if get.expire_ms is not None:
            expire_ms, then = get.expire_ms, get.then
        else:
            expire_ms = settings.expire_ms if job.own_lease_ms is None else job.own_lease_ms
            then = settings.then if settings.expire_ms > 0 else Then.DEFAULT
        self.lease(job, expire_ms, then)
        job.lease_ms = None if job.deadline_ms is None else job.deadline_ms - self.clock_ms
        self.regroup()

    def lease(self, job: ModelJob, expire_ms: int, then: Then) -> None:
        """Start a lease of this length."""
        job.deadline_ms = self.clock_ms + min(expire_ms, LONGEST_MS) if expire_ms > 0 else None
        job.then = Then.LATER if expire_ms <= 0 else self.settings.expire_default if then is Then.DEFAULT else then
        job.graced = False

    def handed(self, job: ModelJob, asked: GetWith | None = None, turned: bool | UnsetType = UNSET) -> Handed:
        """Return the reply with a running job, in the form that the client requested."""
        assert job.id is not None
        data = job.data
        head: int | UnsetType = UNSET
        if asked is not None and asked.head:
            data, head = job.headers + data, len(job.headers)
        if asked is None or not asked.meta:
            return Handed(job.id, job.queue, job.priority, data, job.item, UNSET, turned, head)
        about = Meta(job.key, job.attempts, job.at_ms, job.deadline_ms, job.reason, job.group, job.known_as)
        life = job.life() if asked.life and job.known_as is not None else UNSET
        return Handed(job.id, job.queue, job.priority, data, job.item, about, turned, head, life)
