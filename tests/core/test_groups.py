"""The settings of groups: limits, rates and pauses, in every queue that chooses by groups (spec/fair 7)."""

from __future__ import annotations

import random

import pytest

from sockpqd.core import (
    Accepted,
    BadSetting,
    ConfigureGroup,
    ConfigureQueue,
    DeleteGroup,
    Done,
    Empty,
    Get,
    GetWith,
    GroupCounts,
    GroupNotFound,
    GroupSettings,
    Handed,
    HandedMany,
    Later,
    Machine,
    Operation,
    PauseQueue,
    Policy,
    Put,
    PutWith,
    QueueChange,
    QueueNotEmpty,
    Reply,
    Return,
    Sched,
    Tick,
    TooManyGroups,
)
from sockpqd.core import limits as core_limits
from sockpqd.core.fair.rates import SLOTS, RateWindows
from tests.core.helpers.logs import restored, snapshot_of

BY_FAIR = GetWith(Get(None), policy=Policy.FAIR)
FROM_Q = Get(("q",))


class Cluster:
    """A machine and its time, in milliseconds; its snapshot is restored before each entry if asked for."""

    def __init__(self, sched: Sched = Sched.GROUPS, queue: str = "q") -> None:
        self.machine = Machine()
        self.now_ms = 1_000_000
        self.restarts = False
        self.do(ConfigureQueue(queue, QueueChange(sched=sched), create=True))

    def do(self, *operations: Operation) -> list[Reply]:
        """Execute these operations as one entry; if `restarts`, on a machine restored from a snapshot."""
        if self.restarts:
            before = snapshot_of(self.machine)
            self.machine = restored(before)
            assert snapshot_of(self.machine) == before
        machine = self.machine
        applied = machine.apply(machine.index + 1, self.now_ms, machine.index, list(operations))
        self.effects = applied.effects
        return applied.replies

    def put(
        self, group: str, count: int = 1, queue: str = "q", priority: int = 0, item: str | None = None,
    ) -> None:
        """Jobs of a group, which is their data."""
        self.do(*[PutWith(Put(queue, priority, group.encode(), item), group=group)] * count)

    def get(self, operation: Operation = FROM_Q) -> tuple[int, str] | None:
        """The id and the group of the next job; None: there is none."""
        (reply,) = self.do(operation)
        if isinstance(reply, Empty):
            return None
        assert isinstance(reply, Handed)
        return reply.id, reply.data.decode()

    def groups(self, operation: Operation = FROM_Q, most: int = 100) -> str:
        """The groups of the next jobs, until there is none."""
        found = []
        while len(found) < most and (job := self.get(operation)) is not None:
            found.append(job[1])
        return "".join(found)


@pytest.fixture
def cluster() -> Cluster:
    """With a queue q that has SCHED GROUPS."""
    return Cluster()


# ---- SCHED GROUPS

def test_groups_are_first_in_first_out_while_all_are_open(cluster: Cluster) -> None:
    for group in "baacb":
        cluster.put(group)
    assert cluster.groups() == "baacb"


def test_priority_comes_before_the_order_of_arrival(cluster: Cluster) -> None:
    cluster.put("a")
    cluster.put("b", priority=5)
    assert cluster.groups() == "ba"


def test_jobs_without_a_group_are_of_the_queue(cluster: Cluster) -> None:
    cluster.put("a")
    cluster.do(Put("q", 0, b"q"), ConfigureGroup("q", limit=1), Put("q", 0, b"q"))
    assert cluster.groups() == "aq"


# ---- LIMIT

@pytest.mark.parametrize("sched", [Sched.FAIR, Sched.GROUPS])
def test_no_more_jobs_of_a_group_run_than_its_limit(sched: Sched) -> None:
    cluster = Cluster(sched)
    cluster.do(ConfigureGroup("a", limit=2))
    cluster.put("a", 4)
    cluster.put("b", 2)
    jobs = [cluster.get() for _ in range(6)]
    assert sorted(job[1] for job in jobs if job is not None) == ["a", "a", "b", "b"]
    first = next(job for job in jobs if job is not None and job[1] == "a")
    cluster.do(Done(first[0]))
    assert "a" in (cluster.effects.opened_groups or {})
    assert cluster.groups() == "a"


