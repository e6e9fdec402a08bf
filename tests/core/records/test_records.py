"""Records of ended jobs: which expire, which are given up, and which take memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sockpqd.core import (
    Aborted,
    Accepted,
    Await,
    Batch,
    Configure,
    ConfigureQueue,
    DataTooLarge,
    Delete,
    DeleteQueue,
    Done,
    End,
    Finished,
    Get,
    Handed,
    How,
    JobState,
    Kick,
    Machine,
    NotFound,
    Number,
    Operation,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Results,
    StoredNumber,
    Tick,
    cost,
    limits,
)
from sockpqd.core.records.records import Records
from tests.core.helpers.logs import ask, restored, snapshot_of
from tests.core.helpers.paging import MemoryStore, paged_machine

START_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.records.block.RECORD_BLOCK_MAX", 4)
    monkeypatch.setattr("sockpqd.core.records.block.RECORD_BLOCK_BYTES", 40)


def machine_with(change: QueueChange, store: MemoryStore | None = None) -> Machine:
    """Return a machine with a queue that has these settings."""
    machine = Machine() if store is None else paged_machine(store)
    ask(machine, ConfigureQueue("q", change), now_ms=START_MS)
    return machine


def finish(
    machine: Machine, count: int, data: bytes = b"x", result: bytes = b"r", step_ms: int = 10, queue: str = "q",
) -> list[int]:
    """Put, take and finish as many jobs, one after the other; returns their numbers."""
    numbers = []
    for _ in range(count):
        now_ms = machine.clock_ms + step_ms
        stored, handed = ask(machine, PutWith(Put(queue, 0, data), number=True), Get((queue,)), now_ms=now_ms)
        assert isinstance(stored, StoredNumber)
        assert isinstance(handed, Handed)
        ask(machine, End(handed.id, How.DONE, text=result), now_ms=now_ms)
        numbers.append(stored.number)
    return numbers


def kept(machine: Machine, numbers: list[int]) -> list[int]:
    """Return the numbers of which there is a record."""
    return [number for number in numbers if machine.ended(number) is not None]


def test_a_record_is_over_when_its_time_has_passed_to_the_millisecond() -> None:
    machine = machine_with(QueueChange(retain_ms=1000))
    numbers = finish(machine, 3)
    last_ms = machine.clock_ms
    for over, at_ms in ((0, last_ms + 979), (1, last_ms + 980), (2, last_ms + 990), (3, last_ms + 1000)):
        ask(machine, Tick(), now_ms=at_ms)
        assert kept(machine, numbers) == numbers[over:]
        assert machine.retained("q") == (3 - over, 2 * (3 - over))


def test_what_was_over_stays_so_when_a_setting_is_raised() -> None:
    machine = machine_with(QueueChange(retain_ms=1000, retain_max=5))
    numbers = finish(machine, 9)
    assert kept(machine, numbers) == numbers[4:]
    ask(machine, ConfigureQueue("q", QueueChange(retain_max=2)))
    ask(machine, ConfigureQueue("q", QueueChange(retain_max=100, retain_bytes=2)))
    ask(machine, ConfigureQueue("q", QueueChange(retain_bytes=1000)))
    assert kept(machine, numbers) == numbers[8:]
    ask(machine, ConfigureQueue("q", QueueChange(retain_ms=0)), now_ms=machine.clock_ms)
    ask(machine, ConfigureQueue("q", QueueChange(retain_ms=10**6)))
    assert kept(machine, numbers) == []


def test_all_queues_together_have_so_many_bytes() -> None:
    machine = machine_with(QueueChange(retain_ms=10**6))
    numbers = finish(machine, 6)
    ask(machine, Configure(retained_bytes=7))
    assert kept(machine, numbers) == numbers[3:]
    finish(machine, 1, data=b"seven..", result=b"")
    assert kept(machine, numbers) == []
    finish(machine, 1, data=b"too many bytes")
    assert machine.retained("q") == (0, 0)


def test_a_result_larger_than_the_data_of_the_queue_may_be_is_refused() -> None:
    machine = machine_with(QueueChange(data_bytes_max=3, retain_ms=1000))
    for how, text in ((How.DONE, b"1234"), (How.DONE, b"123"), (How.LATER, b"1234")):
        _, handed = ask(machine, PutWith(Put("q", 0, b"x"), number=True), Get(("q",)))
        assert isinstance(handed, Handed)
        (reply,) = ask(machine, End(handed.id, how, text=text))
        if how is How.DONE and len(text) > 3:
            assert reply == DataTooLarge()
            assert ask(machine, Done(handed.id)) == [Finished(True, False)]      # nothing has become of the job
        else:
            assert reply == (Accepted() if how is How.LATER else Finished(True, False))
    assert ask(machine, End(99, How.DONE, text=b"1234")) == [NotFound()]


def test_blocks_are_given_up_whole_and_unread() -> None:
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=1000), store)
    numbers = finish(machine, 12)
    while machine.page_out():
        pass
    assert store.pages == 2                         # the last block is in memory
    ask(machine, Tick(), now_ms=machine.clock_ms + 990)
    assert store.pages == 0
    assert kept(machine, numbers) == numbers[-1:]


def test_blocks_that_are_not_full_leave_memory_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECORDS_HOT_BYTES", 3 * (limits.RECORD_BYTES + 2))
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=10**6), store)
    numbers: dict[str, list[int]] = {}
    for queue in ("r", "s", "t", "u"):
        ask(machine, ConfigureQueue(queue, QueueChange(retain_ms=10**6)))
        numbers[queue] = finish(machine, 2, queue=queue)
    while machine.page_out():
        pass
    assert store.pages == 3
    more = finish(machine, 1, queue="r")            # behind what is in a page
    for queue, known in {**numbers, "r": numbers["r"] + more}.items():
        assert kept(machine, known) == known
        assert machine.retained(queue) == (len(known), 2 * len(known))
    ask(machine, *[PurgeQueue(queue, Purged.ENDED) for queue in numbers])
    assert store.pages == 0


def test_a_queue_without_many_records_keeps_them_in_memory() -> None:
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=10**6), store)
    finish(machine, 4)
    assert not machine.page_out()
    assert store.pages == 0


def test_records_leave_memory_while_entries_come_without_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a start: no turn comes before the whole log is applied."""
    monkeypatch.setattr(limits, "RECORDS_HOT_BYTES", 2000)
    monkeypatch.setattr(limits, "RECORDS_CROWDED_BYTES", 4000)
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=10**6), store)
    numbers = finish(machine, 9)
    assert not machine.crowded
    numbers += finish(machine, 1)
    assert machine.crowded
    while machine.crowded and machine.page_out():
        pass
    assert not machine.crowded
    store.full = 1
    numbers += finish(machine, 20)
    assert machine.crowded
    assert not machine.page_out()
    assert not machine.crowded              # there is no room, so no entry waits for it
    store.full = 0
    numbers += finish(machine, 4)
    while machine.page_out():
        pass
    assert store.pages == 8
    assert kept(machine, numbers) == numbers


