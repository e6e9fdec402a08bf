"""Large bodies leave memory whatever else their jobs have, come back when they are needed, and go with their jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import pytest

from sockpqd.core import (
    Batch,
    Change,
    CloneChunk,
    Done,
    Due,
    End,
    Get,
    GetWith,
    Handed,
    How,
    JobState,
    Later,
    Machine,
    Move,
    Operation,
    PageLost,
    Pager,
    Pages,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    Selector,
    SnapshotError,
    ToQueues,
    bytes_of,
    expanded,
    references,
)
from sockpqd.core.limits import JOB_BYTES
from sockpqd.core.pages import paged_run
from sockpqd.core.pages.bodies import PagedBodies
from sockpqd.core.pages.pager import STAGES, Stage
from sockpqd.core.store.job import Extras, Job
from tests.core.helpers.logs import KNOWN_LEVEL, LogEntry, ask, random_log, snapshot_of
from tests.core.helpers.paging import MemoryStore, paged_machine, small_collections
from tests.core.helpers.paging_law import assert_counted, assert_law
from tests.core.helpers.session_logs import random_session_log
from tests.core.helpers.time_logs import random_time_log

LARGE = 5000
FAR = Due(10**9)


def body(number: int) -> bytes:
    """Return a large body that no other job has."""
    return b"%d" % number * LARGE


def holder(store: MemoryStore | None = None, budget: int = 0) -> Machine:
    """Return a machine whose jobs stay in memory, but not their bodies: its queues are short."""
    return paged_machine(store or MemoryStore(), STAGES, budget)


def relieve(machine: Machine) -> None:
    """Page out until there is nothing more to do."""
    for _ in range(10_000):
        if not machine.page_out():
            return
    raise AssertionError("paging out does not end")


def bodies_of(machine: Machine) -> PagedBodies:
    """Return the bodies of a machine with pages, counted now."""
    assert machine.pages is not None
    machine.pages.bodies.settle()
    return machine.pages.bodies


def jobs_in_all_states(machine: Machine) -> int:
    """Put large jobs that no page can take; returns how many."""
    ask(machine, Put("running", 0, body(0)), Put("buried", 0, body(1)), Put("dead", 0, body(2)))
    taken = ask(machine, Get(("running",)), Get(("buried",)), Get(("dead",)))
    ids = [reply.id for reply in taken if isinstance(reply, Handed)]
    ask(machine, End(ids[1], How.BURY, here=True), End(ids[2], How.BURY))
    ask(
        machine, PutWith(Put("keyed", 0, body(3)), key="k"), Put("item", 0, body(4), "i"),
        PutWith(Put("group", 0, body(5)), group="g"), PutWith(Put("number", 0, body(6)), number=True),
        PutWith(Put("late", 0, body(7)), FAR, key="k"), Put("front", 0, body(8)),
    )
    return 9


def seen(machine: Machine) -> dict[bytes, int]:
    """Return the bodies of all jobs that can be seen, and how many jobs have each."""
    found: dict[bytes, int] = {}
    for name in machine.queue_names(""):
        for state in JobState:
            for view in machine.peek_queue(name, state, 100):
                data = bytes_of(view.data)
                found[data[:1]] = found.get(data[:1], 0) + 1
                assert data == data[:1] * LARGE
    return found


def test_bodies_leave_memory_in_every_state_and_are_seen_as_they_were() -> None:
    store = MemoryStore()
    machine, plain = holder(store), Machine(KNOWN_LEVEL)
    count = jobs_in_all_states(machine)
    jobs_in_all_states(plain)
    relieve(machine)
    assert bodies_of(machine).count == store.pages == count
    assert bodies_of(machine).hot_bytes == 0
    assert machine.pages is not None
    assert machine.pages.jobs == 0
    assert seen(machine) == seen(plain)
    assert len(seen(machine)) == count
    assert snapshot_of(machine) == snapshot_of(plain)
    assert machine.hot_bytes == plain.hot_bytes - sum(
        machine.on_disk(name).data_bytes for name in machine.queue_names(""))


def test_a_body_is_handed_out_and_goes_with_its_job() -> None:
    store = MemoryStore()
    machine = holder(store)
    ask(machine, *[PutWith(Put("q", 0, body(number)), key=f"k{number}") for number in range(4)])
    relieve(machine)
    assert machine.on_disk("q").jobs == 4
    handed = [reply for reply in ask(machine, *[Get(("q",))] * 3) if isinstance(reply, Handed)]
    assert [reply.data for reply in handed] == [body(0), body(1), body(2)]
    assert (store.pages, machine.on_disk("q").jobs, machine.on_disk("q").data_bytes) == (4, 1, LARGE)
    ask(machine, Done(handed[0].id), Later(handed[1].id), Move(handed[2].id, "other"))
    bodies_of(machine)
    assert (store.pages, machine.on_disk("q").jobs, machine.on_disk("other").jobs) == (3, 2, 1)
    ask(machine, Change(Selector(0, "q", "k3"), data=b"small"))
    bodies_of(machine)
    assert (store.pages, machine.on_disk("q").jobs) == (2, 1)
    assert bodies_of(machine).written == 4


def test_a_change_that_is_taken_back_keeps_the_old_body() -> None:
    store = MemoryStore()
    machine = holder(store)
    ask(machine, PutWith(Put("q", 0, body(1)), key="k"), Put("r", 0, body(2)))
    relieve(machine)
    ask(machine, Batch((Change(Selector(0, "q", "k"), data=body(3)), Put("q", 0, body(4)), Done(4711)), True))
    bodies_of(machine)
    assert store.pages == bodies_of(machine).count == 2
    assert bodies_of(machine).hot_bytes == 0
    assert seen(machine) == {b"1": 1, b"2": 1}
    assert_counted(machine, store)


def test_the_oldest_bodies_leave_first_and_only_as_many_as_must() -> None:
    machine = holder(budget=20 * LARGE)
    ask(machine, *[PutWith(Put("q", 0, body(number % 10)), key=f"k{number}") for number in range(18)])
    relieve(machine)
    assert bodies_of(machine).written == 0
    ask(machine, *[PutWith(Put("q", 0, body(number % 10)), key=f"k{number}") for number in range(18, 30)])
    relieve(machine)
    outside = bodies_of(machine).count
    assert 12 < outside < 20
    assert machine.hot_bytes <= 20 * LARGE
    reads = bodies_of(machine).reads
    for number in range(30):
        view = machine.peek(Selector(0, "q", f"k{number}"))
        assert view is not None
        assert bytes_of(view.data) == body(number % 10)
        assert bodies_of(machine).reads == reads + min(number + 1, outside)


def test_jobs_that_have_to_stay_are_not_all_looked_at_for_every_few_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    pieces = paged_run._pieces

    def counted(
        block: list[Job], start: int, jobs_max: int, fits: Callable[[list[Job]], list[bool]],
    ) -> Iterator[tuple[list[Job], int, bool]]:
        nonlocal looked
        looked += len(block) - start
        return pieces(block, start, jobs_max, fits)

    monkeypatch.setattr(paged_run, "_pieces", counted)
    machine = paged_machine(MemoryStore(), (Stage(1, 3, 1),), 200 * LARGE)
    for number in range(2000):
        ask(machine, PutWith(Put("q", 0, body(1)), key=f"k{number}"))
        relieve(machine)
    assert bodies_of(machine).count > 1500
    assert 0 < looked < 20 * 2000


def test_a_walk_does_not_measure_the_data_of_jobs_that_have_to_stay() -> None:
    unmeasured = cast(bytes, object())
    jobs = [Job(0, 0, seq, "q", unmeasured, None, 0, None, Extras(key=f"k{seq}")) for seq in range(4)]
    plain = Job(0, 0, 4, "q", body(1), None, 0, None, None)
    assert list(paged_run._pieces(jobs, 0, 4)) == [(jobs, 0, False)]
    parts = list(paged_run._pieces([*jobs, plain], 0, 5))
    assert parts == [(jobs, 0, False), ([plain], len(body(1)), True)]


def test_plain_jobs_leave_as_pages_when_there_are_many_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)
    machine = paged_machine(MemoryStore(), (Stage(1, 3, 1),), 20 * LARGE)
    for number in range(40):
        ask(machine, PutWith(Put("q", 0, body(1)), key=f"k{number}"))
        relieve(machine)
    assert machine.pages is not None
    assert machine.pages.jobs == 0
    for _ in range(60):
        ask(machine, Put("q", 0, body(2)))
        relieve(machine)
    assert machine.pages.jobs > 30


def test_running_bodies_count_until_they_are_outside() -> None:
    machine = holder(budget=10 * LARGE)
    for _ in range(10):
        ask(machine, Put("q", 0, body(1)), Put("q", 0, body(2)), Get(None), Get(None))
    assert machine.hot_bytes == 20 * LARGE
    relieve(machine)
    assert machine.hot_bytes <= 10 * LARGE


@pytest.mark.parametrize("when", [None, FAR])
def test_a_body_outside_goes_into_a_page_with_its_job_and_comes_back(when: Due | None) -> None:
    """First the jobs are at the front, so that only their bodies leave memory; then others of more priority come."""
    store, plain = MemoryStore(), Machine(KNOWN_LEVEL)
    machine = paged_machine(store, (Stage(30, 8, 2), Stage(30, 8, 2)))
    puts: list[Operation] = [Put("q", 0, body(number % 10)) for number in range(30)]
    if when is not None:
        puts = [PutWith(Put("q", 0, body(number % 10)), Due(10**9 + number)) for number in range(30)]
    more: list[Operation] = [put if when is None else PutWith(put, Due(10**8)) for put in [Put("q", 1, b"small")] * 700]
    for one in (machine, plain):
        ask(one, *puts)
    relieve(machine)
    assert machine.pages is not None
    assert (machine.pages.jobs, bodies_of(machine).count) == (0, 30)
    for one in (machine, plain):
        ask(one, *more)
    for _ in range(2):
        relieve(machine)
        saved = machine.on_disk("q").data_bytes + JOB_BYTES * machine.pages.jobs
        assert machine.hot_bytes == plain.hot_bytes - saved + machine.pages.handles_bytes
        assert bodies_of(machine).waiting_bytes == bodies_of(machine).data_bytes
        assert_counted(machine, store)
        for one in (machine, plain):
            ask(one, PurgeQueue("q", Purged.READY if when is None else Purged.DELAYED, None))
            ask(one, *puts)
    assert machine.pages.written > 80


def test_small_bodies_stay() -> None:
    machine = holder()
    ask(machine, PutWith(Put("q", 0, bytes(4095)), key="k"), PutWith(Put("q", 0, bytes(4096)), key="l"))
    relieve(machine)
    assert bodies_of(machine).count == 1


def test_a_body_that_several_queues_share_is_written_once() -> None:
    store = MemoryStore()
    machine, plain = holder(store), Machine(KNOWN_LEVEL)
    names = ("a", "b", "c")
    for one in (machine, plain):
        ask(one, PutWith(Put("", 0, body(1)), targets=ToQueues(names)))
    relieve(machine)
    assert store.pages == 1
    assert [machine.on_disk(name).jobs for name in names] == [1, 1, 1]
    assert snapshot_of(machine) == snapshot_of(plain)
    machine = restarted(machine, store)
    assert [machine.on_disk(name).jobs for name in names] == [1, 1, 1]
    for number, name in enumerate(names, 1):
        reply, = ask(machine, Get((name,)))
        assert isinstance(reply, Handed)
        assert reply.data == body(1)
        ask(machine, Done(reply.id))
        bodies_of(machine)
        assert store.pages == (number < 3)


def test_small_data_that_several_queues_get_are_not_one_body_by_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots do not know that they are the same: each job must have its own after a restart."""
    monkeypatch.setattr("sockpqd.core.limits.BODY_BYTES_MIN", 1)
    store = MemoryStore()
    machine = holder(store)
    ask(machine, PutWith(
        Put("", 0, b"small"), targets=ToQueues(("a", "b", "c")),
    ), PutWith(Put("", 0, b"one"), targets=ToQueues(("d",))))
    relieve(machine)
    machine = restarted(machine, store)
    for name in ("a", "b", "c", "d"):
        reply, = ask(machine, Get((name,)))
        assert isinstance(reply, Handed)
        ask(machine, Done(reply.id))
        relieve(machine)
        assert_counted(machine, store)
    assert store.pages == 0