def test_a_limit_counts_the_jobs_of_all_queues(cluster: Cluster) -> None:
    cluster.do(ConfigureGroup("a", limit=1))
    cluster.put("a", queue="plain")
    assert cluster.get(Get(("plain",))) is not None
    cluster.put("a")
    assert cluster.get() is None
    assert cluster.get(BY_FAIR) is None


def test_a_plain_queue_and_a_number_ignore_the_limit(cluster: Cluster) -> None:
    cluster.do(ConfigureGroup("a", limit=1))
    cluster.put("a", 2, queue="plain")
    assert cluster.groups(Get(("plain",))) == "aa"
    (stored,) = cluster.do(PutWith(Put("q", 0, b"a"), group="a", number=True))
    assert cluster.get() is None
    assert cluster.get(GetWith(Get(None), number=stored.number)) is not None


def test_a_job_that_an_item_lets_go_does_not_exceed_the_limit_of_its_group() -> None:
    cluster = Cluster(Sched.FAIR)
    cluster.do(ConfigureQueue("q", QueueChange(group_limit=1, item_limit=1)))
    cluster.do(Put("q", 9, b"q", item="one"), PutWith(Put("q", 5, b"a", item="two"), group="a"))
    first, second = cluster.get(), cluster.get()
    assert first is not None
    assert second is not None
    cluster.do(Put("q", 0, b"q", item="two"))
    cluster.do(Done(second[0] if second[1] == "a" else first[0]))
    assert cluster.get(BY_FAIR) is None                 # one of q runs


def test_several_jobs_of_one_command_do_not_exceed_the_limit(cluster: Cluster) -> None:
    cluster.do(ConfigureGroup("a", limit=3))
    cluster.put("a", 5)
    cluster.put("b", 5)
    (reply,) = cluster.do(GetWith(Get(("q",)), count=10))
    assert isinstance(reply, HandedMany)
    assert "".join(job.data.decode() for job in reply.jobs) == "aaabbbbb"


def test_a_raised_limit_opens_the_group_and_a_lowered_one_closes_it(cluster: Cluster) -> None:
    cluster.do(ConfigureGroup("a", limit=1))
    cluster.put("a", 5)
    assert cluster.groups() == "a"
    cluster.do(ConfigureGroup("a", limit=3))
    assert cluster.groups() == "aa"
    cluster.do(ConfigureGroup("a", limit=2))
    cluster.do(Done(1))
    assert cluster.groups() == ""
    cluster.do(ConfigureGroup("a", limit=0))
    assert cluster.groups() == "aa"


def test_an_undone_hand_out_leaves_room(cluster: Cluster) -> None:
    cluster.do(ConfigureGroup("a", limit=1))
    cluster.put("a", 2)
    job = cluster.get()
    assert job is not None
    cluster.do(Return(job[0]))
    assert cluster.groups() == "a"


def test_group_limit_counts_in_the_queue_alone() -> None:
    cluster = Cluster(Sched.FAIR)
    cluster.do(ConfigureQueue("q", QueueChange(group_limit=1)))
    cluster.put("a", 2)
    cluster.put("a", 1, queue="plain")
    cluster.put("b", 2)
    assert cluster.get(Get(("plain",))) is not None
    assert sorted(cluster.groups()) == ["a", "b"]
    cluster.do(ConfigureQueue("q", QueueChange(group_limit=2)))
    assert "q" in cluster.effects.reopened
    assert sorted(cluster.groups()) == ["a", "b"]


# ---- PAUSE

def test_a_paused_group_is_passed_over_until_it_is_resumed(cluster: Cluster) -> None:
    cluster.put("a", 2)
    cluster.put("b")
    assert cluster.do(ConfigureGroup("a", paused=True)) == [Accepted()]
    assert cluster.groups() == "b"
    assert cluster.do(ConfigureGroup("a", paused=False)) == [Accepted()]
    assert cluster.groups() == "aa"
    assert cluster.do(
        ConfigureGroup("a", paused=False), ConfigureGroup("unknown", paused=False),
    ) == [GroupNotFound()] * 2


