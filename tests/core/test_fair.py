"""FAIR: Presto's own numbers, and what else holds of groups and levels (spec/fair 1)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    BadSetting,
    Batch,
    Configure,
    ConfigureQueue,
    Done,
    Empty,
    End,
    FairChange,
    FairGroup,
    FairSettings,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    Kick,
    Later,
    Machine,
    Move,
    NotFound,
    OnDup,
    Operation,
    PauseQueue,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Reply,
    Return,
    Sched,
    Tick,
    Touch,
)
from sockpqd.core.limits import PORTION_MAX, SPENT_MAX, STEP
from tests.core.helpers.logs import ask, restored, snapshot_of

BY_FAIR = GetWith(Get(None), policy=Policy.FAIR)


class Cluster:
    """A machine and its time, in milliseconds."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.now_ms = 1_000_000

    def do(self, *operations: Operation) -> list[Reply]:
        """Execute these operations as one entry; returns the replies."""
        machine = self.machine
        return machine.apply(machine.index + 1, self.now_ms, machine.index, list(operations)).replies

    def put(self, group: str, count: int = 1, queue: str = "q", priority: int = 0) -> None:
        """Put `count` jobs of a group."""
        self.do(*[PutWith(Put(queue, priority, group.encode()), group=group)] * count)

    def get(self, operation: Operation = BY_FAIR) -> Handed:
        """Hand out one job, by default according to FAIR."""
        (reply,) = self.do(operation)
        assert isinstance(reply, Handed), reply
        return reply

    def run(self, ran_s: float, operation: Operation = BY_FAIR) -> str:
        """Run the next job for this time and put it back; returns its group, which is its data."""
        job = self.get(operation)
        self.do(End(job.id, How.LATER, yielded=True, ran_ms=round(ran_s * 1000)))
        return job.data.decode()

    def group(self, name: str) -> FairGroup:
        """A group that there is."""
        found = self.machine.fair_group(name)
        assert found is not None
        return found

    def times(self) -> list[int]:
        """The scheduled time of each level, in seconds."""
        return [level.time_us // 1_000_000 for level in self.machine.fair_levels()]

    def waiting(self) -> list[int]:
        """The groups that are offered in each level."""
        return [level.waiting for level in self.machine.fair_levels()]


@pytest.fixture
def cluster() -> Cluster:
    """An empty cluster."""
    return Cluster()


# ---- Presto's numbers

def test_the_level_after_1_10_60_and_300_seconds(cluster: Cluster) -> None:
    cluster.put("g")
    for ran_s, used_s, level in ((0.999, 0.999, 0), (0.001, 1, 1), (9, 10, 2), (50, 60, 3), (240, 300, 4)):
        cluster.run(ran_s)
        assert (cluster.group("g").used_us, cluster.group("g").level) == (round(used_s * 1_000_000), level)


def test_one_quantum_of_600_seconds_is_spread_over_the_levels_up_to_the_cap(cluster: Cluster) -> None:
    cluster.put("g")
    cluster.do(End(cluster.get().id, How.DONE, ran_ms=600_000))
    assert cluster.times() == [1, 9, 20, 0, 0]
    assert cluster.group("g").level == 4


def test_two_groups_by_1_9_50_and_240_seconds(cluster: Cluster) -> None:
    for name in ("a", "b"):
        cluster.put(name)
    ids = [cluster.get().id for _ in "ab"]
    for ran_s in (1, 9, 50, 240):
        cluster.do(*[Touch(number, ran_ms=ran_s * 1000) for number in ids])
    assert cluster.times() == [2, 18, 60, 60, 0]


@pytest.mark.parametrize("levels", [(0, 1, 2, 3, 4), (1, 2), (3, 4)])
def test_shares_of_levels_that_are_always_full(cluster: Cluster, levels: tuple[int, ...]) -> None:
    starts_s = (0, 100_000, 200_000, 300_000, 400_000)          # far apart, so that all groups stay where they are
    cluster.do(Configure(fair=FairChange(starts_s)))
    for level in levels:
        cluster.put(f"g{level}", 2)                             # a level is never empty while a job of it runs
        job = cluster.get(GetWith(Get(("q",))))
        while job.data != b"g%d" % level:
            cluster.do(Later(job.id))
            job = cluster.get(GetWith(Get(("q",))))
        cluster.do(End(job.id, How.LATER, ran_ms=starts_s[level] * 1000))
        assert cluster.group(f"g{level}").level == level
    counts = dict.fromkeys(levels, 0)
    for _ in range(1000):
        cluster.run(1)
    for _ in range(3100):
        counts[int(cluster.run(1)[1:])] += 1
    total = sum(2 ** -level for level in levels)
    for level in levels:
        assert abs(counts[level] * 100 / 3100 - 100 * 2 ** -level / total) < 1


def test_quanta_of_10_and_20_ms_give_7_or_8_against_3_or_4_of_11_choices(cluster: Cluster) -> None:
    for name in ("short", "long"):
        cluster.put(name)
    chosen = []
    for _ in range(11):
        job = cluster.get()
        ran_ms = 10 if job.data == b"short" else 20
        cluster.do(End(job.id, How.LATER, ran_ms=ran_ms))
        chosen.append(job.data.decode())
    assert chosen.count("short") in (7, 8)
    assert chosen.count("long") in (3, 4)


def test_an_emptied_level_that_fills_again_gets_no_burst(cluster: Cluster) -> None:
    cluster.do(Configure(fair=FairChange(multiplier=1)))
    cluster.put("old")
    cluster.run(1)
    for _ in range(100):
        cluster.run(0.05)
    cluster.put("new")
    chosen = [cluster.run(0.05) for _ in range(10)]
    assert chosen.count("new") == 5


def test_a_newcomer_overtakes_for_at_most_one_quantum(cluster: Cluster) -> None:
    cluster.put("a")
    for _ in range(50):
        cluster.run(0.01)
    cluster.put("b")
    chosen = [cluster.run(0.01) for _ in range(10)]
    assert abs(chosen.count("a") - chosen.count("b")) <= 1


def test_a_group_that_was_idle_for_ten_minutes_has_no_old_advantage(cluster: Cluster) -> None:
    for name in ("a", "b"):
        cluster.put(name)
    for _ in range(4):
        cluster.run(0.05)
    job = cluster.get()
    cluster.do(End(job.id, How.DONE, ran_ms=10))
    rest = "b" if job.data == b"a" else "a"
    for _ in range(10):
        assert cluster.run(0.05) == rest
    cluster.now_ms += 599_000
    cluster.put(job.data.decode())
    assert cluster.group(job.data.decode()).priority_us >= 500_000
    chosen = [cluster.run(0.05) for _ in range(10)]
    assert abs(chosen.count("a") - chosen.count("b")) <= 2


def test_a_hung_job_delays_the_others_of_its_level_by_at_most_the_cap(cluster: Cluster) -> None:
    cluster.put("hung")
    job = cluster.get()
    cluster.now_ms += 1_000_000
    cluster.do(Done(job.id))
    assert sum(level.time_us for level in cluster.machine.fair_levels()) == 30_000_000
    assert cluster.group("hung").used_us == 1_000_000_000


def test_the_level_of_a_hung_job_waits_for_thirty_seconds_worth_of_share_and_no_longer(cluster: Cluster) -> None:
    cluster.do(Configure(fair=FairChange((0, 1000))))
    for name in ("hung", "other"):
        cluster.put(name, queue=name)
        cluster.do(End(cluster.get().id, How.LATER, ran_ms=1_000_000))
    cluster.put("low", 2)
    for _ in range(100):
        cluster.run(1)
    job = cluster.get(Get(("hung",)))
    cluster.now_ms += 1_000_000
    cluster.do(Later(job.id))
    waits = 0
    while cluster.run(1) == "low":
        waits += 1
    assert 58 <= waits <= 62                # level 0 has twice the share of level 1


def test_a_charge_moves_all_jobs_of_the_group_before_the_next_choice(cluster: Cluster) -> None:
    cluster.put("a", 3)
    cluster.put("b")
    first, other = cluster.get(), cluster.get()
    assert (first.data, other.data) == (b"a", b"b")
    cluster.do(End(first.id, How.DONE, ran_ms=5000))
    assert cluster.waiting() == [0, 1, 0, 0, 0]             # both jobs that are left, at once
    selected = [level.selected for level in cluster.machine.fair_levels()]
    assert cluster.get().data == b"a"
    assert [level.selected for level in cluster.machine.fair_levels()] == [2, 1, 0, 0, 0]
    assert selected == [2, 0, 0, 0, 0]


# ---- groups

def test_the_group_stays_with_the_job(cluster: Cluster) -> None:
    cluster.do(PutWith(Put("q", 0, b"x"), key="k", group="g"))
    job = cluster.get(GetWith(Get(("q",)), meta=True))
    assert job.meta
    assert job.meta.group == "g"
    cluster.do(Later(job.id))
    job = cluster.get(GetWith(Get(("q",)), meta=True))
    cluster.do(End(job.id, How.BURY), Kick("q", 1))
    job = cluster.get(GetWith(Get(("q",)), meta=True))
    assert job.meta
    assert job.meta.group == "g"
    cluster.do(Move(job.id, "p"))
    cluster.machine = restored(snapshot_of(cluster.machine))
    job = cluster.get(GetWith(Get(("p",)), meta=True))
    assert job.meta
    assert job.meta.group == "g"
    assert (cluster.group("g").waiting, cluster.group("g").running) == (0, 1)


def test_without_a_group_the_queue_is_the_group_and_both_meanings_share_one_account(cluster: Cluster) -> None:
    cluster.do(Put("mail", 0, b"1"))
    cluster.put("mail", queue="other")
    assert (cluster.group("mail").waiting, cluster.group("mail").running) == (2, 0)
    cluster.do(End(cluster.get().id, How.DONE, ran_ms=500))
    cluster.do(End(cluster.get().id, How.DONE, ran_ms=700))
    assert cluster.group("mail") == FairGroup(1, 1_200_000, cluster.group("mail").priority_us, 0, 0)


def test_groups_of_one_priority_alternate_also_within_a_count(cluster: Cluster) -> None:
    cluster.put("a", 3)
    cluster.put("b", 3)
    (reply,) = cluster.do(GetWith(Get(None), 6, Policy.FAIR))
    assert isinstance(reply, HandedMany)
    assert b"".join(job.data for job in reply.jobs) == b"ababab"


def test_in_a_group_the_first_job_by_priority_then_by_place(cluster: Cluster) -> None:
    for queue, priority in (("b", 0), ("a", 0), ("c", 5)):
        cluster.do(PutWith(Put(queue, priority, b""), group="g"))
    assert [cluster.get().queue for _ in range(3)] == ["c", "b", "a"]


def test_a_hand_out_is_charged_for_replicated_time_since_it_or_the_last_touch(cluster: Cluster) -> None:
    cluster.put("g")
    job = cluster.get()
    cluster.now_ms += 300
    cluster.do(Touch(job.id))
    assert cluster.group("g").used_us == 300_000
    cluster.now_ms += 200
    cluster.do(Touch(job.id, ran_ms=50))
    cluster.now_ms += 70
    cluster.do(Done(job.id))
    assert cluster.group("g").used_us == 420_000


def test_a_hand_out_that_could_not_be_delivered_is_not_charged(cluster: Cluster) -> None:
    cluster.put("g")
    job = cluster.get()
    cluster.now_ms += 300
    cluster.do(Return(job.id))
    assert cluster.group("g").used_us == 0


def test_hand_outs_under_way_at_the_first_use_are_charged_from_then_on(cluster: Cluster) -> None:
    cluster.do(Put("q", 0, b""))
    job = cluster.get(GetWith(Get(None)))
    cluster.now_ms += 5000
    assert not cluster.machine.fair_used
    cluster.put("other")
    cluster.now_ms += 200
    cluster.do(Done(job.id))
    assert cluster.group("q").used_us == 200_000


@pytest.mark.parametrize(("use", "used"), [
    (PutWith(Put("q", 0, b""), group="g"), True), (BY_FAIR, True), (Configure(policy=Policy.FAIR), True),
    (ConfigureQueue("q", QueueChange(sched=Sched.FIFO)), True), (Configure(fair=FairChange(cap_ms=1000)), True),
    (End(1, How.DONE, ran_ms=5), True), (
        End(1, How.LATER, ran_ms=5), True,
    ), (Touch(1, ran_ms=5), True), (End(7, How.DONE, ran_ms=5), False),
    (Done(1), False), (Configure(fair=FairChange(cap_ms=1)), False),
    (Batch((PutWith(Put("q", 0, b""), group="g"), Done(9)), True), False),
])
def test_what_is_the_first_use(cluster: Cluster, use: Operation, used: bool) -> None:
    cluster.do(Put("q", 0, b""), Get(None))
    cluster.do(use)
    assert cluster.machine.fair_used is used
    assert restored(snapshot_of(cluster.machine)).fair_used is used


# ---- queues

def test_sched_fair_chooses_among_the_groups_of_a_queue_for_every_get(cluster: Cluster) -> None:
    cluster.put("a", 3)
    cluster.put("b", 1)
    cluster.do(ConfigureQueue("q", QueueChange(sched=Sched.FAIR)))
    assert [cluster.get(Get(("q",))).data for _ in range(3)] == [b"a", b"b", b"a"]
    cluster.do(ConfigureQueue("q", QueueChange(sched=Sched.FIFO)))
    assert cluster.get(Get(("q",))).data == b"a"


def test_by_fair_among_named_queues_and_by_item(cluster: Cluster) -> None:
    cluster.put("a", 2, queue="x")
    cluster.put("b", 2, queue="y")
    cluster.put("c", 2, queue="z")
    fair = GetWith(Get(("x", "y", "nothing")), policy=Policy.FAIR)
    assert [cluster.get(fair).data for _ in range(4)] == [b"a", b"b", b"a", b"b"]
    assert isinstance(cluster.do(fair)[0], Empty)
    cluster.do(PutWith(Put("z", -1, b"i", "item"), group="d"), PutWith(Put("y", 0, b"j", "item"), group="e"))
    for _ in range(2):
        job = cluster.get(GetWith(Get(None, item="item"), policy=Policy.FAIR))
        assert job.data in (b"i", b"j")


def test_queues_at_their_limit_and_paused_are_passed_over(cluster: Cluster) -> None:
    cluster.put("a", 2, queue="x")
    cluster.put("b", 2, queue="y")
    cluster.do(ConfigureQueue("x", QueueChange(limit=1)))
    assert [cluster.get().data for _ in range(2)] == [b"a", b"b"]
    assert cluster.waiting()[0] == 2                        # LIMIT does not matter for being offered
    cluster.do(PauseQueue("y", False, True))
    assert cluster.waiting()[0] == 2                        # a pause only marks the queue
    assert isinstance(cluster.do(BY_FAIR)[0], Empty)
    cluster.do(Done(1))
    assert cluster.get().data == b"a"
    assert cluster.waiting()[0] == 0                        # b was met, and a has no other job
    cluster.do(PauseQueue("y", False, False))
    assert cluster.waiting()[0] == 1
    assert cluster.get().data == b"b"


def test_an_item_at_its_limit_keeps_its_jobs_back_and_the_next_group_has_its_turn(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q", QueueChange(item_limit=1)))
    for group, item in (("a", "i"), ("a", "i"), ("b", "j"), ("b", "i")):
        cluster.do(PutWith(Put("q", 0, group.encode() + item.encode(), item), group=group))
    assert [cluster.get().data for _ in range(2)] == [b"ai", b"bj"]     # the other two wait for i
    assert isinstance(cluster.do(BY_FAIR)[0], Empty)
    cluster.do(Done(1))
    assert cluster.get().data == b"ai"
    assert isinstance(cluster.do(BY_FAIR)[0], Empty)
    cluster.do(Done(3))
    assert cluster.get().data == b"bi"


def test_resume_offers_groups_in_portions(cluster: Cluster) -> None:
    names = [f"g{number:05}" for number in range(PORTION_MAX + 5)]
    cluster.do(*[PutWith(Put("q", 0, b""), group=name) for name in names])
    cluster.do(PauseQueue("q", False, True))
    while isinstance(cluster.do(BY_FAIR)[0], Handed):
        pass
    cluster.do(BY_FAIR)
    assert cluster.waiting()[0] == 0
    cluster.do(PauseQueue("q", False, False))
    assert cluster.waiting()[0] == PORTION_MAX
    twin = restored(snapshot_of(cluster.machine))
    assert snapshot_of(twin) == snapshot_of(cluster.machine)
    assert cluster.machine.next_due_ms() == cluster.now_ms
    cluster.do(Tick())
    assert cluster.waiting()[0] == len(names)
    twin.apply(twin.index + 1, cluster.now_ms, 0, [Tick()])
    assert snapshot_of(twin) == snapshot_of(cluster.machine)


def test_an_entry_ends_when_resumes_have_looked_at_many_groups(cluster: Cluster) -> None:
    count, work = 2000, STEP // 8
    cluster.do(*[PutWith(Put("q", 0, b""), group=f"g{number:05}") for number in range(count)])
    cluster.do(BY_FAIR)
    pauses = [PauseQueue("q", False, out) for _ in range(200) for out in (True, False)]
    replies = cluster.machine.apply(cluster.machine.index + 1, cluster.now_ms, 0, pauses).replies
    fit = SPENT_MAX // (work * count)
    assert 2 * fit <= len(replies) <= 2 * (fit + 1)


def test_the_first_use_offers_groups_in_portions(cluster: Cluster) -> None:
    cluster.do(*[Put(f"q{number:05}", 0, b"") for number in reversed(range(PORTION_MAX + 5))])
    cluster.do(Configure(fair=FairChange(cap_ms=5000)))
    assert cluster.waiting()[0] == PORTION_MAX
    twin = restored(snapshot_of(cluster.machine))
    for machine in (cluster.machine, twin):
        machine.apply(machine.index + 1, cluster.now_ms, 0, [Put("q01001", 0, b""), Put("zz", 0, b"")])
    assert snapshot_of(twin) == snapshot_of(cluster.machine)
    assert cluster.waiting()[0] == PORTION_MAX + 6
    assert cluster.get(GetWith(Get(("q01004",)), policy=Policy.FAIR)).queue == "q01004"


def test_the_first_use_offers_also_the_group_of_the_job_that_it_replaces(cluster: Cluster) -> None:
    cluster.do(PutWith(Put("a", 0, b"1"), key="k"), Put("b", 0, b"2"))
    cluster.do(PutWith(Put("a", 0, b"3"), key="k", on_dup=OnDup.REPLACE, group="a"))
    assert [cluster.get().data for _ in range(2)] == [b"3", b"2"]       # groups in sorted order


def test_the_group_of_a_job_that_leaves_it_at_the_first_use_has_an_account(cluster: Cluster) -> None:
    cluster.do(PutWith(Put("a", 0, b"1"), key="k"))
    cluster.do(PutWith(Put("a", 0, b"2"), key="k", on_dup=OnDup.REPLACE, group="g"))
    assert cluster.group("a") == FairGroup(0, 0, 0, 0, 0)


# ---- settings

def test_settings_change_and_bad_ones_change_nothing(cluster: Cluster) -> None:
    for bad in (
        Configure(fair=FairChange(thresholds_s=(0,))), Configure(fair=FairChange(thresholds_s=(1, 2))),
        Configure(fair=FairChange(thresholds_s=(0, 5, 5))),
        Configure(fair=FairChange(thresholds_s=tuple(range(17)))), Configure(fair=FairChange(cap_ms=999)),
        Configure(fair=FairChange(cap_ms=86_400_001)),
        Configure(fair=FairChange(multiplier=0)), Configure(fair=FairChange(multiplier=101)),
        Configure(fair=FairChange(keep_ms=-1)),
    ):
        assert cluster.do(bad) == [BadSetting()]
    assert cluster.machine.fair_settings == FairSettings()
    assert cluster.do(Configure(fair=FairChange((0, 2, 4), 1000, 100, 0))) == [Accepted()]
    assert cluster.machine.fair_settings == FairSettings((0, 2, 4), 1000, 100, 0)


def test_a_level_above_the_new_ones_lives_until_its_last_group_was_charged(cluster: Cluster) -> None:
    cluster.put("g")
    cluster.run(400)
    cluster.do(Configure(fair=FairChange(thresholds_s=(0, 1))))
    assert len(cluster.times()) == 3
    assert cluster.machine.fair_levels()[-1].level == 4
    cluster.run(1)
    assert len(cluster.times()) == 2
    assert cluster.group("g").level == 1


def test_groups_without_jobs_are_forgotten_after_their_time(cluster: Cluster) -> None:
    cluster.put("g")
    cluster.do(End(cluster.get().id, How.DONE, ran_ms=5000))
    cluster.now_ms += 599_000
    cluster.do(Tick())
    assert cluster.group("g").level == 1
    cluster.now_ms += 1_000
    cluster.do(Tick())
    assert cluster.machine.fair_group("g") is None


def test_what_a_batch_did_to_groups_is_undone(cluster: Cluster) -> None:
    cluster.put("a", 2)
    cluster.put("b", 1)
    job = cluster.get()
    cluster.get()
    cluster.now_ms += 400
    before = snapshot_of(cluster.machine)
    cluster.do(Batch((
        End(
            job.id, How.DONE, ran_ms=5000,
        ), PutWith(Put("new", 0, b""), group="c"), PutWith(Put("q", 7, b""), group="a"),
        Touch(2, ran_ms=100), PutWith(Put("p", 0, b"")), Done(99),
    ), atomic=True))
    after = restored(snapshot_of(cluster.machine))
    fresh = restored(before)
    fresh.apply(fresh.index + 1, cluster.now_ms, 0, [Tick()])
    assert snapshot_of(after) == snapshot_of(fresh)
    assert [cluster.get().data for _ in range(1)] == [b"a"]


def test_there_is_no_such_job(cluster: Cluster) -> None:
    assert cluster.do(End(1, How.DONE, ran_ms=1), End(1, How.LATER, ran_ms=1), Touch(1, ran_ms=1)) == [NotFound()] * 3


def test_ask_is_not_needed(cluster: Cluster) -> None:
    ask(cluster.machine, Put("q", 0, b""))
    assert cluster.machine.fair_group("q") == FairGroup(0, 0, 0, 1, 0)
    assert cluster.machine.fair_group("none") is None
