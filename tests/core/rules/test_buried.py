"""BURIED jobs and jobs taken by number: where they lie, what counts them, and how they come back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sockpqd.core import (
    Batch,
    Change,
    ConfigureQueue,
    Delete,
    DeleteQueue,
    Done,
    Due,
    Empty,
    End,
    Finished,
    Get,
    GetWith,
    Handed,
    How,
    JobRunning,
    JobState,
    Kick,
    Later,
    Machine,
    NotFound,
    Number,
    PauseQueue,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    QueueNotEmpty,
    QueueNotFound,
    Removed,
    Selector,
    Tick,
)
from sockpqd.core.limits import PORTION_MAX
from tests.core.helpers.logs import restored, snapshot_of
from tests.core.rules.test_numbers import START_MS, Cluster


class Yard(Cluster):
    """A cluster in whose queues jobs are buried."""

    def __init__(self) -> None:
        super().__init__()
        self.machine.record(["PUT", "DEAD", "FINQ", "FINI", "TAKE"])

    def bury(self, data: bytes, **options: object) -> int:
        """Bury a job; returns its number."""
        number = self.put(data, **options)
        reply = self.do(GetWith(Get(None), number=number))[0]
        assert isinstance(reply, Handed)
        self.do(End(reply.id, How.BURY, here=True))
        return number

    def lie(self, queue: str = "q") -> list[bytes]:
        return [job.data for job in self.machine.peek_queue(queue, JobState.BURIED, 2000)]

    def events(self, *operations: object) -> list[str]:
        applied = self.machine.apply(self.machine.index + 1, self.now_ms, 1, list(operations))  # type: ignore[arg-type]
        return [event.type for event in applied.events]


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_they_lie_in_the_order_of_burial_whatever_their_priority(yard: Yard) -> None:
    for data, priority in (b"a", 1), (b"b", 9), (b"c", 5):
        yard.do(Put("q", 0, data))
        yard.do(End(yard.take().id, How.BURY, priority=priority, here=True))
    assert yard.lie() == [b"a", b"b", b"c"]
    assert [job.priority for job in yard.machine.peek_queue("q", JobState.BURIED, 9)] == [1, 9, 5]
    assert yard.do(Kick("q", 2, here=True)) == [Removed(2, False, True)]
    assert (yard.ready(), yard.lie()) == ([b"b", b"a"], [b"c"])


def test_they_are_not_unfinished_in_their_queue(yard: Yard) -> None:
    yard.do(Put("q", 0, b"a", item="x"))
    assert yard.do(End(yard.take().id, How.BURY, here=True), Get(("q",))) == [Finished(True, False), Empty(False)]
    assert not yard.machine.unfinished("q")
    assert not yard.machine.unfinished("q", "x")
    counts = yard.machine.counts("q")
    assert counts is not None
    assert (counts.ready, counts.buried) == (0, 1)
    assert yard.machine.queue_names("") == ["q"]


def test_its_item_goes_on(yard: Yard) -> None:
    """As with a dead job: what comes after the item waits on."""
    yard.do(Put("q", 0, b"a", item="x"))
    yard.do(End(yard.take().id, How.BURY, here=True), PutWith(Put("r", 0, b"b"), after=("x",)))
    assert yard.do(Get(("r",))) == [Empty(True)]
    assert yard.events(Kick("q", 1, here=True)) == ["PUT"]
    assert yard.events(Done(yard.take().id)) == ["FINQ", "FINI"]
    assert isinstance(yard.do(Tick(), Get(("r",)))[1], Handed)


def test_what_is_told(yard: Yard) -> None:
    yard.put(b"a")
    assert yard.events(End(yard.take().id, How.BURY, here=True)) == ["DEAD", "FINQ"]
    assert yard.events(Kick("q", 1, here=True)) == ["PUT"]


def test_its_counters_live_as_long_as_it_lies_there(yard: Yard) -> None:
    number = yard.bury(b"a")
    assert yard.machine.history("q", yard.now_ms).put == 1
    assert yard.machine.history("q", yard.now_ms).dead == 1
    assert yard.do(Kick("", 1, selector=Number(number))) == [Removed(1)]
    assert yard.machine.history("q", yard.now_ms).put == 1     # it has come from nowhere
    yard.do(End(yard.take().id, How.BURY, here=True))
    assert yard.do(Delete(Number(number))) == [Finished(False, False)]
    assert yard.machine.counts("q") is None
    assert yard.machine.history("q", yard.now_ms).put == 0


def test_delayed_ones_are_kicked_only_if_none_is_buried(yard: Yard) -> None:
    yard.put(b"later", when=Due(9000))
    yard.put(b"soon", when=Due(5000))
    yard.bury(b"buried")
    assert yard.do(Kick("q", 9, here=True)) == [Removed(1, False, True)]
    assert yard.ready() == [b"buried"]
    assert yard.do(Kick("q", 1, here=True)) == [Removed(1, False, False)]
    assert yard.ready() == [b"soon", b"buried"]         # at the place of its number
    yard.do(Later(yard.take().id))
    assert yard.ready() == [b"soon", b"buried"]         # and its time does not come again
    assert yard.do(
        Kick("q", 9, here=True), Kick("none", 9, here=True),
    ) == [Removed(1, False, False), Removed(0, False, False)]


def test_who_waits_for_items_is_not_kicked(yard: Yard) -> None:
    yard.do(Put("r", 0, b"first", item="x"))
    number = yard.put(b"second", after=("x",))
    assert yard.do(
        Kick("q", 1, here=True), Kick("", 1, selector=Number(number)),
    ) == [Removed(0, False, False), NotFound()]
    assert isinstance(yard.do(GetWith(Get(None), number=number))[0], Handed)
    yard.do(Done(yard.machine.next_id - 1))
    assert yard.machine.peek(Number(number)) is None


def test_a_large_kick_goes_on_with_what_it_began(yard: Yard) -> None:
    for _ in range(PORTION_MAX + 2):
        yard.do(Put("q", 0, b"a"))
        yard.do(End(yard.take().id, How.BURY, here=True))
    yard.put(b"delayed", when=Due(5000))
    assert yard.do(Kick("q", 5000, here=True)) == [Removed(PORTION_MAX, True, True)]
    assert yard.do(Kick("q", 5000, here=True, buried=True)) == [Removed(2, False, True)]
    assert yard.do(Kick("q", 5000, here=True, buried=True)) == [Removed(0, False, True)]


def test_kick_by_number(yard: Yard) -> None:
    buried, delayed, ready = yard.bury(b"a"), yard.put(b"b", when=Due(5000)), yard.put(b"c")
    assert yard.do(*(Kick("", 1, selector=Number(one)) for one in (buried, delayed, ready))) == [
        Removed(1), Removed(1), NotFound()]
    assert yard.ready() == [b"a", b"b", b"c"]
    assert yard.counts(buried).kicks == yard.counts(delayed).kicks == 1
    taken = yard.take()
    assert yard.do(Kick("", 1, selector=Number(buried)), Done(taken.id), Kick("", 1, selector=Number(buried))) == [
        NotFound(), Finished(False, False), NotFound()]


@pytest.mark.parametrize("before", ["ready", "delayed", "buried"])
def test_it_is_taken_by_its_number(yard: Yard, before: str) -> None:
    number = yard.put(b"a", when=Due(60_000) if before == "delayed" else None)
    if before == "buried":
        yard.do(End(yard.take().id, How.BURY, here=True))
    yard.do(PauseQueue("q", False, True))
    (reply,) = yard.do(GetWith(Get(None, 10_000), meta=True, number=number))
    assert isinstance(reply, Handed)
    assert (reply.data, yard.machine.running()[0].deadline_ms) == (b"a", START_MS + 10_000)
    assert yard.do(GetWith(Get(None), number=number), GetWith(Get(None), number=7)) == [JobRunning(), NotFound()]
    yard.do(Later(reply.id))
    assert yard.ready() == [b"a"]


def test_a_limit_and_an_item_limit_do_not_keep_it(yard: Yard) -> None:
    yard.do(ConfigureQueue("q", QueueChange(limit=1, item_limit=1), create=True))
    numbers = []
    for _ in range(3):
        (reply,) = yard.do(PutWith(Put("q", 0, b"a", "x"), number=True))
        numbers.append(reply.number)  # type: ignore[union-attr]
    ids = [reply.id for reply in yard.do(*(GetWith(Get(None), number=one) for one in numbers))]  # type: ignore[union-attr]
    assert len(ids) == 3
    assert yard.do(*map(Later, ids), Get(("q",)), Get(("q",)))[-1] == Empty(True)


def test_it_takes_no_grant(yard: Yard) -> None:
    yard.do(ConfigureQueue("q", QueueChange(rate=1, per_ms=1000), create=True))
    number = yard.put(b"a")
    assert yard.do(Get(("q",))) == [Empty(True)]
    assert isinstance(yard.do(GetWith(Get(None), number=number))[0], Handed)
    assert yard.machine.pulses["queue:q"].granted == 0
    assert yard.do(Done(yard.machine.running()[0].id)) == [Finished(True, False)]


def test_its_key_is_free_meanwhile(yard: Yard) -> None:
    number = yard.bury(b"a", key="k")
    assert yard.machine.peek(Selector(queue="q", key="k")) is None
    yard.do(PutWith(Put("q", 0, b"b"), key="k"))
    yard.do(Kick("", 1, selector=Number(number)))
    found = yard.machine.peek(Selector(queue="q", key="k"))
    assert found is not None
    assert found.data == b"b"
    yard.do(GetWith(Get(None), number=number), End(yard.machine.next_id, How.BURY, here=True))
    other = yard.bury(b"c", key="l")
    yard.do(Kick("", 1, selector=Number(other)))
    assert yard.machine.peek(Selector(queue="q", key="l")) is not None


def test_it_is_changed_where_it_lies(yard: Yard) -> None:
    number, other = yard.bury(b"a"), yard.bury(b"b")
    yard.do(Change(Number(number), 7, item="x", data=b"changed"))
    assert yard.lie() == [b"changed", b"b"]
    yard.do(Kick("q", 9, here=True))
    assert yard.ready() == [b"changed", b"b"]
    assert yard.machine.unfinished("q", "x")
    assert other > number


def test_a_queue_is_not_empty_while_one_lies_there(yard: Yard) -> None:
    yard.bury(b"a")
    assert yard.do(DeleteQueue("q", False)) == [QueueNotEmpty()]
    assert yard.do(PurgeQueue("q", Purged.READY), PurgeQueue("q", Purged.BURIED)) == [Removed(0), Removed(1)]
    assert yard.do(DeleteQueue("q", False)) == [QueueNotFound()]
    yard.bury(b"a")
    assert yard.do(PurgeQueue("q", Purged.ALL)) == [Removed(1)]
    yard.bury(b"a")
    yard.do(DeleteQueue("q", True))
    assert yard.machine.queue_names("") == []


@pytest.mark.parametrize("alone", [True, False])
def test_an_aborted_batch_leaves_it_as_it_was(yard: Yard, alone: bool) -> None:
    buried = yard.bury(b"a", key="k")
    if not alone:
        yard.put(b"b")
        yard.put(b"c")
        yard.take()
    before = snapshot_of(yard.machine)
    running = [End(job.id, How.BURY, priority=4, here=True, reason="why") for job in yard.machine.running()]
    for steps in (
        (Kick("", 1, selector=Number(buried)),), (Delete(Number(buried)),), (*running,),
        (Change(Number(buried), item="x"), Kick("", 1, selector=Number(buried)), *running),
    ):
        machine = restored(before)
        machine.apply(machine.index + 1, yard.now_ms, 1, [Batch((*steps, Done(999)), atomic=True)])
        assert _content(snapshot_of(machine)) == _content(before)


def _content(snapshot: bytes) -> object:
    """Return everything except the index of the last entry."""
    machine = restored(snapshot)
    machine._state.index = 0
    return snapshot_of(machine)


def test_delay_of_the_last_put_or_later_is_kept(yard: Yard) -> None:
    number = yard.put(b"a", when=Due(5_000))
    assert yard.counts(number).delay_ms == 5_000
    yard.do(GetWith(Get(None), number=number))
    yard.do(End(yard.machine.running()[0].id, How.LATER, Due(2_000)))
    assert yard.counts(number).delay_ms == 2_000
    yard.do(Kick("", 1, selector=Number(number)))
    assert yard.counts(number).delay_ms == 2_000
    yard.do(Later(yard.take().id))
    assert yard.counts(number).delay_ms == 0


def test_a_dead_job_can_be_buried_in_the_dead_queue(yard: Yard) -> None:
    yard.put(b"a")
    yard.do(End(yard.take().id, How.BURY))
    yard.do(End(yard.take("q_dead").id, How.BURY, here=True))
    assert (yard.lie("q_dead"), yard.do(Kick("q", 1))) == ([b"a"], [Removed(0)])
    yard.do(Kick("q_dead", 1, here=True))
    assert yard.do(Kick("q", 1)) == [Removed(1)]
    assert yard.ready() == [b"a"]


def test_a_snapshot_has_them(yard: Yard) -> None:
    yard.bury(b"a", key="k")
    yard.bury(b"b")
    machine = restored(snapshot_of(yard.machine))
    assert isinstance(machine, Machine)
    assert snapshot_of(machine) == snapshot_of(yard.machine)
    assert machine.peek_queue("q", JobState.BURIED, 9) == yard.machine.peek_queue("q", JobState.BURIED, 9)
    assert machine.history("q", 0) == replace(yard.machine.history("q", 0))