def test_a_pause_ends_by_itself(cluster: Cluster) -> None:
    cluster.put("a")
    cluster.do(ConfigureGroup("a", paused=True, pause_ms=500))
    assert cluster.machine.next_due_ms() is not None
    cluster.now_ms += 499
    assert cluster.groups() == ""
    cluster.now_ms += 1
    cluster.do(Tick())
    assert "a" in (cluster.effects.opened_groups or {})
    assert cluster.machine.group_counts("a") == GroupCounts(1, 0, 0, GroupSettings())
    assert cluster.groups() == "a"


def test_a_new_pause_takes_the_place_of_the_old_one(cluster: Cluster) -> None:
    cluster.put("a")
    cluster.do(ConfigureGroup("a", paused=True, pause_ms=500))
    cluster.do(ConfigureGroup("a", paused=True))
    cluster.now_ms += 10_000
    assert cluster.groups() == ""


def test_delete_forgets_settings_and_pause(cluster: Cluster) -> None:
    cluster.put("a", 2)
    cluster.do(ConfigureGroup("a", limit=1), ConfigureGroup("a", paused=True))
    assert cluster.do(DeleteGroup("a"), DeleteGroup("a")) == [Accepted(), GroupNotFound()]
    assert cluster.groups() == "aa"


# ---- RATE and GROUPRATE

@pytest.mark.parametrize("of_queue", [False, True])
def test_a_rate_allows_so_many_hand_outs_in_any_period(of_queue: bool) -> None:
    cluster = Cluster()
    if of_queue:
        cluster.do(ConfigureQueue("q", QueueChange(group_rate=3, group_per_ms=1600)))
    else:
        cluster.do(ConfigureGroup("a", rate=3, per_ms=1600))
    cluster.put("a", 10)
    assert cluster.groups() == "aaa"
    cluster.now_ms += 1599
    assert cluster.groups() == ""
    cluster.now_ms += 101            # the slot of the first three is 100 ms, and ends after them
    assert cluster.groups() == "aaa"


def test_a_rate_does_not_count_what_a_plain_queue_gives(cluster: Cluster) -> None:
    cluster.do(ConfigureGroup("a", rate=1, per_ms=1000))
    cluster.put("a", 3, queue="plain")
    cluster.put("a")
    assert cluster.groups(Get(("plain",))) == "aaa"
    assert cluster.groups() == "a"


def test_a_lower_rate_counts_what_was_handed_out_before(cluster: Cluster) -> None:
    cluster.do(ConfigureGroup("a", rate=10, per_ms=1600))
    cluster.put("a", 10)
    assert cluster.groups(most=5) == "aaaaa"
    cluster.do(ConfigureGroup("a", rate=2, per_ms=3200))
    assert cluster.groups() == ""
    cluster.now_ms += 3400
    assert cluster.groups() == "aa"


def test_rates_are_forgotten_when_their_time_has_passed(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q", QueueChange(group_rate=5, group_per_ms=100)))
    cluster.put("a")
    assert cluster.groups() == "a"
    cluster.do(Done(1))
    for _ in range(4):
        cluster.now_ms = max(cluster.now_ms, cluster.machine.next_due_ms() or 0)
        cluster.do(Tick())
    assert b"rates" not in snapshot_of(cluster.machine)


# ---- settings and names

def test_settings_of_groups_want_a_queue_that_chooses_by_groups() -> None:
    machine = Machine()
    change = QueueChange(group_limit=1)
    assert machine.apply(1, 1, 1, [ConfigureQueue("q", change)]).replies == [BadSetting()]
    assert machine.apply(2, 1, 1, [ConfigureQueue("q", QueueChange(sched=Sched.FAIR, group_limit=1))]).replies == [
        Accepted()]
    assert machine.apply(3, 1, 1, [ConfigureQueue("q", QueueChange(sched=Sched.FIFO))]).replies == [BadSetting()]
    settings = machine.queue_settings("q")
    assert settings is not None
    assert settings.sched is Sched.FAIR


def test_so_many_groups_have_settings(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_limits, "GROUPS_MAX", 2)
    assert cluster.do(*[ConfigureGroup(name, limit=1) for name in "abac"])[-1] == TooManyGroups()
    assert cluster.do(
        ConfigureGroup("c", paused=True), DeleteGroup("a"), ConfigureGroup("c", paused=True),
    ) == [TooManyGroups(), Accepted(), Accepted()]


def test_too_many_groups_to_list_again_are_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_limits, "GROUPS_RELISTED_MAX", 5)
    for number in range(6):
        cluster.put(f"g{number}")
    assert cluster.do(ConfigureQueue("q", QueueChange(sched=Sched.FAIR))) == [QueueNotEmpty()]
    assert cluster.do(ConfigureQueue("q", QueueChange(limit=3))) == [Accepted()]