def restarted(machine: Machine, store: MemoryStore) -> Machine:
    """Return another process with the bodies of this one."""
    named = b"".join(machine.snapshot(by_reference=True))
    store.restart()
    other = holder(store)
    other.restore([named])
    return other


def test_a_snapshot_by_reference_names_bodies_and_a_restart_goes_on_with_them() -> None:
    store = MemoryStore()
    machine = holder(store)
    count = jobs_in_all_states(machine)
    relieve(machine)
    whole = snapshot_of(machine)
    named = b"".join(machine.snapshot(by_reference=True))
    assert bodies_of(machine).reads == count
    assert len(set(references([named]))) == count
    assert len(named) < LARGE
    other = restarted(machine, store)
    assert bodies_of(other).reads == 0
    assert bodies_of(other).count == store.pages == count
    assert snapshot_of(other) == whole
    assert b"".join(expanded([named], lambda one: store.left[int.from_bytes(one, "big")])) == whole
    resident = Machine(KNOWN_LEVEL, lambda: Pager(Pages(store), 0, resident=True))
    before = store.pages
    resident.restore([named])
    assert store.pages == before
    assert snapshot_of(resident) == whole


def test_a_body_that_is_not_there_or_another_one_is_missed() -> None:
    store = MemoryStore()
    machine = holder(store)
    ask(machine, PutWith(Put("q", 0, body(1)), key="k"))
    relieve(machine)
    named = b"".join(machine.snapshot(by_reference=True))
    with pytest.raises(PageLost):
        holder(MemoryStore()).restore([named])
    store.restart()
    store.left = {number: data[1:] for number, data in store.left.items()}
    other = holder(store)
    other.restore([named])
    with pytest.raises(PageLost, match="another body"):
        ask(other, Get(("q",)))
    with pytest.raises(PageLost, match="another body"):
        list(expanded([named], lambda one: b""))


