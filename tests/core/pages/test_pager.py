"""The pager: which jobs leave memory, when, and when it gives up."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    AnyJob,
    ConfigureQueue,
    Due,
    Get,
    GetWith,
    JobState,
    Machine,
    Order,
    PageLost,
    Pager,
    Pages,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    limits,
)
from sockpqd.core.limits import INDEXED_BYTES, JOB_BYTES, PAGE_HANDLE_BYTES
from sockpqd.core.pages import pager
from sockpqd.core.pages.pager import LEAST_PART, STAGES
from tests.core.helpers.logs import ask
from tests.core.helpers.paging import MemoryStore, paged_machine

BODY = bytes(100)
EACH = JOB_BYTES + len(BODY)
BUDGET = 10_000 * EACH


def filled(budget: int, jobs: int, queues: int = 1, priorities: int = 1, store: MemoryStore | None = None) -> Machine:
    """Return a machine with this many jobs, and pages of the usual sizes."""
    machine = paged_machine(store or MemoryStore(), STAGES, budget)
    for start in range(0, jobs, 1000):
        ask(machine, *[
            Put(f"q{number % queues}", number // queues % priorities, BODY)
            for number in range(start, min(start + 1000, jobs))
        ])
    return machine


def relieve(machine: Machine) -> int:
    """Page out until there is nothing more to do; returns how many steps that took."""
    for steps in range(100_000):
        if not machine.page_out():
            return steps
    raise AssertionError("paging out does not end")


def take(machine: Machine, count: int) -> None:
    """Hand out this many jobs."""
    for _ in range(count // 1000):
        ask(machine, GetWith(Get(None), 1000))


def pages_of(machine: Machine) -> Pages:
    """Return the pages of the machine."""
    assert machine.pages is not None
    return machine.pages


def test_each_queue_tells_what_of_it_is_on_the_disk() -> None:
    machine = filled(BUDGET, 30_000, queues=3, priorities=4)
    assert machine.on_disk("q1").jobs == 0
    relieve(machine)
    told = [machine.on_disk(f"q{number}") for number in range(3)]
    assert sum(one.jobs for one in told) == pages_of(machine).jobs > 15_000
    assert all(one.data_bytes == len(BODY) * one.jobs for one in told)
    assert machine.on_disk("nothing").jobs == Machine().on_disk("q1").jobs == 0


def test_below_the_budget_nothing_is_paged() -> None:
    machine = filled(BUDGET, 10_000)
    assert relieve(machine) == 0
    assert pages_of(machine).written == 0
    assert machine.hot_bytes == BUDGET
    assert not machine.crowded


def test_beyond_the_budget_an_eighth_of_it_becomes_free() -> None:
    machine = filled(BUDGET, 15_000)
    assert machine.crowded
    relieve(machine)
    assert BUDGET * 6 // 8 < machine.hot_bytes <= BUDGET * 7 // 8
    pages = pages_of(machine)
    assert machine.hot_bytes == 15_000 * EACH - pages.saved_bytes + pages.handles_bytes
    assert relieve(machine) == 0


def later(budget: int, jobs: int) -> Machine:
    """Return a machine with this many delayed jobs, as few of them as possible in memory."""
    machine = paged_machine(MemoryStore(), STAGES, budget)
    for start in range(0, jobs, 1000):
        ask(machine, *[PutWith(Put("q", 0, BODY), Due(10_000_000 + number)) for number in range(start, start + 1000)])
        relieve(machine)
    return machine


def test_what_finds_delayed_jobs_again_counts_and_takes_a_part_of_the_budget() -> None:
    machine = later(BUDGET, 30_000)
    pages = pages_of(machine)
    assert pages.indexed == pages.jobs > 15_000
    assert pages.handles_bytes == INDEXED_BYTES * pages.jobs + PAGE_HANDLE_BYTES * pages.count
    assert machine.hot_bytes == 30_000 * EACH - pages.saved_bytes + pages.handles_bytes <= BUDGET


def test_handles_beyond_the_budget_leave_the_jobs_in_memory_a_part_of_it() -> None:
    budget = 500 * LEAST_PART * EACH
    machine = later(budget, 75_000)
    pages = pages_of(machine)
    assert pages.handles_bytes > budget
    assert machine.hot_bytes - pages.handles_bytes < 200 * EACH
    for jobs, paged in ((300, False), (300, True)):
        ask(machine, *[Put("q", 0, BODY)] * jobs)
        assert not machine.crowded
        assert bool(relieve(machine)) is paged


def test_jobs_that_are_gone_leave_the_index() -> None:
    machine = later(BUDGET, 15_000)
    ask(machine, *[PurgeQueue("q", Purged.ALL)] * 40)
    assert pages_of(machine).indexed == pages_of(machine).handles_bytes == 0


def test_the_first_jobs_of_a_queue_stay_in_memory() -> None:
    machine = filled(BUDGET, 50_000)
    relieve(machine)
    ask(machine, GetWith(Get(None), 1900))
    assert pages_of(machine).read == 0
    take(machine, 10_000)
    assert pages_of(machine).read > 0


def test_pages_ahead_are_announced() -> None:
    store = MemoryStore()
    machine = filled(BUDGET, 30_000, store=store)
    relieve(machine)
    take(machine, 20_000)
    assert store.expected > 0


@pytest.mark.parametrize(("queues", "priorities"), [(20, 1), (1, 100), (5, 20)])
def test_with_many_queues_and_priorities_less_of_each_stays(queues: int, priorities: int) -> None:
    machine = filled(BUDGET, 60_000, queues, priorities)
    relieve(machine)
    assert machine.hot_bytes <= BUDGET


def test_what_cannot_be_paged_is_not_looked_at_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = paged_machine(MemoryStore(), STAGES, 100 * EACH)
    ask(machine, ConfigureQueue("ordered", QueueChange(order=Order.TIME)))
    ask(machine, *[PutWith(Put("q", 0, BODY), key=f"k{number}") for number in range(1000)])
    ask(machine, *[PutWith(Put("later", 0, BODY), Due(10**6), key=f"k{number}") for number in range(1000)])
    ask(machine, *[Put("items", 0, BODY, f"i{number}") for number in range(1000)])
    ask(machine, *[Put("ordered", 0, BODY) for number in range(1000)])
    assert relieve(machine) > 0
    assert pages_of(machine).written == 0
    ask(machine, *[PutWith(Put("later", 0, BODY), Due(10**6), key=f"l{number}") for number in range(400)])
    with monkeypatch.context() as patch:
        patch.setattr(pager, "_round", None)        # would be called
        assert relieve(machine) == 0
    ask(machine, *[PutWith(Put("later", 0, BODY), Due(10**6), key=f"m{number}") for number in range(200)])
    assert relieve(machine) > 0


def test_a_full_store_ends_the_search_at_once() -> None:
    store = MemoryStore(full=1)
    machine = filled(BUDGET, 40_000, store=store)
    assert relieve(machine) == 0
    assert pages_of(machine).full
    assert relieve(machine) == 0
    store.full = 0
    ask(machine, *[Put("q", 0, BODY)] * 6000)
    relieve(machine)
    assert machine.hot_bytes <= BUDGET


def test_when_there_is_room_again_short_queues_do_not_keep_a_deep_one_in_memory() -> None:
    """One step of the way looks at the short ones, writes nothing, and must not think that there was no room."""
    store = MemoryStore()
    machine = paged_machine(store, STAGES, BUDGET)
    ask(machine, *[Put(f"a{number}", 0, BODY) for number in range(2 * pager.LOOKS)])
    ask(machine, *[Put("deep", 0, BODY)] * 15_000)
    store.full = 1
    relieve(machine)
    assert pages_of(machine).full
    store.full = 0
    ask(machine, *[Put("deep", 0, BODY)] * 5000)
    relieve(machine)
    assert machine.hot_bytes <= BUDGET


def test_large_jobs_are_worth_a_page_each() -> None:
    machine = paged_machine(MemoryStore(), STAGES, 10 << 20)
    ask(machine, *[Put("q", 0, bytes(100_000)) for _ in range(700)])
    relieve(machine)
    assert machine.hot_bytes <= 10 << 20
    assert max(page_bytes(machine)) <= 3 * 100_000


def page_bytes(machine: Machine) -> list[int]:
    """Return the sizes of the pages."""
    pager_of = machine._state.pager
    assert isinstance(pager_of, Pager)
    space = pager_of.pages._space
    return [len(data) for data in space.by_number.values()]         # type: ignore[attr-defined]


def test_a_page_that_is_not_there_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    machine = filled(BUDGET, 30_000, store=store)
    relieve(machine)
    kept, numbers = store.spaces[0], []

    def miss(number: int) -> bytes:
        numbers.append(number)
        raise PageLost(f"there is no page {number}")
    monkeypatch.setattr(kept, "get", miss)
    with pytest.raises(PageLost):
        machine.peek_queue("q0", JobState.READY, 30_000)
    with pytest.raises(PageLost):
        take(machine, 30_000)
    assert len(numbers) == 2


def test_what_is_shown_is_read_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = filled(BUDGET, 30_000)
    relieve(machine)
    monkeypatch.setattr(limits, "LOOKED_BYTES_MAX", 300 * len(BODY))
    found: list[AnyJob] = []
    pages, read = pages_of(machine), []
    while True:
        before = pages.read
        some = machine.next_jobs("q0", JobState.READY, 29_000, found)
        read.append(pages.read - before)
        if not some:
            break
        found += some
    assert len(found) == 29_000
    assert found == sorted(found)
    assert len({job.seq for job in found}) == 29_000
    assert sum(read) > 50
    assert max(read) <= 3


@pytest.mark.parametrize("data", [b"", b"\x90", b"\xc1", b"\x91\x01"])
def test_a_page_with_other_bytes_is_lost(data: bytes) -> None:
    store = MemoryStore()
    machine = filled(BUDGET, 30_000, store=store)
    relieve(machine)
    for number in store.spaces[0].by_number:
        store.spaces[0].by_number[number] = data
    with pytest.raises(PageLost):
        machine.peek_queue("q0", JobState.READY, 30_000)