def test_groups_that_are_listed_have_settings_or_jobs_elsewhere(cluster: Cluster) -> None:
    cluster.do(Put("plain", 0, b""), ConfigureGroup("idle", weight=3))
    cluster.put("a", 2)
    cluster.get()
    listed = {name: cluster.machine.group_counts(name) for name in cluster.machine.group_names()}
    assert {name: counts for name, counts in listed.items() if counts is not None} == {
        "a": GroupCounts(1, 0, 1, GroupSettings()), "idle": GroupCounts(0, 0, 0, GroupSettings(weight=3)),
    }


# ---- queues whose groups are closed

def test_other_queues_are_chosen_instead_of_one_whose_groups_are_closed(cluster: Cluster) -> None:
    cluster.put("a")
    cluster.do(ConfigureGroup("a", paused=True), Put("other", 0, b"o"), Put("other", 0, b"o"))
    for policy in (Policy.RANDOM, Policy.ORDER, Policy.PRIORITY, Policy.OLDEST, Policy.RR, Policy.WEIGHT):
        for queues in (None, ("q", "other")):
            job = cluster.get(GetWith(Get(queues), policy=policy))
            assert job is not None, policy
            cluster.do(Later(job[0]))
            assert job[1] == "o"
    assert list(cluster.machine.offering(None, None)) == ["other", None]
    assert list(cluster.machine.offering(("q",), None)) == [None]
    assert cluster.machine.ready("q") == 0
    assert dict(cluster.machine.stat("q", 0) or [])["WITHHELD"] == 1


def test_an_entry_executes_only_a_few_commands_that_leave_out_very_many_queues(cluster: Cluster) -> None:
    cluster.do(ConfigureGroup("tenant", paused=True))
    for number in range(core_limits.CLOSED_QUEUES_MAX):
        queue = f"closed{number}"
        cluster.do(
            ConfigureQueue(queue, QueueChange(sched=Sched.GROUPS), create=True),
            PutWith(Put(queue, 0, b""), group="tenant"),
        )
    cluster.do(*[Put("open", -1, b"")] * 100)
    asked = [GetWith(Get(None), policy=Policy.PRIORITY)] * 100
    assert 1 < len(cluster.do(*asked)) < 8, "each looks at as much as thousands of names"
    names = tuple(f"closed{number}" for number in range(core_limits.CLOSED_QUEUES_MAX))
    by_name = [GetWith(Get(names), policy=Policy.FAIR)] * 100
    assert 1 < len(cluster.do(*by_name)) < 100, "each is some hundred names"
    assert len(cluster.do(*[Get(("q",))] * 100)) == 100


def test_an_item_gives_the_first_job_of_an_open_group(cluster: Cluster) -> None:
    for group in "ab":
        cluster.do(PutWith(Put("q", 0, group.encode(), item="i"), group=group))
    cluster.do(ConfigureGroup("a", paused=True))
    assert cluster.machine.ready_of_item("q", "i") > 0
    assert cluster.get(Get(("q",), item="i")) == (1, "b")
    assert cluster.get(Get(("q",), item="i")) is None
    assert cluster.machine.ready_of_item("q", "i") == 0