def test_only_a_node_with_pages_reads_names_of_bodies() -> None:
    machine = holder()
    ask(machine, PutWith(Put("q", 0, body(1)), key="k"))
    relieve(machine)
    named = b"".join(machine.snapshot(by_reference=True))
    with pytest.raises(SnapshotError, match="names pages"):
        Machine(KNOWN_LEVEL).restore([named])
    ask(machine, CloneChunk(1, total_bytes=len(named)), CloneChunk(1, named), CloneChunk(1, last=True))
    assert seen(machine) == {b"1": 1}


def test_a_state_is_within_its_budget_while_it_is_restored() -> None:
    plain = Machine(KNOWN_LEVEL)
    for number in range(100):
        ask(plain, Put("q", 0, body(number % 10)), Get(("q",)))
    machine = holder(budget=10 * LARGE)
    machine.restore(plain.snapshot())
    assert bodies_of(machine).hot_bytes <= 10 * LARGE
    assert snapshot_of(machine) == snapshot_of(plain)


def test_with_a_full_disk_bodies_stay_in_memory() -> None:
    store = MemoryStore(full=1)
    machine = holder(store)
    count = jobs_in_all_states(machine)
    relieve(machine)
    assert machine.pages is not None
    assert machine.pages.full
    assert bodies_of(machine).count == store.pages == 0
    store.full = 0
    ask(machine, PutWith(Put("q", 0, body(9)), key="k"), PutWith(Put("q", 0, body(9)), key="l"))
    relieve(machine)
    assert bodies_of(machine).count == count + 2