def test_a_whole_snapshot_is_read_into_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_with(QueueChange(retain_ms=10**6))
    numbers = finish(machine, 30)
    whole, store = snapshot_of(machine), MemoryStore()
    again = paged_machine(store)
    again.restore([whole])
    assert store.pages == 7
    assert snapshot_of(again) == whole
    assert kept(again, numbers) == numbers


def test_a_block_ends_before_the_time_in_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=2**50), store)
    numbers = finish(machine, 2, step_ms=2**32 - 1)
    numbers += finish(machine, 2, step_ms=2**32)
    assert kept(machine, numbers) == numbers
    whole = snapshot_of(machine)
    while machine.page_out():
        pass
    assert store.pages == 2
    assert snapshot_of(machine) == whole


@pytest.mark.parametrize("how", [
    Tick(), PurgeQueue("q", Purged.ENDED), DeleteQueue("q", force=True), Configure(retained_bytes=0),
    ConfigureQueue("q", QueueChange(retain_ms=0)), ConfigureQueue("q", QueueChange(retain_max=0)),
])
def test_records_that_are_over_are_removed_in_portions(how: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECORDS_REMOVED", 8)
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=10**6), store)
    numbers = finish(machine, 40)
    while machine.page_out():
        pass
    assert store.pages == 9
    ask(machine, how, now_ms=machine.clock_ms + (10**6 if isinstance(how, Tick) else 0))
    assert kept(machine, numbers) == []
    assert machine.retained("q") == (0, 0)
    whole, named = snapshot_of(machine), b"".join(machine.snapshot(by_reference=True))
    for left in (7, 5, 3, 1):
        assert store.pages == left
        assert machine.next_due_ms() == 0
        ask(machine, Tick(), now_ms=machine.clock_ms)
    assert store.pages == 0
    assert machine.next_due_ms() != 0
    store.restart()
    again = paged_machine(store)
    again.restore([named])
    assert snapshot_of(again) == whole
    assert kept(again, numbers) == []