@pytest.mark.parametrize("groups", [3, 40])
def test_ready_is_what_the_open_groups_may_give(groups: int) -> None:
    cluster = Cluster()
    cluster.do(
        ConfigureQueue("q", QueueChange(group_limit=2)), ConfigureGroup("g1", limit=1),
        ConfigureGroup("g2", paused=True),
    )
    for number in range(groups):
        cluster.put(f"g{number}", 3)
    assert cluster.machine.ready("q") == 2 * (groups - 2) + 1
    found = len(cluster.do(GetWith(Get(("q",)), count=1000))[0].jobs)
    assert found == 2 * (groups - 2) + 1
    assert cluster.machine.ready("q") == 0


# ---- the law

@pytest.mark.parametrize("sched", [Sched.FAIR, Sched.GROUPS])
@pytest.mark.parametrize("seed", range(6))
def test_no_group_ever_exceeds_its_limit_or_rate(sched: Sched, seed: int) -> None:
    """Nor gets less than 16/17 of its rate. With few groups and with many, restarted from snapshots or not."""
    draw = random.Random(seed)
    cluster = Cluster(sched)
    cluster.restarts = seed % 3 == 0
    names = [f"g{number}" for number in range(draw.choice((3, 20)))]
    settings: dict[str, GroupSettings] = {}
    for name in names:
        its = settings[name] = GroupSettings(
            limit=draw.choice((0, 1, 3)), rate=draw.choice((0, 1, 5)), per_ms=1000)
        cluster.do(ConfigureGroup(name, limit=its.limit, rate=its.rate, per_ms=its.per_ms))
    running: dict[int, str] = {}
    given: dict[str, list[int]] = {name: [] for name in names}
    waiting = dict.fromkeys(names, 0)
    paused: set[str] = set()
    for _ in range(250):
        cluster.now_ms += draw.choice((0, 1, 20, 90))
        step = draw.random()
        name = draw.choice(names)
        if step < 0.3:
            count = draw.choice((1, 1, 4))
            cluster.put(name, count)
            waiting[name] += count
        elif step < 0.65:
            (reply,) = cluster.do(GetWith(Get(draw.choice((("q",), None))), count=draw.choice((1, 3))))
            if isinstance(reply, Empty):
                for one in names:
                    its, late = settings[one], [at for at in given[one] if at > cluster.now_ms - 1071]
                    closed = one in paused or 0 < its.limit <= list(running.values()).count(one) or (
                        0 < its.rate <= len(late))
                    assert closed or not waiting[one]
            for job in reply.jobs if isinstance(reply, HandedMany) else ():
                group = job.data.decode()
                running[job.id] = group
                waiting[group] -= 1
                given[group].append(cluster.now_ms)
                its = settings[group]
                assert group not in paused
                assert not its.limit or list(running.values()).count(group) <= its.limit
                assert not its.rate or len([at for at in given[group] if at > cluster.now_ms - 1000]) <= its.rate
        elif step < 0.85 and running:
            number = draw.choice(list(running))
            if draw.random() < 0.5:
                cluster.do(Done(number))
                del running[number]
            else:
                cluster.do(Later(number))
                waiting[running.pop(number)] += 1
        elif step < 0.9:
            if name in paused:
                cluster.do(ConfigureGroup(name, paused=False))
                paused.discard(name)
            else:
                cluster.do(ConfigureGroup(name, paused=True))
                paused.add(name)
        elif step < 0.95:
            cluster.do(PauseQueue("q", incoming=False, outgoing=True, pause_ms=0))
        else:
            cluster.do(Tick())
    assert sum(map(len, given.values())) > 30


def test_a_rate_costs_as_much_memory_for_ten_thousand_hand_outs_as_for_some() -> None:
    windows = RateWindows()
    for hand_out in range(10_000):
        now_ms = 10**12 + hand_out * 10_000
        windows.get("q", "a", 86_400_000, now_ms).add(now_ms)
        windows.schedule("q", "a", 10_000, now_ms)
        window = windows.find("q", "a")
        assert window is not None
        assert len(window.slots) <= SLOTS + 1
    assert sum(count for _, count in window.slots) > 8_000
