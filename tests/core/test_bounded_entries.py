"""An entry that has handed out enough ends: the rest of its operations belongs to the next one."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    ConfigureQueue,
    Done,
    Empty,
    Get,
    GetWith,
    Handed,
    HandedMany,
    Later,
    Machine,
    OpenSession,
    Operation,
    Overflow,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Request,
    Stored,
    Then,
    Tick,
)
from sockpqd.core.limits import HANDED_BYTES_MAX, SPENT_MAX
from tests.core.helpers.agreement import assert_equal_to_model
from tests.core.helpers.logs import LogEntry, ask, restored, run, snapshot_of
from tests.core.model.model import Model

LARGE = bytes(SPENT_MAX)
HALF = bytes(SPENT_MAX // 2)
GET = Get(("q",))


@pytest.fixture
def machine() -> Machine:
    """An empty machine."""
    return Machine()


def ids(replies: list[object]) -> list[int]:
    return [reply.id for reply in replies if isinstance(reply, Handed)]


def test_an_entry_is_over_when_enough_was_handed_out(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, LARGE)] * 3)
    assert ids(ask(machine, GET, GET, GET)) == [1]
    assert ids(ask(machine, GET, GET)) == [2]
    assert ids(ask(machine, GET, GET)) == [3]
    assert ask(machine, GET, GET) == [Empty(True)] * 2


def test_small_jobs_add_up(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, HALF)] * 5)
    assert ids(ask(machine, *[GET] * 5)) == [1, 2]


def test_nothing_of_what_is_left_out_is_executed(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, LARGE)] * 2)
    before = restored(snapshot_of(machine))
    operations: list[Operation] = [GET, Put("p", 0, b""), Done(1), Tick(), GET]
    assert len(ask(machine, *operations)) == 1
    ask(before, GET)
    assert snapshot_of(machine) == snapshot_of(before)


@pytest.mark.parametrize("put", [Put("p", 0, b"x", None, True), PutWith(Put("p", 0, b"x", None, True), key="k")])
def test_a_put_and_its_hand_out_are_not_parted(machine: Machine, put: Put | PutWith) -> None:
    ask(machine, *[Put("q", 0, HALF)] * 2)
    hand_out = Get(("p",), item_of_put=True)
    assert [type(reply) for reply in ask(machine, GET, put, hand_out, GET, put, hand_out)] == [
        Handed, Stored, Handed, Handed,
    ]


def test_nor_when_the_put_leaves_a_large_record(machine: Machine) -> None:
    change = QueueChange(capacity=1, overflow=Overflow.DROPOLDEST, retain_ms=60_000)
    ask(machine, ConfigureQueue("q", change), PutWith(Put("q", 0, LARGE), number=True))
    assert ids(ask(machine, Put("q", 0, b"x", None, True), Get(("q",), item_of_put=True), GET)) == [1]


def test_the_first_one_is_executed_whatever_the_records_of_what_was_due_take(machine: Machine) -> None:
    ask(machine, ConfigureQueue("q", QueueChange(retain_ms=60_000)))
    ask(machine, *[PutWith(Put("q", 0, LARGE), number=True, ttl_ms=10)] * 3)
    now_ms, seen = machine.clock_ms + 100, []
    for _ in range(3):
        replies = machine.apply(machine.index + 1, now_ms, 0, [Tick(), Tick()]).replies
        counts = machine.counts("q")
        seen.append((len(replies), counts.ready if counts else 0))
    assert seen == [(1, 2), (1, 1), (1, 0)]


def test_leases_that_leave_large_records_end_one_an_entry(machine: Machine) -> None:
    ask(machine, ConfigureQueue("q", QueueChange(retain_ms=60_000, expire_ms=10, then=Then.DONE)))
    ask(machine, *[PutWith(Put("q", 0, LARGE), number=True)] * 3)
    for _ in range(3):
        ask(machine, GET)
    now_ms, seen = machine.clock_ms + 100, []
    for _ in range(3):
        machine.apply(machine.index + 1, now_ms, 0, [Tick()])
        counts = machine.counts("q")
        seen.append(counts.running if counts else 0)
    assert seen == [2, 1, 0]


@pytest.mark.parametrize("asked", [("q",), ("q", "p"), None])
@pytest.mark.parametrize("policy", Policy)
def test_several_jobs_are_no_more_than_an_entry_hands_out(
    machine: Machine, asked: tuple[str, ...] | None, policy: Policy,
) -> None:
    ask(machine, *[Put("q", 0, HALF)] * 6)
    replies = ask(machine, Get(asked), GetWith(Get(asked), 10, policy), GET)
    assert isinstance(replies[1], HandedMany)
    assert len(replies) == 2
    assert 1 + len(replies[1].jobs) == HANDED_BYTES_MAX // len(HALF)


def test_answers_given_again_count(machine: Machine) -> None:
    ask(machine, OpenSession(1, 60_000), Put("q", 0, LARGE))
    request = Request(1, 1, bytes(16), 0, False, GET)
    assert ids(ask(machine, request)) == [1]
    assert ids(ask(machine, *[request] * 100)) == [1]


def test_the_work_that_the_proposer_cannot_know_counts(machine: Machine) -> None:
    ask(machine, *[Put(f"q{number}", 0, b"", "wide") for number in range(2000)])
    get = Get(None, item="wide")
    executed = len(ask(machine, *[get] * 100))
    assert 1 < executed < 20


def test_what_pick_gives_is_no_more_work_than_an_entry_may_be(machine: Machine) -> None:
    ask(machine, *[PutWith(Put("q", 0, b"", f"i{number}"), key=f"k{number}") for number in range(10_000)])
    for asked in (("q",), None):
        (reply,) = ask(machine, GetWith(Get(asked), 10_000))
        assert isinstance(reply, HandedMany)
        assert 1000 < len(reply.jobs) < 4000


def test_ten_thousand_plain_jobs_are_given_at_once(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, b"")] * 10_000)
    (reply,) = ask(machine, GetWith(GET, 10_000))
    assert isinstance(reply, HandedMany)
    assert len(reply.jobs) == 10_000


def test_the_model_says_the_same() -> None:
    log = [
        LogEntry(0, 0, [OpenSession(1, 60_000), *[Put("q", number % 2, HALF) for number in range(9)]]),
        LogEntry(0, 1, [GET, Request(1, 1, bytes(16), 0, False, GET), GET]),
        LogEntry(0, 2, [Request(1, 1, bytes(16), 0, False, GET), GetWith(Get(None), 4), GET]),
        LogEntry(0, 3, [Later(1), GetWith(Get(None, item="none"), 4), GetWith(GET, 4), GET]),
    ]
    assert_equal_to_model(log, Machine(), Model())


@pytest.mark.parametrize("asked", [("q",), ("q", "p"), None])
@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("count", [None, 1, 5])
def test_an_item_that_there_is_not_has_nothing_to_give(
    machine: Machine, asked: tuple[str, ...] | None, policy: Policy, count: int | None,
) -> None:
    ask(machine, Put("q", 0, b""))
    assert ask(machine, GetWith(Get(asked, item="none"), count, policy)) == [Empty(False)]


def test_queues_that_have_given_their_batch_give_again_afterwards(machine: Machine) -> None:
    ask(machine, *[ConfigureQueue(queue, QueueChange(batch=1)) for queue in "ab"])
    ask(machine, *[Put(queue, 0, b"") for queue in "ab" for _ in range(len(Policy) + 1)])
    for policy in Policy:
        (reply,) = ask(machine, GetWith(Get(None), 10, policy))
        assert isinstance(reply, HandedMany)
        assert sorted(job.queue for job in reply.jobs) == ["a", "b"]
        assert list(machine.nonempty()) == ["a", "b"]
    assert run(machine, Tick()).replies == [Accepted()]
