"""Fair shares in the reference model: groups, levels, charges, and which group is next (spec/fair 1 to 4).

Everything is recomputed from the list of jobs, and compared as fractions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

from msgspec import structs

from sockpqd.core import (
    Accepted,
    BadSetting,
    ConfigureGroup,
    DeleteGroup,
    FairChange,
    FairGroup,
    FairLevel,
    FairSettings,
    GroupNotFound,
    GroupSettings,
    Order,
    Reply,
    Sched,
)
from tests.core.model.jobs import ModelJob, first
from tests.core.model.queues import PORTION, ModelQueues
from tests.core.model.rates import LONGEST_MS, Rates

SECOND_US = 1_000_000
LEVELS = 16


@dataclass
class ModelGroup:
    """The state of a group."""

    used_us: int = 0
    level: int = 0
    priority_ns: int = 0
    turn: int = 0
    offered: bool = False
    idle_ms: int | None = None


@dataclass
class Fairness:
    """All groups and levels, from the first use on."""

    started_ms: int
    settings: FairSettings = field(default_factory=FairSettings)
    groups: dict[str, ModelGroup] = field(default_factory=dict)
    time_ns: list[int] = field(default_factory=lambda: [0] * LEVELS)
    least_ns: dict[int, int] = field(default_factory=dict)
    selected: list[int] = field(default_factory=lambda: [0] * LEVELS)
    turns: int = 0
    could: set[str] = field(default_factory=set)        # groups that had a READY job in a queue that was not paused
    pending: list[str] = field(default_factory=list)    # groups to be offered in portions

    def levels(self) -> list[int]:
        """Return the levels of the settings, and others that have a group."""
        count = len(self.settings.thresholds_s)
        return sorted({*range(count)} | {group.level for group in self.groups.values()})

    def level0_ns(self) -> int:
        """Return the time of level 0 from which the targets follow."""
        return max(self.time_ns[level] * int(self.settings.multiplier**level) for level in self.levels())

    def offered(self, level: int) -> list[str]:
        """Return the groups of the level in the order of their turns."""
        groups = [(one.priority_ns, one.turn, name) for name, one in self.groups.items()
                  if one.offered and one.level == level]
        return [name for _, _, name in sorted(groups)]

    def offer(self, name: str) -> None:
        """Let the group take its place in its level."""
        group = self.groups[name]
        if not self.offered(group.level):
            self.time_ns[group.level] = self.level0_ns() // self.settings.multiplier**group.level
        group.priority_ns = max(group.priority_ns, self.least_ns.get(group.level, group.priority_ns))
        self.turns += 1
        group.turn = self.turns
        group.offered = True

    def charge(self, name: str, q_us: int, weight: int) -> None:
        """Apply the rules of spec/fair 3, in their words."""
        group = self.groups.setdefault(name, ModelGroup())
        thresholds_us = [seconds * SECOND_US for seconds in self.settings.thresholds_s]
        group.used_us += q_us
        old = group.level
        new = max(level for level, threshold_us in enumerate(thresholds_us) if threshold_us <= group.used_us)
        own_ns = q_us * 1000 // weight
        rest_ns = min(own_ns, self.settings.cap_ms * 1_000_000 // weight)
        if new == old:
            self.time_ns[old] += rest_ns
            group.priority_ns += own_ns
            return
        for level in range(old, new):
            part_ns = min((thresholds_us[level + 1] - thresholds_us[level]) * 1000, rest_ns)
            self.time_ns[level] += part_ns
            rest_ns -= part_ns
            own_ns -= part_ns
        self.time_ns[new] += rest_ns
        group.priority_ns = self.least_ns.setdefault(new, group.used_us * 1000) + own_ns
        group.level = new
        if group.offered:
            group.offered = False
            self.offer(name)

    def by_lag(self) -> list[int]:
        """Return the levels with an offered group, the one that lags most first."""
        level0_ns = self.level0_ns()

        def ratio(level: int) -> Fraction:
            time_ns = self.time_ns[level]
            return Fraction(level0_ns // self.settings.multiplier**level, time_ns) if time_ns else Fraction(0)
        return sorted((level for level in self.levels() if self.offered(level)), key=lambda one: (-ratio(one), one))


class ModelFair(ModelQueues):
    """The effects of jobs and time on groups."""

    def __init__(self) -> None:
        super().__init__()
        self.fair: Fairness | None = None
        self.groups: dict[str, GroupSettings] = {}
        self.rates = Rates()
        self.ran_ms: int | None = None          # from the current operation
        self.given: list[ModelJob] = []         # what the present Get has been given so far

    def use_fair(self) -> Fairness:
        """Count groups from now on."""
        if self.fair is None:
            self.fair = Fairness(self.clock_ms)
            self.regroup()
        return self.fair

    def _paused(self, job: ModelJob) -> bool:
        return self.settings_of(job.queue).paused_out

    def regroup(self) -> None:
        """Update which groups are offered after a job has taken a step."""
        fair = self.fair
        if fair is None:
            return
        ready = [job for job in self.jobs if job.ready]
        for name in [job.unit for job in ready] + [job.unit for job in self.jobs if job.unit != job.queue]:
            fair.groups.setdefault(name, ModelGroup())
        for name in {job.unit for job in self.jobs} & {*fair.groups}:
            fair.groups[name].idle_ms = None
        can = {job.unit for job in ready if not self._paused(job)}
        new = [name for name in sorted(can - fair.could) if not fair.groups[name].offered]
        for name in new[:PORTION]:
            fair.offer(name)
        fair.pending += new[PORTION:]
        fair.pending = [name for name in fair.pending if name in can and not fair.groups[name].offered]
        fair.could = can
        for name in {*fair.groups} - {job.unit for job in ready}:
            fair.groups[name].offered = False

    def offer_more(self, most: int) -> int:
        """Offer the next portion; returns its size."""
        fair = self.fair
        names = [] if fair is None else fair.pending[:most]
        for name in names:
            assert fair is not None
            fair.offer(name)
            fair.pending.remove(name)
        return len(names)

    def note_idle(self) -> None:
        """Update idle groups at the end of an entry, and of what is due before it."""
        busy = {job.unit for job in self.jobs}
        for name, group in ({} if self.fair is None else self.fair.groups).items():
            if name not in busy and group.idle_ms is None:
                group.idle_ms = self.clock_ms

    def forget_groups(self, most: int) -> int:
        """Forget those that have been idle for long; returns how many."""
        if self.fair is None:
            return 0
        keep_ms = self.fair.settings.keep_ms
        idle = sorted((one.idle_ms, name) for name, one in self.fair.groups.items() if one.idle_ms is not None)
        over = [name for since_ms, name in idle if since_ms + keep_ms <= self.clock_ms][:most]
        for name in over:
            del self.fair.groups[name]
        return len(over)

    def charge(self, job: ModelJob) -> None:
        """Charge the job's group for the time since its hand-out or last charge, or for the reported time."""
        if self.fair is None and self.ran_ms is None:
            return
        fair = self.use_fair()
        since_ms = max(job.since_ms, fair.started_ms)
        q_ms = max(0, self.clock_ms - since_ms if self.ran_ms is None else self.ran_ms)
        fair.charge(job.unit, q_ms * 1000, self.groups.get(job.unit, GroupSettings()).weight)

    def next_by_fair(self, lists: dict[str, list[ModelJob]]) -> ModelJob | None:
        """Return the next of these jobs, which queues would give."""
        fair = self.use_fair()
        through = {queue: self._open(self._let_through(queue, jobs)) for queue, jobs in lists.items()}
        lists = {queue: jobs for queue, jobs in through.items() if jobs}
        for queue in dict.fromkeys(job.queue for job in reversed(self.given)):
            more = self._more(queue, lists.get(queue, []))
            if more and fair.groups[more[0].unit].offered:
                return first(more)
        chosen = self._next(fair, lists)
        if chosen is None and lists:            # they are all of groups whose portion is still to come
            name = first(next(iter(lists.values()))).unit
            fair.offer(name)
            chosen = self._next(fair, lists)
        return chosen

    def first_of_groups(self, lists: dict[str, list[ModelJob]]) -> ModelJob | None:
        """Return the first of the jobs of a queue with SCHED GROUPS."""
        for queue, jobs in lists.items():
            through = self._open(self._let_through(queue, jobs))
            return first(self._more(queue, through) or through) if through else None
        return None

    def first_open(self, queue: str, jobs: list[ModelJob]) -> ModelJob | None:
        """Return the first of these jobs of a queue with SCHED that is of an open group."""
        if self.settings_of(queue).sched is Sched.FIFO:
            return None
        through = self._open(self._let_through(queue, jobs))
        return first(through) if through else None

    def runs(self, group: str, queue: str | None = None) -> int:
        """Return the RUNNING jobs of the group, in one queue or in all."""
        return len([
            job for job in self.jobs if job.unit == group and job.id is not None and queue in (None, job.queue)])

    def is_open(self, group: str, queue: str) -> bool:
        """Return whether the group is not paused and below all limits and rates, which hold for it in this queue."""
        its, here = self.groups.get(group, GroupSettings()), self.settings_of(queue)
        everywhere = self.rates.is_open("", group, its.rate) or not its.rate
        if its.paused or 0 < its.limit <= self.runs(group) or not everywhere:
            return False
        if here.sched is Sched.FIFO:
            return True
        limited = 0 < here.group_limit <= self.runs(group, queue)
        return not limited and self.rates.is_open(queue, group, here.group_rate)

    def _open(self, jobs: list[ModelJob]) -> list[ModelJob]:
        return [job for job in jobs if self.is_open(job.unit, job.queue) and not self.held(job)]

    def held(self, job: ModelJob) -> bool:
        """Return whether a running job of its group stands before it, where that counts."""
        settings = self.settings_of(job.queue)
        if not settings.group_order:
            return False
        running = [one for one in self.jobs if one.queue == job.queue and one.unit == job.unit and one.id is not None]
        places = [one.place() for one in running if one not in self.given]
        in_time = settings.order is Order.TIME
        return any((rank, place_ms if in_time else 0, seq) < job.place() for rank, place_ms, seq in places)

    def _more(self, queue: str, jobs: list[ModelJob]) -> list[ModelJob]:
        """Return the levels of the group of the last job that the present Get took from this queue with GROUPORDER."""
        if not self.settings_of(queue).group_order:
            return []
        last = next((job for job in reversed(self.given) if job.queue == queue), None)
        return [] if last is None else [job for job in jobs if job.unit == last.unit]

    def count_hand_out(self, job: ModelJob) -> None:
        """Count a hand-out by FAIR or GROUPS in the rates of the group."""
        its, here = self.groups.get(job.unit, GroupSettings()), self.settings_of(job.queue)
        if its.rate:
            self.rates.give("", job.unit, its.per_ms, self.clock_ms)
        if here.sched is not Sched.FIFO and here.group_rate:
            self.rates.give(job.queue, job.unit, here.group_per_ms, self.clock_ms)

    def resize_rates(self, queue: str, per_ms: int) -> None:
        """Change the period of the rate of each group of the queue."""
        self.rates.resize(queue, None, per_ms, self.clock_ms)

    def sleep_group(self, job: ModelJob, sleep_ms: int) -> None:
        """Give the group nothing from the queue of this job for this long."""
        here = self.settings_of(job.queue)
        fairly_held = here.sched is Sched.FAIR and (here.group_limit + here.group_rate + here.group_by > 0)
        if (here.sched is Sched.GROUPS or fairly_held) and here.pulse is None:
            self.rates.sleep(job.queue, job.unit, here.group_per_ms, sleep_ms, self.clock_ms)

    def end_group_pauses(self, most: int) -> int:
        """End the pauses whose time has come; returns how many."""
        over = sorted((its.pause_ends_ms, name) for name, its in self.groups.items()
                      if 0 < its.pause_ends_ms <= self.clock_ms)[:most]
        for _, name in over:
            self._set_group(name, structs.replace(self.groups[name], paused=False, pause_ends_ms=0))
        self.rates.pass_time(self.clock_ms)
        return len(over)

    def _set_group(self, name: str, its: GroupSettings) -> None:
        self.groups.pop(name, None)
        if its != GroupSettings():
            self.groups[name] = its
        self.rates.resize("", name, its.per_ms, self.clock_ms)

    def on_group(self, operation: ConfigureGroup | DeleteGroup) -> Reply:
        """Execute GROUP CONFIG, PAUSE, RESUME, DELETE."""
        name = operation.group
        its = self.groups.get(name, GroupSettings())
        match operation:
            case ConfigureGroup(paused=False):
                woken = self.rates.wake(name, self.clock_ms)
                if not its.paused and not woken:
                    return GroupNotFound()
                its = structs.replace(its, paused=False, pause_ends_ms=0)
            case ConfigureGroup():
                values = {"limit": operation.limit, "weight": operation.weight}
                its = structs.replace(its, **{word: value for word, value in values.items() if value is not None})
                if operation.rate is not None:
                    per_ms = min(max(operation.per_ms or 0, 100), 86_400_000) if operation.rate else 0
                    its = structs.replace(its, rate=min(operation.rate, 10_000), per_ms=per_ms)
                if operation.paused:
                    pause_ms = operation.pause_ms
                    ends_ms = 0 if pause_ms is None else self.clock_ms + min(max(pause_ms, 1), LONGEST_MS)
                    its = structs.replace(its, paused=True, pause_ends_ms=ends_ms)
            case DeleteGroup():
                if name not in self.groups:
                    return GroupNotFound()
                its = GroupSettings()
        self._set_group(name, its)
        return Accepted()

    def fair_chose(self, job: ModelJob) -> None:
        """Put the group of a job given by FAIR after its equals."""
        fair = self.use_fair()
        group = fair.groups[job.unit]
        group.priority_ns = max(group.priority_ns, fair.least_ns.get(group.level, group.priority_ns))
        fair.least_ns[group.level] = group.priority_ns
        fair.selected[group.level] += 1
        fair.turns += 1
        group.turn = fair.turns

    def _let_through(self, queue: str, jobs: list[ModelJob]) -> list[ModelJob]:
        """Return, of each item, the first jobs, as many as ITEMLIMIT lets run besides those that do."""
        most = self.settings_of(queue).item_limit
        counts = Counter(job.item for job in self.jobs if job.queue == queue and job.id is not None)
        through = []
        for job in sorted(jobs, key=ModelJob.place):
            counts[job.item] += 1
            if most == 0 or job.item is None or counts[job.item] <= most:
                through.append(job)
        return through

    def _next(self, fair: Fairness, lists: dict[str, list[ModelJob]]) -> ModelJob | None:
        for level in fair.by_lag():
            for name in fair.offered(level):
                of_group = [[job for job in jobs if job.unit == name] for jobs in lists.values()]
                firsts = [first(jobs) for jobs in of_group if jobs]
                if firsts:
                    return min(firsts, key=lambda job: (-job.priority, job.seq))
                if all(self._paused(job) for job in self.jobs if job.ready and job.unit == name):
                    fair.groups[name].offered = False
                    fair.could.discard(name)        # it was there before the PAUSE
        return None

    def configure_fair(self, operation: FairChange) -> Reply:
        """Execute SCHED CONFIG."""
        thresholds_s = (0, 1) if operation.thresholds_s is None else operation.thresholds_s
        rises = list(thresholds_s) == sorted({*thresholds_s}) and thresholds_s[:1] == (0,)
        if not rises or not 2 <= len(thresholds_s) <= LEVELS:
            return BadSetting()
        for value, least, most in (
            (operation.cap_ms, 1000, 86_400_000), (operation.multiplier, 1, 100), (operation.keep_ms, 0, 86_400_000),
        ):
            if value is not None and not least <= value <= most:
                return BadSetting()
        fair = self.use_fair()
        changes = {name: value for name, value in structs.asdict(operation).items() if value is not None}
        fair.settings = structs.replace(fair.settings, **changes)
        return Accepted()

    # --- what can be read

    @property
    def fair_settings(self) -> FairSettings:
        """Return the settings in force."""
        return FairSettings() if self.fair is None else self.fair.settings

    def fair_levels(self) -> list[FairLevel]:
        """Return time, offered groups and choices of each level."""
        fair = self.fair or Fairness(0)
        return [FairLevel(level, fair.time_ns[level] // 1000, len(fair.offered(level)), fair.selected[level])
                for level in fair.levels()]

    def fair_group(self, name: str) -> FairGroup | None:
        """Return one group as SCHED GROUP shows it; None if it is unknown."""
        jobs = [job for job in self.jobs if job.unit == name]
        running = len([job for job in jobs if job.id is not None])
        known = None if self.fair is None else self.fair.groups.get(name)
        if known is None:
            return FairGroup(0, 0, 0, len(jobs) - running, running) if jobs else None
        return FairGroup(known.level, known.used_us, known.priority_ns // 1000, len(jobs) - running, running)
