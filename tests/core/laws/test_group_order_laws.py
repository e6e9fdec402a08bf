"""With GROUPORDER the jobs of each group are processed in order, also when jobs fail and leases end (spec/fair 7).

Workers take jobs in batches from several queues, work each batch in its order and give back the rest of it when one
fails, so that all that fails comes back to its place: the jobs have numbers, or are put back with FIRST. Workers die,
leases end, leaders change, and the state is restored from snapshots.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from sockpqd.core import (
    CloseSession,
    ConfigureGroup,
    ConfigureQueue,
    Done,
    End,
    Finished,
    Get,
    GetWith,
    HandedMany,
    How,
    Machine,
    OpenSession,
    Operation,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Reply,
    Return,
    Sched,
    SessionOpened,
    Tick,
)
from sockpqd.core.fair import first_jobs
from sockpqd.core.fair.group_order import GroupOrder
from tests.core.helpers.logs import lead, restored, snapshot_of
from tests.core.helpers.rankings import RANKING_NAMES, RANKINGS

QUEUES = ("q", "r")
GROUPS = ("a", "b", "c", "q")
WAYS = (None, Policy.FAIR, Policy.RANDOM, Policy.PRIORITY)
LEASE_MS = 3000


class Workshop:
    """A machine, the jobs put into it in their order, and the batches that workers hold.

    Jobs of the group "q" in the queue "q" have no GROUP. The data of a job are its group and its number in that.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.machine = Machine()
        self.now_ms = 1_000_000
        self.numbered = self.random.random() < 0.5
        self.put: dict[tuple[str, str], int] = defaultdict(int)         # jobs by queue and group,
        self.done: dict[tuple[str, str], int] = defaultdict(int)        # and how many of them are done
        self.batches: dict[int, list[int]] = {}                         # by session
        self.jobs: dict[int, tuple[str, str, int]] = {}                 # by hand-out: queue, group, number in that
        self.most = 0                                                   # jobs of one group in a batch
        for queue, sched in zip(QUEUES, self.random.sample([Sched.FAIR, Sched.GROUPS], 2), strict=True):
            limit, batch = self.random.choice([0, 0, 2]), self.random.choice([0, 0, 3])
            self.do(ConfigureQueue(queue, QueueChange(
                sched=sched, group_order=True, group_limit=limit, batch=batch, numbered=self.numbered,
            ), create=True))

    def do(self, operation: Operation) -> Reply:
        """Execute it in an entry of its own."""
        self.now_ms += self.random.choice([0, 1, 20])
        machine = self.machine
        (reply,) = machine.apply(machine.index + 1, self.now_ms, machine.index, [operation]).replies
        return reply

    def step(self) -> None:
        """Take one step at random."""
        draw = self.random.random()
        if draw < 0.3:
            self.add()
        elif draw < 0.6:
            self.take()
        elif draw < 0.9 and self.batches:
            self.work()
        elif draw < 0.92:
            self.end_leases()
        elif draw < 0.95:
            group = self.random.choice(GROUPS)
            settings: list[Operation] = [
                ConfigureGroup(group, paused=True), ConfigureGroup(group, paused=False),
                ConfigureGroup(group, paused=False), ConfigureGroup(group, limit=0),
                ConfigureGroup(group, limit=2),
            ]
            self.do(self.random.choice(settings))
        elif draw < 0.97:
            self.machine = restored(snapshot_of(self.machine))
        else:
            self.do(lead())

    def add(self) -> None:
        """Put a job of a random group into a random queue; its data are its place in the group."""
        queue, group = self.random.choice(QUEUES), self.random.choice(GROUPS)
        put = Put(queue, 0, f"{group} {self.put[queue, group]}".encode())
        self.put[queue, group] += 1
        self.do(PutWith(put, group=None if group == queue else group, number=self.numbered))

    def take(self) -> None:
        """Let a worker take a batch."""
        opened = self.do(OpenSession(0, 10**9))
        assert isinstance(opened, SessionOpened)
        session = int(opened.sid.partition("_")[0])
        lease_ms = self.random.choice([None, LEASE_MS]) if self.numbered else None
        asked = self.random.choice([None, ("q",), QUEUES])
        get = GetWith(Get(asked, lease_ms, session=session), self.random.choice([1, 1, 2, 5]), self.random.choice(WAYS))
        reply = self.do(get)
        if not isinstance(reply, HandedMany):
            self.do(CloseSession(session, release=True))
            return
        batch: list[int] = []
        for job in reply.jobs:
            group, number = job.data.split()
            self.jobs[job.id] = job.queue, group.decode(), int(number)
            batch.append(job.id)
        self.batches[session] = batch
        of_one = [self.jobs[one][:2] for one in batch]
        self.most = max([self.most, *[of_one.count(one) for one in of_one]])

    def work(self) -> None:
        """Let a worker finish the first job of its batch, fail, or die: then all the rest goes back."""
        session = self.random.choice(sorted(self.batches))
        batch = self.batches[session]
        if self.random.random() < 0.7:
            number = batch.pop(0)
            if isinstance(self.do(Done(number)), Finished):
                queue, group, place = self.jobs[number]
                assert place == self.done[queue, group], f"{queue} {group} {place} is done too early"
                self.done[queue, group] += 1
        elif self.random.random() < 0.5:
            for number in reversed(batch):
                first = not self.numbered or self.random.random() < 0.5
                self.do(Return(number) if self.random.random() < 0.5 else End(number, How.LATER, first=first))
            batch.clear()
        else:
            batch.clear()
        if not batch:
            del self.batches[session]
            self.do(CloseSession(session, release=True, first=not self.numbered))

    def end_leases(self) -> None:
        """Let all leases end: the workers notice when a job is not theirs any more, and give back the others."""
        self.now_ms += 2 * LEASE_MS
        for _ in range(3):
            self.do(Tick())

    def finish(self) -> None:
        """Work until nothing is left."""
        for group in GROUPS:
            self.do(ConfigureGroup(group, paused=False))
        for _ in range(5000):
            if self.done == {name: count for name, count in self.put.items() if count}:
                return
            self.random.choice([self.take, self.work if self.batches else self.take])()
        raise AssertionError("some jobs are never done")