def test_a_block_in_a_page_takes_no_more_records() -> None:
    """Two large records fill a block; without one of them it has room again, when it is read by a later process."""
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=10**6), store)
    numbers = finish(machine, 3, data=b"twenty bytes or more")
    while machine.page_out():
        pass
    assert store.pages == 1
    ask(machine, Delete(Number(numbers[0]), ended=True), Delete(Number(numbers[2]), ended=True))
    named = b"".join(machine.snapshot(by_reference=True))
    store.restart()
    again = paged_machine(store)
    again.restore([named])
    more = finish(again, 2)
    assert kept(again, [*numbers, *more]) == [numbers[1], *more]
    assert [again.result(number) for number in more] == [b"r", b"r"]
    assert snapshot_of(again).count(b"twenty bytes") == 1


def test_a_job_that_is_tried_again_has_no_record_until_it_ends_again() -> None:
    machine = machine_with(QueueChange(retain_ms=10**6))
    (number,) = finish(machine, 1)
    ask(machine, Kick("", 1, selector=Number(number), ended=True))
    assert machine.ended(number) is None
    assert machine.result(number) is None
    seen = machine.peek(Number(number))
    assert seen is not None
    assert (seen.state, seen.attempts, seen.number) == (JobState.READY, 0, number)
    (handed,) = ask(machine, Get(("q",)))
    assert isinstance(handed, Handed)
    ask(machine, End(handed.id, How.DONE, text=b"second"))
    assert machine.result(number) == b"second"
    assert machine.retained("q") == (1, 7)


def following(machine: Machine, place: tuple[int, ...]) -> list[int]:
    """Return the numbers of the records after this place."""
    return [record.number for record in machine._state.records.following("q", machine.clock_ms, place)]


@pytest.mark.parametrize("paged", [False, True])
def test_a_place_among_records_outlives_those_that_are_removed(*, paged: bool) -> None:
    machine = machine_with(QueueChange(retain_ms=60_000), MemoryStore() if paged else None)
    before, numbers, after = finish(machine, 3), finish(machine, 20, step_ms=0), finish(machine, 3)
    ended = machine.ended(numbers[0])
    assert ended is not None
    assert ended.ended_ms is not None
    ms = ended.ended_ms
    assert machine.ended(before[-1]).ended_ms == ms     # type: ignore[union-attr]
    while machine.page_out():
        pass
    assert following(machine, ()) == [*before, *numbers, *after]
    place = ms, numbers[9], numbers[8], numbers[7]
    assert following(machine, place) == [*numbers[10:], *after]
    ask(machine, Delete(Number(numbers[9]), ended=True), Delete(Number(numbers[3]), ended=True))
    assert following(machine, place) == [*numbers[10:], *after]
    other = restored(snapshot_of(machine))      # in which records have other positions
    assert following(other, place) == [*numbers[10:], *after]
    assert following(machine, (ms, 5)) == [before[-1], *numbers[:3], *numbers[4:9], *numbers[10:], *after]
    assert following(machine, (ms + 1, 5)) == after
    assert following(machine, (0, 5)) == following(machine, ())
    assert following(machine, (1 << 62, 5)) == []