def test_a_state_that_was_given_up_frees_nothing_and_its_views_miss_their_bodies() -> None:
    store = MemoryStore()
    machine = holder(store)
    jobs_in_all_states(machine)
    relieve(machine)
    view, = machine.peek_queue("keyed", JobState.READY, 1)
    machine.restore(machine.snapshot())
    assert_counted(machine, store)
    with pytest.raises(PageLost, match="given up"):
        bytes_of(view.data)
    del view
    relieve(machine)
    assert bodies_of(machine).count == store.pages == 9


def test_a_view_keeps_its_body() -> None:
    store = MemoryStore()
    machine = holder(store)
    ask(machine, PutWith(Put("q", 0, body(1)), number=True))
    relieve(machine)
    view, = machine.peek_queue("q", JobState.READY, 1)
    assert view.number is not None
    reply, = ask(machine, GetWith(Get(None), number=view.number))
    assert isinstance(reply, Handed)
    ask(machine, Done(reply.id))
    bodies_of(machine)
    assert store.pages == 1
    assert bytes_of(view.data) == body(1)
    del view
    bodies_of(machine)
    assert store.pages == 0


@pytest.mark.parametrize("made", [random_log, random_time_log, random_session_log])
@pytest.mark.parametrize("seed", range(3))
def test_bodies_show_nowhere(
    made: Callable[[int, int], list[LogEntry]], seed: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = 0
    write = PagedBodies.write_oldest

    def counted(bodies: PagedBodies) -> bool | None:
        nonlocal written
        done = write(bodies)
        written += bool(done)
        return done

    monkeypatch.setattr("sockpqd.core.limits.BODY_BYTES_MIN", 1)
    monkeypatch.setattr(PagedBodies, "write_oldest", counted)
    assert assert_law(made(seed, 400), seed, STAGES) == 0
    assert written > 20
