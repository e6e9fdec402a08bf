"""The rules that are easily got wrong, each in its shortest log."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sockpqd.core import (
    Aborted,
    Accepted,
    Batch,
    BindQueue,
    Change,
    CloseSession,
    Configure,
    ConfigureQueue,
    DataTooLarge,
    DeleteQueue,
    Done,
    Due,
    Empty,
    End,
    Finished,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    JobExists,
    JobIgnored,
    JobReplaced,
    JobRunning,
    JobState,
    Kick,
    Later,
    Leased,
    Machine,
    Move,
    NotFound,
    OnDup,
    OpenSession,
    Order,
    Overflow,
    PauseQueue,
    Policy,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    QueueExists,
    QueueFull,
    QueueNotEmpty,
    QueueNotFound,
    QueuePaused,
    Rearmed,
    Removed,
    Request,
    Results,
    Return,
    Selector,
    SessionNotFound,
    Spread,
    Stored,
    SwitchService,
    Then,
    Tick,
    TooManyBindings,
    ToQueues,
    ToTopic,
    Touch,
    UnbindQueue,
)
from sockpqd.core.store.topics import compiled
from tests.core.helpers.logs import ask, data_of, lead, run
from tests.core.model.spread import fits

GET = Get(("q",))
KEY = Selector(queue="q", key="k")


@pytest.fixture
def machine() -> Machine:
    """An empty machine."""
    return Machine()


def settings(machine: Machine, queue: str = "q", **change: object) -> None:
    """Assert that the queue has these settings."""
    assert ask(machine, ConfigureQueue(queue, QueueChange(**change))) == [Accepted()]  # type: ignore[arg-type]


# --- time

def test_order_of_time_is_by_the_time_put_for_and_also_one_in_the_past(machine: Machine) -> None:
    settings(machine, order=Order.TIME)
    times = {b"now": None, b"old": Due(0, 100), b"older": Due(0, 50), b"later": Due(10)}
    ask(machine, *[PutWith(Put("q", 0, data), when) for data, when in times.items()], now_ms=1000)
    assert data_of(ask(machine, *[GET] * 4, now_ms=1000)) == [b"older", b"old", b"now"]
    assert data_of(ask(machine, GET, now_ms=1010)) == [b"later"]


def test_order_of_arrival_knows_no_time_in_the_past(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"first"), PutWith(Put("q", 0, b"second"), Due(0, 5)), now_ms=1000)
    assert data_of(ask(machine, GET, GET)) == [b"first", b"second"]


def test_waiting_jobs_get_their_places_anew_when_the_order_changes(machine: Machine) -> None:
    times = {b"1": Due(0, 50), b"2": None, b"3": Due(0, 20)}
    ask(machine, *[PutWith(Put("q", 0, data), when) for data, when in times.items()], now_ms=100)
    settings(machine, order=Order.TIME)
    assert [job.data for job in machine.peek_queue("q", JobState.READY, 9)] == [b"2", b"3", b"1"]
    settings(machine, order=Order.FIFO)
    assert data_of(ask(machine, *[GET] * 3)) == [b"1", b"2", b"3"]


def test_ttl_counts_from_each_activation_and_not_while_the_job_runs(machine: Machine) -> None:
    ask(machine, PutWith(Put("q", 0, b""), Due(100), ttl_ms=50), now_ms=0)
    assert isinstance(ask(machine, GET, now_ms=149)[0], Handed)
    ask(machine, Later(1), now_ms=1000)
    run(machine, Tick(), now_ms=1049)
    assert machine.ready("q") == 1
    effects = run(machine, Tick(), now_ms=1050).effects
    assert (machine.ready("q"), list(effects.ended)) == (0, ["q"])


def test_ttl_does_not_count_anew_when_a_ready_job_is_told_to_be_active_now(machine: Machine) -> None:
    ask(machine, PutWith(Put("q", 0, b""), ttl_ms=50, key="k"), now_ms=0)
    ask(machine, Change(KEY, when=Due(0)), now_ms=40)
    run(machine, Tick(), now_ms=49)
    assert machine.ready("q") == 1
    run(machine, Tick(), now_ms=50)
    assert machine.ready("q") == 0


def test_periodic_job_skips_what_was_missed_and_ends_with_last(machine: Machine) -> None:
    ask(machine, PutWith(Put("q", 0, b""), every_ms=100), GET, now_ms=1000)
    assert ask(machine, Done(1), now_ms=1350) == [Rearmed(1400)]
    assert ask(machine, GET, now_ms=1399) == [Empty(True)]
    assert ask(machine, GET, End(2, How.DONE, last=True), now_ms=1400)[1] == Finished(queue_done=True)


def test_job_waits_until_each_of_its_items_was_finished_once(machine: Machine) -> None:
    ask(machine, Put("a", 0, b"", "x"), Put("a", 0, b"", "y"), Get(None, item="x"), Get(None, item="y"))
    ask(machine, PutWith(Put("q", 0, b""), after=("x", "y", "unknown")))
    ask(machine, Done(1), Put("a", 0, b"", "x"))        # x begins anew, but it was finished
    assert ask(machine, GET) == [Empty(True)]
    ask(machine, Done(2))
    assert isinstance(ask(machine, GET)[0], Handed)


def test_items_count_as_finished_at_the_end_of_a_batch_only(machine: Machine) -> None:
    ask(machine, Put("a", 0, b"", "x"), Get(None), PutWith(Put("q", 0, b""), after=("x",)))
    ask(machine, Batch((Done(1), Put("a", 0, b"", "x")), True))
    assert ask(machine, GET) == [Empty(True)]


def test_nothing_becomes_active_while_the_service_is_offline_or_when_a_leader_begins(machine: Machine) -> None:
    ask(machine, PutWith(Put("q", 0, b""), Due(10)), SwitchService(False))
    assert ask(machine, GET, SwitchService(True), now_ms=50)[0] == Empty(True)
    assert ask(machine, lead(), GET, now_ms=50)[1] == Empty(True)
    assert isinstance(ask(machine, GET, now_ms=50)[0], Handed)


def test_touch_counts_the_length_given_at_hand_out_from_now(machine: Machine) -> None:
    ask(machine, Put("q", 0, b""), Put("q", 0, b""), Get(None, 1000), GET, now_ms=0)
    limited = ask(machine, Touch(1), Touch(1, 70), Touch(1), now_ms=500)
    assert limited == [Leased(1500), Leased(570), Leased(1500)]
    assert ask(machine, Touch(2), Touch(2, 30), Touch(2), Touch(3)) == [
        Leased(None), Leased(530), Leased(None), NotFound(),
    ]


# --- keys

def test_second_job_of_a_key_is_refused_ignored_or_takes_the_place(machine: Machine) -> None:
    def put(data: bytes, on_dup: OnDup) -> PutWith:
        return PutWith(Put("q", 0, data), key="k", on_dup=on_dup)

    ask(machine, put(b"1", OnDup.FAIL), Put("q", 0, b"between"))
    assert ask(machine, put(b"2", OnDup.FAIL), put(b"3", OnDup.IGNORE), put(b"4", OnDup.REPLACE)) == [
        JobExists(), JobIgnored(), JobReplaced(),
    ]
    assert data_of(ask(machine, GET)) == [b"4"]         # at its old place
    assert ask(machine, put(b"5", OnDup.REPLACE), Change(KEY, data=b"6")) == [JobRunning(), JobRunning()]
    assert ask(machine, Change(Selector(1), data=b"7"), Later(1), GET, GET)[-1] == Handed(3, "q", 0, b"7")


def test_nobody_is_given_a_job_for_a_put_that_was_refused(machine: Machine) -> None:
    ask(machine, OpenSession(1, 60_000), PutWith(Put("q", 0, b"", "x"), key="k"))
    put = Request(1, 1, b"digest", 0, False, PutWith(Put("q", 0, b"", "x"), key="k"))
    for _ in range(2):                                  # executed, then answered again
        assert ask(machine, put, Get(None, item_of_put=True)) == [JobExists(), Empty(False)]


def test_key_of_a_done_job_is_remembered_for_a_while(machine: Machine) -> None:
    settings(machine, keep_ms=100)
    put = PutWith(Put("q", 0, b""), key="k")
    ask(machine, put, GET, Done(1), now_ms=1000)
    assert ask(machine, put, now_ms=1099) == [JobExists()]
    assert ask(machine, put, now_ms=1100) == [Stored()]


# --- move and batches

def test_moved_job_begins_anew_with_its_key_and_item(machine: Machine) -> None:
    ask(machine, PutWith(Put("q", 5, b"1", "x"), key="k", every_ms=10), PutWith(Put("full", 0, b""), key="k"), GET)
    assert ask(machine, Move(1, "full"), Move(1, "p", data=b"2"), Move(1, "p")) == [
        JobExists(), Finished(queue_done=True), NotFound(),
    ]
    found = machine.peek(Selector(queue="p", key="k"))
    assert found is not None
    assert (found.data, found.item, found.priority, found.attempts) == (b"2", "x", 5, 0)
    assert ask(machine, Get(("p",)), Done(2))[1] == Finished(True, True)


def test_moved_within_its_queue_a_job_keeps_its_key(machine: Machine) -> None:
    ask(machine, PutWith(Put("q", 0, b""), key="k"), GET)
    assert ask(machine, Move(1, "q", when=Due(10))) == [Finished()]
    assert machine.peek(KEY) is not None


def test_batch_is_executed_whole_or_not_at_all(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"1"), GET)
    wrong = (Done(1), Put("p", 0, b""), Done(1))
    assert ask(machine, Batch(wrong, True)) == [Aborted(3, NotFound())]
    assert machine.running()[0].id == 1
    assert not machine.unfinished("p")
    assert ask(machine, Batch(wrong, False)) == [Results((Finished(queue_done=True), Stored(), NotFound()))]
    assert ask(machine, End((1, 2), How.DONE)) == [Results((NotFound(), NotFound()))]


# --- choice

def test_priority_chooses_the_queue_of_the_highest_first_job(machine: Machine) -> None:
    ask(machine, Put("a", 1, b"a"), Put("b", 2, b"b"), Put("c", 2, b"c"))
    pick = GetWith(Get(("c", "a", "b")), 3, Policy.PRIORITY)
    (reply,) = ask(machine, pick)
    assert isinstance(reply, HandedMany)
    assert [job.data for job in reply.jobs] == [b"c", b"b", b"a"]


def test_queue_gives_no_more_than_its_batch_to_one_pick(machine: Machine) -> None:
    settings(machine, batch=2)
    ask(machine, *[Put(queue, 0, b"") for queue in "qp" for _ in range(4)])
    (reply,) = ask(machine, GetWith(Get(None), 10))
    assert isinstance(reply, HandedMany)
    assert sorted(job.queue for job in reply.jobs) == ["p"] * 4 + ["q"] * 2


# --- settings

def test_put_is_refused_by_what_stands_first(machine: Machine) -> None:
    put = PutWith(Put("q", 0, b"12345"), key="k")
    ask(machine, Configure(autocreate=False))
    assert ask(machine, put) == [QueueNotFound()]
    settings(machine, data_bytes_max=5, capacity=1)
    ask(machine, put, PauseQueue("q", True, False))
    assert ask(machine, put) == [QueuePaused()]
    ask(machine, PauseQueue("q", False, False))
    assert ask(machine, Put("q", 0, b"123456"), put, Put("q", 0, b"")) == [DataTooLarge(), JobExists(), QueueFull()]


def test_pauses_add_up_until_the_queue_is_resumed(machine: Machine) -> None:
    ask(machine, Put("q", 0, b""), PauseQueue("q", True, False), PauseQueue("q", False, True))
    assert ask(machine, Put("q", 0, b""), GET) == [QueuePaused(), Empty(True)]
    effects = run(machine, PauseQueue("q", False, False)).effects
    assert "q" in {*effects.ready, *effects.reopened}
    assert isinstance(ask(machine, Put("q", 0, b""), GET)[1], Handed)


def test_limits_withhold_jobs_and_say_when_there_are_more(machine: Machine) -> None:
    settings(machine, limit=2, item_limit=1)
    ask(machine, *[Put("q", 0, data, item) for data, item in ((b"1", "x"), (b"2", "x"), (b"3", None), (b"4", None))])
    assert data_of(ask(machine, *[GET] * 4)) == [b"1", b"3"]
    effects = run(machine, Done(1)).effects
    assert "q" in {*effects.ready, *effects.reopened}
    assert data_of(ask(machine, *[GET] * 4)) == [b"2"]


def test_queue_has_a_lease_of_its_own(machine: Machine) -> None:
    settings(machine, expire_ms=100, then=Then.DONE)
    ask(machine, *[Put("q", 0, b"")] * 2, GET, Get(("q",), 0))
    run(machine, Tick(), now_ms=200)
    assert [job.id for job in machine.running()] == [2]


def test_purge_spares_what_was_put_after_it_began(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"1"), PutWith(Put("q", 0, b"2"), Due(10)))
    began = machine.next_seq
    ask(machine, Put("q", 0, b"3"))
    purges = PurgeQueue("q", Purged.ALL, began), PurgeQueue("p", Purged.ALL)
    assert ask(machine, *purges) == [Removed(2), QueueNotFound()]
    assert data_of(ask(machine, GET)) == [b"3"]


def test_deleted_queue_takes_its_running_jobs_along(machine: Machine) -> None:
    ask(machine, ConfigureQueue("q", QueueChange(), create=True), Put("q", 0, b""), Put("q", 0, b""), GET)
    assert ask(machine, DeleteQueue("q", False), DeleteQueue("q", True), Done(1), DeleteQueue("q", True)) == [
        QueueNotEmpty(), Accepted(), NotFound(), QueueNotFound(),
    ]


def test_a_time_given_to_a_running_job_holds_also_when_its_hand_out_is_undone(machine: Machine) -> None:
    """As when it is put back: READY with a time to come it would be what no other job is."""
    ask(machine, Put("q", 0, b"1"), Put("q", 0, b"2"), GET, GET, now_ms=10)
    ask(machine, Change(Selector(1), when=Due(0, 50)), Return(1), Return(2), now_ms=20)
    assert [job.data for job in machine.peek_queue("q", JobState.DELAYED, 9)] == [b"1"]
    assert [job.data for job in machine.peek_queue("q", JobState.READY, 9)] == [b"2"]
    ask(machine, Tick(), now_ms=100)
    assert [job.data for job in machine.peek_queue("q", JobState.READY, 9)] == [b"2", b"1"]


# --- dead letters

def test_job_is_dead_after_its_attempts_and_kicked_back(machine: Machine) -> None:
    settings(machine, tries=2)
    ask(machine, PutWith(Put("q", 3, b"1", "x"), Due(0, 5), key="k"), GET, Return(1), now_ms=10)
    ask(machine, GET, End(2, How.LATER, yielded=True), GET, Later(3), GET)
    effects = run(machine, Later(4)).effects
    assert (list(effects.ended), list(effects.ready)) == (["q"], ["q_dead"])
    dead = machine.peek(Selector(queue="q_dead", key="k"))
    assert dead is not None
    assert (dead.priority, dead.item, dead.attempts, dead.at_ms) == (3, "x", 2, None)
    assert ask(machine, Kick("q", 5), Kick("q", 5)) == [Removed(1), Removed(0)]
    back = machine.peek(KEY)
    assert back is not None
    assert back.attempts == 0


def test_buried_job_goes_to_the_dead_queue_that_is_set_and_loses_a_key_that_is_taken(machine: Machine) -> None:
    settings(machine, tries=0, dead="graves")
    ask(machine, PutWith(Put("graves", 0, b""), key="k"), PutWith(Put("q", 0, b"1"), key="k"), GET)
    assert ask(machine, End(1, How.BURY)) == [Finished(queue_done=True)]
    counts = machine.counts("q")
    assert counts is not None
    assert counts.dead == 1
    assert machine.peek(KEY) is None
    assert ask(machine, Get(("graves",)), Get(("graves",)), Done(3))[2] == Finished()


def test_lease_that_ends_then_dead_needs_no_attempts(machine: Machine) -> None:
    ask(machine, Put("q", 0, b""), Get(("q",), 10, Then.DEAD))
    run(machine, Tick(), now_ms=100)
    assert list(machine.nonempty()) == ["q_dead"]


# --- queues that end by themselves, and what a full one drops

def more(machine: Machine, queue: str = "q", now_ms: int = 0, **settings: object) -> None:
    """Assert that the queue has these settings."""
    operation = ConfigureQueue(queue, QueueChange(**settings))  # type: ignore[arg-type]
    assert ask(machine, operation, now_ms=now_ms) == [Accepted()]


def test_ttl_of_the_queue_is_decided_at_put(machine: Machine) -> None:
    more(machine, ttl_ms=50)
    ask(machine, Put("q", 0, b"1"), PutWith(Put("q", 0, b"2"), ttl_ms=100), now_ms=0)
    more(machine, ttl_ms=0)
    ask(machine, Put("q", 0, b"3"))
    run(machine, Tick(), now_ms=50)
    assert [job.data for job in machine.peek_queue("q", JobState.READY, 9)] == [b"2", b"3"]


def test_full_queue_drops_the_first_of_the_least_priority_even_a_withheld_one(machine: Machine) -> None:
    settings(machine, capacity=3, item_limit=1)
    more(machine, overflow=Overflow.DROPOLDEST)
    ask(machine, Put("q", 0, b"1", "x"), Put("q", -1, b"2", "x"), Put("q", -1, b"3"))
    assert ask(machine, Put("q", -9, b"4"))[0] == Stored()
    assert [job.data for job in machine.peek_queue("q", JobState.READY, 9)] == [b"1", b"3", b"4"]


def test_full_queue_of_one_job_is_never_finished_in_between(machine: Machine) -> None:
    settings(machine, capacity=1)
    more(machine, overflow=Overflow.DROPOLDEST)
    ask(machine, PutWith(Put("q", 0, b"1", "x"), Due(50)))
    applied = run(machine, Put("q", 0, b"2"))
    assert (list(applied.effects.ended), list(applied.effects.ended_items)) == ([], [("q", "x")])
    assert data_of(ask(machine, GET)) == [b"2"]


def test_dropped_job_is_back_when_the_batch_is_refused(machine: Machine) -> None:
    settings(machine, capacity=1)
    more(machine, overflow=Overflow.DROPOLDEST, idle_ms=100)
    ask(machine, Put("q", 0, b"1"), now_ms=10)
    assert ask(machine, Batch((Put("q", 0, b"2"), Done(7)), True), now_ms=20) == [Aborted(2, NotFound())]
    assert machine.used_ms("q") == 10
    assert data_of(ask(machine, GET)) == [b"1"]


def test_idle_queue_goes_with_its_jobs_unless_the_state_knows_of_a_use(machine: Machine) -> None:
    more(machine, idle_ms=100, now_ms=0)
    ask(machine, Put("q", 0, b""), now_ms=50)
    for since_ms, now_ms in ((49, 1000), (950, 1040)):          # there was a Put since; not long enough ago
        assert ask(machine, DeleteQueue("q", force=True, idle_since_ms=since_ms), now_ms=now_ms) == [Accepted()]
        assert machine.ready("q") == 1
    ask(machine, GET, now_ms=1050)
    assert ask(
        machine, DeleteQueue("q", force=True, idle_since_ms=1050), now_ms=2000,
    ) == [Accepted()]        # its job runs
    ask(machine, Later(1), now_ms=2000)
    assert ask(machine, DeleteQueue("q", force=True, idle_since_ms=2000), now_ms=2100) == [Accepted()]
    assert machine.counts("q") is None
    assert ask(
        machine, DeleteQueue("q", force=True, idle_since_ms=2000), DeleteQueue("never", force=True, idle_since_ms=0),
        now_ms=2100,
    ) == [Accepted(), Accepted()]


def test_idle_queue_with_many_jobs_goes_in_portions(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, b"")] * 1500)
    more(machine, idle_ms=100)
    expire = DeleteQueue("q", force=True, idle_since_ms=0)
    assert ask(machine, expire, now_ms=100) == [Removed(1000, True)]
    assert ask(machine, expire, now_ms=101) == [Accepted()]
    assert machine.counts("q") is None


@pytest.mark.parametrize("get", [GET, GetWith(GET, 1), Get(("a", "q")), Get(("q",), item="x")])
def test_asking_for_a_queue_by_name_uses_it(machine: Machine, get: Get | GetWith) -> None:
    more(machine, idle_ms=100)
    assert isinstance(ask(machine, get, now_ms=70)[0], Empty)
    assert machine.used_ms("q") == 70
    ask(machine, Get(None), now_ms=90)
    assert machine.used_ms("q") == 70


def test_bound_queue_ends_with_its_session_and_needs_one(machine: Machine) -> None:
    ask(machine, OpenSession(7, 1000), now_ms=0)
    create = ConfigureQueue("q", QueueChange(), create=True, session=1)
    assert ask(machine, create, create) == [Accepted(), QueueExists()]
    ask(machine, *[Put("q", 0, b"")] * 1500, GET)
    run(machine, Tick(), now_ms=1020)
    assert machine.counts("q") is not None
    run(machine, Tick(), now_ms=1021)
    assert (machine.counts("q"), machine.session_count) == (None, 0)
    assert ask(machine, create) == [SessionNotFound()]
    ask(machine, OpenSession(7, 1000))
    create = ConfigureQueue("q", QueueChange(), create=True, session=2)
    assert ask(machine, create, CloseSession(2, False)) == [Accepted(), Accepted()]
    assert machine.counts("q") is None


# --- one put, many queues

BODY = b"s" * 40
SPREAD = PutWith(Put("", 0, BODY))


def bodies(machine: Machine) -> tuple[int, int]:
    """Return how many jobs have this body, and how many objects that is."""
    found = [job.data for name in machine.queue_names("") for job in machine.peek_queue(name, JobState.READY, 99)]
    found += [job.data for job in machine.running()]
    return len(found), len({id(data) for data in found})


def test_a_put_into_many_queues_is_all_or_nothing(machine: Machine) -> None:
    settings(machine, "b", capacity=1)
    assert ask(machine, replace(SPREAD, targets=ToQueues(("a", "b", "a")))) == [Spread(2)]
    assert ask(machine, replace(SPREAD, targets=ToQueues(("a", "b")))) == [QueueFull()]
    assert ask(machine, PutWith(Put("", 0, b""), key="k", targets=ToQueues(("c", "a")))) == [Spread(2)]
    assert ask(machine, PutWith(Put("", 0, b""), key="k", targets=ToQueues(("d", "c")))) == [JobExists()]
    assert [machine.ready(name) for name in "abcd"] == [2, 1, 1, 0]


def test_copies_have_neither_a_number_nor_a_lease(machine: Machine) -> None:
    put = replace(SPREAD, number=True, lease_ms=500, targets=ToQueues(("a", "b")))
    assert ask(machine, put, Get(("a",))) == [Spread(2), Handed(1, "a", 0, SPREAD.put.data)]
    (job,) = machine.running()
    assert job.deadline_ms is None
    assert job.extras is None or job.extras.counts is None


def test_a_shared_body_is_there_once_in_memory_and_in_snapshots(machine: Machine) -> None:
    ask(machine, replace(SPREAD, targets=ToQueues(("a", "b", "c", "d"))), Get(("a",)), End(1, How.BURY))
    ask(machine, Get(("b",)), replace(SPREAD, targets=ToQueues(("a", "b"))), Get(("c",)), Move(3, "e"))
    snapshot = b"".join(machine.snapshot())
    assert (snapshot.count(BODY), bodies(machine)) == (2, (6, 1))       # the second put is of the same bytes object
    again = Machine()
    again.restore([snapshot])
    assert (b"".join(again.snapshot()), bodies(again)) == (snapshot, (6, 2))
    ask(again, Change(Selector(2), data=b"t" * 40))
    assert b"".join(again.snapshot()).count(BODY) == 2


def test_spread_in_a_refused_batch_leaves_nothing(machine: Machine) -> None:
    before = b"".join(machine.snapshot())
    assert ask(
        machine, Batch((replace(SPREAD, targets=ToQueues(("a", "b"))), Done(7)), True),
    ) == [Aborted(2, NotFound())]
    assert machine.queue_names("") == []
    assert len(before) > 0


def test_a_batch_puts_no_more_than_ten_thousand_jobs_into_several_queues(machine: Machine) -> None:
    ask(machine, *[BindQueue("t", f"q{number}") for number in range(4000)])
    put = PutWith(Put("", 0, b""), targets=ToTopic("t", ""))
    (results,) = ask(machine, Batch((put, put, put, replace(SPREAD, targets=ToQueues(("a",)))), False))
    assert results == Results((Spread(4000), Spread(4000), DataTooLarge(), Spread(1)))


def test_a_binding_makes_its_queue_exist_and_goes_with_it(machine: Machine) -> None:
    ask(machine, BindQueue("t", "q"), BindQueue("t", "q", "a"), BindQueue("t", "r"))
    assert ask(machine, ConfigureQueue("q", QueueChange(), create=True)) == [QueueExists()]
    assert (machine.total(None).queues, machine.queue_names("")) == (2, ["q", "r"])
    assert ask(machine, DeleteQueue("q", False)) == [Accepted()]
    assert {topic: list(bound) for topic, bound in machine.topics.items()} == {"t": [("r", None)]}
    assert ask(machine, UnbindQueue("t", "r")) == [Accepted()]
    assert machine.queue_names("") == []
    ask(machine, Configure(autocreate=False))
    assert ask(machine, BindQueue("t", "q")) == [QueueNotFound()]
    assert ask(machine, replace(SPREAD, targets=ToTopic("t", ""))) == [Spread(0)]


def test_a_topic_has_ten_thousand_bindings_at_most(machine: Machine) -> None:
    ask(machine, *[BindQueue("t", "q", f"a{number}") for number in range(10_000)])
    assert ask(machine, BindQueue("t", "q", "one.more"), BindQueue("t", "q", "a1")) == [TooManyBindings(), Accepted()]


def test_a_put_to_a_topic_is_refused_whose_key_would_take_too_long_to_match(machine: Machine) -> None:
    ask(machine, *[BindQueue("t", f"q{number}", f"#.{number}") for number in range(1000)], BindQueue("t", "all"))
    long = ".".join(["a"] * 61)
    assert ask(
        machine, replace(SPREAD, targets=ToTopic("t", long[:-2])), replace(SPREAD, targets=ToTopic("t", long)),
    ) == [Spread(1), DataTooLarge()]
    ask(machine, *[BindQueue("u", f"q{number}") for number in range(2000)])
    assert ask(machine, replace(SPREAD, targets=ToTopic("u", long))) == [Spread(2000)]       # nothing is matched there


def test_a_put_with_options_reaches_fewer_queues(machine: Machine) -> None:
    ask(machine, *[BindQueue("t", f"q{number}") for number in range(5001)])
    keyed = PutWith(SPREAD.put, key="k")
    assert ask(
        machine, replace(keyed, targets=ToTopic("t", "")), replace(SPREAD, targets=ToTopic("t", "")),
    ) == [DataTooLarge(), Spread(5001)]
    ask(machine, UnbindQueue("t", "q7"))
    assert ask(machine, replace(keyed, targets=ToTopic("t", ""))) == [Spread(5000)]


@pytest.mark.parametrize(("pattern", "key", "matches"), [
    ("a", "a", True), ("a", "a.b", False), ("*", "a", True), ("*", "", False), ("*", "a.b", False), ("#", "", True),
    ("#", "a.b.c", True), ("a.#", "a", True), ("a.#", "a.b.c", True), ("a.#", "b.a", False), ("#.b", "b", True),
    ("#.b", "a.b.c", False), ("#.b", "a.b.b", True), ("a.*.c", "a.b.c", True), ("a.*.c", "a.c", False),
    ("a.#.c.#", "a.c", True), ("#.#", "", True), ("*.#", "", False), ("*.#", "a", True), ("a.*", "a.", True),
    ("a#", "a#", True), ("stock.*.nyse", "stock.usd.nyse", True), ("#.a.#.b", "x.a.a.b.b", True),
    ("#.a.#.b", "b.a", False),
])
def test_patterns_follow_the_rules_of_amqp(pattern: str, key: str, matches: bool) -> None:
    assert compiled(pattern).matches(key.split(".") if key else []) is matches
    assert fits(pattern.split("."), key.split(".") if key else []) is matches