def test_records_that_come_from_memory_after_a_restart_are_not_taken_for_those_of_a_page() -> None:
    """The pages of another queue follow them in the snapshot: their blocks have the numbers from before."""
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=10**6), store)
    ask(machine, ConfigureQueue("r", QueueChange(retain_ms=10**6)))
    numbers = finish(machine, 4) + finish(machine, 5, queue="r") + finish(machine, 1)
    while machine.page_out():
        pass
    assert store.pages == 2
    whole, named = snapshot_of(machine), b"".join(machine.snapshot(by_reference=True))
    store.restart()
    again = paged_machine(store)
    again.restore([named])
    assert kept(again, numbers) == numbers
    assert [again.result(number) for number in numbers] == [b"r"] * 10
    assert snapshot_of(again) == whole


def test_a_page_of_which_all_records_were_removed_is_not_named() -> None:
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=10**6), store)
    numbers = finish(machine, 13)
    while machine.page_out():
        pass
    ask(machine, *[Delete(Number(number), ended=True) for number in numbers[2:8]])
    whole, named = snapshot_of(machine), b"".join(machine.snapshot(by_reference=True))
    store.restart()
    again = paged_machine(store)
    again.restore([named])
    assert store.pages == 2
    assert kept(again, numbers) == numbers[:2] + numbers[8:]
    assert snapshot_of(again) == whole


def test_a_block_is_read_once_to_take_a_record_from_it() -> None:
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=10**6), store)
    numbers = finish(machine, 13)
    while machine.page_out():
        pass
    ask(machine, Delete(Number(numbers[1]), ended=True))
    assert store.reads == 1
    ask(machine, Kick("", 1, selector=Number(numbers[6]), ended=True))
    assert store.reads == 2
    assert machine.queue_of_ended(numbers[2]) == "q"
    assert machine.queue_of_ended(numbers[1]) is None
    assert store.reads == 2


@pytest.mark.parametrize("operation", [
    lambda number: Delete(Number(number), ended=True), lambda number: Kick("", 1, selector=Number(number), ended=True),
    lambda number: Await(Number(number)),
], ids=["delete", "kick", "await"])
def test_an_entry_reads_only_so_many_blocks(operation: Callable[[int], Operation]) -> None:
    machine = machine_with(QueueChange(retain_ms=10**6), MemoryStore())
    numbers = finish(machine, 200)
    applied = machine.apply(machine.index + 1, machine.clock_ms, 1, [operation(number) for number in numbers])
    assert 0 < len(applied.replies) <= limits.SPENT_MAX // limits.STEP // limits.RECORD_WORK + 1
    first = operation(numbers[0])
    assert isinstance(first, Await) or cost(first)[1] > limits.RECORD_WORK


def test_blocks_are_given_up_when_their_records_were_removed_singly() -> None:
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=10**6), store)
    numbers = finish(machine, 17)
    while machine.page_out():
        pass
    assert store.pages == 4
    first_ms = machine.next_due_ms()
    ask(machine, *[Delete(Number(number), ended=True) for number in numbers[:9]])
    assert store.pages == 2
    assert (machine.next_due_ms() or 0) >= (first_ms or 0)
    assert machine.retained("q") == (8, 16)
    whole, named = snapshot_of(machine), b"".join(machine.snapshot(by_reference=True))
    store.restart()
    again = paged_machine(store)
    again.restore([named])
    assert kept(again, numbers) == numbers[9:]
    assert snapshot_of(again) == whole