def run(seed: int) -> Workshop:
    """Run the random history of this seed, and finish all of its jobs."""
    workshop = Workshop(seed)
    for _ in range(300):
        workshop.step()
    workshop.finish()
    return workshop


@pytest.mark.parametrize(("few", "wide"), RANKINGS, ids=RANKING_NAMES)
@pytest.mark.parametrize("seed", range(15))
def test_the_jobs_of_a_group_are_done_in_order(seed: int, few: int, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_jobs, "FEW", few)
    monkeypatch.setattr(first_jobs, "WIDE", wide)
    workshop = run(seed)
    assert sum(workshop.done.values()) > 50


def test_batches_have_several_jobs_of_a_group() -> None:
    assert max(run(seed).most for seed in range(3)) > 2


def never_held(patch: pytest.MonkeyPatch) -> None:
    """Let RUNNING jobs hold back nothing."""
    patch.setattr(GroupOrder, "holds", lambda self, group, job: False)


def never_settled(patch: pytest.MonkeyPatch) -> None:
    """Never count what a command was given."""
    def settle(self: GroupOrder) -> list[str]:
        self.giving = None
        return []
    patch.setattr(GroupOrder, "settle", settle)
    patch.setattr(GroupOrder, "stop", lambda self, group, place: None)


@pytest.mark.parametrize("remove", [never_held, never_settled])
def test_without_the_cure_they_are_not(remove: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(remove)
    remove(monkeypatch)
    broken = []
    for seed in range(10):
        try:
            run(seed)
        except AssertionError as error:
            broken.append(str(error))
    assert any("is done too early" in text for text in broken)