def test_a_search_reads_no_block_without_records() -> None:
    store = MemoryStore()
    machine = machine_with(QueueChange(retain_ms=10**6), store)
    numbers = finish(machine, 41)
    while machine.page_out():
        pass
    ask(machine, *[Delete(Number(number), ended=True) for number in numbers[1:40]])
    store.reads = 0
    assert following(machine, ()) == [numbers[0], numbers[40]]
    assert store.reads == 1
    jobs, before = machine.ended_jobs("q", 100)
    while before is not None:
        some, before = machine.ended_jobs("q", 100, before)
        jobs += some
    assert [job.number for job in jobs] == [numbers[40], numbers[0]]
    assert store.reads == 2


def test_blocks_without_records_are_passed_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look is a turn, in which others must not wait long."""
    monkeypatch.setattr("sockpqd.core.records.records.PASSED_MAX", 2)
    machine = machine_with(QueueChange(retain_ms=10**6))
    numbers = finish(machine, 41)
    ask(machine, *[Delete(Number(number), ended=True) for number in numbers[1:40]])
    looks = [machine.ended_jobs("q", 100)]
    while looks[-1][1] is not None:
        looks.append(machine.ended_jobs("q", 100, looks[-1][1]))
    assert [job.number for jobs, _ in looks for job in jobs] == [numbers[40], numbers[0]]
    assert sum(not jobs and before is not None for jobs, before in looks) == 4, "of the nine blocks between them"


def test_what_is_over_before_an_entry_says_so_is_not_counted() -> None:
    machine = machine_with(QueueChange(retain_ms=1000))
    numbers = finish(machine, 10)
    ask(machine, Delete(Number(numbers[1]), ended=True))
    records, end_ms = machine._state.records, machine.clock_ms
    for over in range(10):
        count = len([number for number in numbers[over:] if number != numbers[1]])
        assert records.counts("q", end_ms + 910 + 10 * (over - 1)) == (count, 2 * count)


def alternate(machine: Machine, pairs: int, data: bytes = b"x") -> list[int]:
    """Finish jobs in "p" and "q" in turn; returns their numbers."""
    ask(machine, ConfigureQueue("p", QueueChange(retain_ms=10**6)))
    return [number for _ in range(pairs) for queue in ("p", "q") for number in finish(machine, 1, data, queue=queue)]


def test_what_all_queues_have_too_much_is_over_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """One large record among many small ones: an entry lets two for each it adds be over, and a fixed number more."""
    machine = machine_with(QueueChange(retain_ms=10**6))
    numbers = alternate(machine, 10)                            # with 2 bytes each
    monkeypatch.setattr(limits, "RECORDS_EVICTED", 3)
    ask(machine, Configure(retained_bytes=44))
    ask(machine, PutWith(Put("q", 0, b""), number=True))
    (handed,) = ask(machine, Get(("q",)))
    assert isinstance(handed, Handed)
    ask(machine, End(handed.id, How.DONE, text=bytes(32)))      # room for six small ones is left: 14 have to go
    for over in (5, 8, 11, 14):
        assert kept(machine, numbers) == numbers[over:]
        assert (machine.next_due_ms() == machine.clock_ms) is (over < 14)
        again = restored(snapshot_of(machine))                  # nothing depends on what a snapshot lacks
        for one in (machine, again):
            ask(one, Tick(), now_ms=one.clock_ms)
        assert snapshot_of(again) == snapshot_of(machine)
    assert sum(machine.retained(queue)[1] for queue in ("p", "q")) == 44
    ask(machine, Configure(retained_bytes=0))
    assert kept(machine, numbers) == numbers[17:]
    while machine.next_due_ms() == machine.clock_ms:
        ask(machine, Tick(), now_ms=machine.clock_ms)
    assert machine.retained("p") == machine.retained("q") == (0, 0)


def test_however_many_records_come_the_excess_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_with(QueueChange(retain_ms=10**6))
    monkeypatch.setattr(limits, "RECORDS_EVICTED", 0)
    finish(machine, 10)
    ask(machine, Configure(retained_bytes=6))
    for left in (9, 8, 7, 6, 5, 4, 3, 3, 3):
        finish(machine, 1)
        assert machine.retained("q")[0] == left


def test_an_undone_batch_leaves_the_oldest_record_the_next_to_go() -> None:
    """Records of p and q end in turn; the batch lets the first two be over, and looks for more, before it fails."""
    machine = machine_with(QueueChange(retain_ms=10**6))
    numbers = alternate(machine, 3)
    ask(machine, Configure(retained_bytes=12))
    ask(machine, *[PutWith(Put("q", 0, b""), number=True)] * 3)
    ids = [reply.id for reply in ask(machine, *[Get(("q",))] * 3) if isinstance(reply, Handed)]
    batch = Batch((*[End(number, How.DONE, text=b"12") for number in ids[:2]], Done(999)), atomic=True)
    ask(machine, batch)
    assert kept(machine, numbers) == numbers
    again = restored(snapshot_of(machine))
    for one in (machine, again):
        ask(one, batch, End(ids[2], How.DONE, text=b"12"))
        assert kept(one, numbers) == numbers[1:]
    assert snapshot_of(again) == snapshot_of(machine)


def test_an_undone_batch_leaves_the_time_at_which_a_record_is_over() -> None:
    machine = machine_with(QueueChange(retain_ms=1000))
    numbers = finish(machine, 1)
    over_ms = machine.clock_ms + 1000
    ask(machine, PutWith(Put("q", 0, b""), number=True), now_ms=over_ms - 500)
    (handed,) = ask(machine, Get(("q",)))
    assert isinstance(handed, Handed)
    ask(machine, Batch((Delete(Number(numbers[0]), ended=True), Done(handed.id), Done(999)), atomic=True))
    assert machine.retained("q") == (1, 2)
    ask(machine, Tick(), now_ms=over_ms)
    assert machine.retained("q") == (0, 0)


def test_queues_whose_oldest_record_went_are_not_left_for_one_entry_to_find(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_with(QueueChange(retain_ms=10**6))
    queues = [f"q{number}" for number in range(30)]
    for queue in queues:
        ask(machine, ConfigureQueue(queue, QueueChange(retain_ms=10**6, retain_max=1)))
    for queue in queues * 2:
        finish(machine, 1, queue=queue)
    looks: list[str] = []
    look = Records._relist

    def counted(self: Records, queue: str) -> bool:
        looks.append(queue)
        return look(self, queue)

    monkeypatch.setattr(Records, "_relist", counted)
    ask(machine, Configure(retained_bytes=58))
    assert machine.retained("q0") == (0, 0)
    assert len(looks) < 5


@pytest.mark.parametrize("before", [0, 1, 3, 4])
def test_a_batch_that_is_refused_after_it_filled_a_block_changes_nothing(before: int) -> None:
    machine = machine_with(QueueChange(retain_ms=10**6))
    kept_before = finish(machine, before)
    ids = []
    for _ in range(10):
        _, handed = ask(machine, PutWith(Put("q", 0, b"x"), number=True), Get(("q",)))
        assert isinstance(handed, Handed)
        ids.append(handed.id)
    (refused,) = ask(machine, Batch((*map(Done, ids), Done(999)), atomic=True))
    assert isinstance(refused, Aborted)
    assert kept(machine, kept_before) == kept_before
    assert machine.retained("q") == (before, 2 * before)
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)
    (ended,) = ask(machine, Batch(tuple(map(Done, ids)), atomic=True))
    assert isinstance(ended, Results)
    assert machine.retained("q") == (before + 10, 2 * before + 10)
