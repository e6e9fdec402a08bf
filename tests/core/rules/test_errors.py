"""The texts that workers leave with jobs that failed (LATER and BURY .. ERROR, spec/state-machine 8.7)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    ERRORS_BYTES,
    Aborted,
    Accepted,
    Batch,
    ConfigureQueue,
    DataDropped,
    Delete,
    DeleteQueue,
    Done,
    Due,
    End,
    Finished,
    Get,
    GetWith,
    Handed,
    How,
    JobState,
    JobView,
    Kick,
    Later,
    Move,
    NotFound,
    Number,
    OnDup,
    Operation,
    Place,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Return,
    Selector,
    StoredNumber,
    Tick,
    bytes_of,
)
from tests.core.helpers.logs import restored, snapshot_of
from tests.core.rules.test_numbers import Cluster

GET = Get(("q",))
TEXT = b"Traceback:\n  it does not work\n"
FIRST = Place("q", 0)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def put(cluster: Cluster, queue: str = "q") -> Number:
    """Put a numbered job, and return its number."""
    (reply,) = cluster.do(PutWith(Put(queue, 0, b"a"), number=True))
    assert isinstance(reply, StoredNumber)
    return Number(reply.number)


def take(cluster: Cluster, number: Number) -> int:
    """Take it, wherever it lies."""
    (handed,) = cluster.do(GetWith(Get(None), number=number.number))
    assert isinstance(handed, Handed)
    return handed.id


def fail(cluster: Cluster, text: bytes, queue: str = "q", how: How = How.LATER) -> Number:
    """Return a job that has failed with this text."""
    number = put(cluster, queue)
    cluster.do(End(take(cluster, number), how, text=text))
    return number


def text(cluster: Cluster, number: Number) -> bytes:
    """Return the text that its worker left."""
    data = cluster.machine.error(number)
    assert data is not None
    assert len(data) == seen(cluster, number).error_bytes
    return bytes_of(data)


def seen(cluster: Cluster, number: Number) -> JobView:
    job = cluster.machine.peek(number)
    assert job is not None
    return job


def died_ms(cluster: Cluster, number: Number) -> int:
    counts = seen(cluster, number).counts
    assert counts is not None
    return counts.died_ms


def kept(cluster: Cluster, *numbers: Number) -> list[bytes]:
    return [text(cluster, number) for number in numbers]


def test_it_is_kept_through_all_states(cluster: Cluster) -> None:
    number = fail(cluster, TEXT)
    assert text(cluster, number) == TEXT
    cluster.do(End(take(cluster, number), How.LATER, Due(5_000)))
    assert seen(cluster, number).state is JobState.DELAYED
    assert text(cluster, number) == TEXT
    running = take(cluster, number)
    assert bytes_of(cluster.machine.error(Selector(running)) or b"") == TEXT
    cluster.do(Return(running))
    assert text(cluster, number) == TEXT
    cluster.do(End(take(cluster, number), How.BURY, here=True))
    assert seen(cluster, number).state is JobState.BURIED
    assert text(cluster, number) == TEXT
    cluster.do(End(take(cluster, number), How.BURY))
    assert seen(cluster, number).queue == "q_dead"
    assert text(cluster, number) == TEXT
    cluster.machine = restored(snapshot_of(cluster.machine))
    assert text(cluster, number) == TEXT


def test_the_last_one_is_kept(cluster: Cluster) -> None:
    number = fail(cluster, TEXT)
    cluster.do(End(take(cluster, number), How.LATER, text=b"another"))
    assert text(cluster, number) == b"another"
    cluster.do(Later(take(cluster, number)))
    assert text(cluster, number) == b"another"
    cluster.do(End(take(cluster, number), How.LATER, text=b""))
    assert text(cluster, number) == b""


def test_who_asks_for_a_job_that_is_not_there_is_told(cluster: Cluster) -> None:
    assert cluster.machine.error(Number(7)) is None
    assert cluster.machine.error(put(cluster)) == b""


@pytest.mark.parametrize("how", [How.LATER, How.BURY])
@pytest.mark.parametrize("dropped", [False, True])
def test_a_text_that_the_leader_dropped_is_told(cluster: Cluster, how: How, dropped: bool) -> None:
    number = fail(cluster, TEXT)
    (reply,) = cluster.do(End(take(cluster, number), how, dropped=dropped))
    executed = Accepted() if how is How.LATER else Finished(True, False)
    assert reply == (DataDropped(executed) if dropped else executed)
    assert text(cluster, number) == TEXT
    assert cluster.do(End(99, how, dropped=dropped)) == [NotFound()]


def test_a_batch_in_which_one_was_dropped_is_executed(cluster: Cluster) -> None:
    number = put(cluster)
    (reply,) = cluster.do(Batch((End(take(cluster, number), How.LATER, dropped=True), Later(99)), atomic=True))
    assert reply == Aborted(2, NotFound())


def test_kick_move_replace_and_next_drop_it(cluster: Cluster) -> None:
    number = fail(cluster, TEXT, how=How.BURY)
    cluster.do(Kick("q", 1))
    assert text(cluster, number) == b""
    cluster.do(End(take(cluster, number), How.BURY, here=True, text=TEXT))
    cluster.do(Kick("q", 1, here=True))
    assert text(cluster, number) == b""
    cluster.do(End(take(cluster, number), How.LATER, Due(5_000), text=TEXT))
    cluster.do(Kick("", 1, selector=number))
    assert text(cluster, number) == b""
    cluster.do(End(take(cluster, number), How.LATER, text=TEXT))
    cluster.do(Move(take(cluster, number), "r"))
    assert text(cluster, number) == b""
    cluster.do(PutWith(Put("p", 0, b"x"), key="k", every_ms=1000))
    key = Selector(queue="p", key="k")
    (handed,) = cluster.do(Get(("p",)))
    assert isinstance(handed, Handed)
    cluster.do(End(handed.id, How.LATER, text=TEXT))
    assert cluster.machine.error(key) == TEXT
    (again,) = cluster.do(Get(("p",)))
    assert isinstance(again, Handed)
    cluster.do(Done(again.id))
    assert cluster.machine.error(key) == b""
    (last,) = cluster.do(Get(("p",)), after_ms=2000)
    assert isinstance(last, Handed)
    cluster.do(End(last.id, How.LATER, text=TEXT))
    cluster.do(PutWith(Put("p", 0, b"y"), key="k", on_dup=OnDup.REPLACE))
    assert cluster.machine.error(key) == b""


def test_the_time_of_death_is_known_until_a_kick_or_a_move(cluster: Cluster) -> None:
    number = put(cluster)
    assert died_ms(cluster, number) == 0
    cluster.do(Tick(), after_ms=1_000)
    cluster.do(End(take(cluster, number), How.BURY, here=True))
    assert died_ms(cluster, number) == cluster.now_ms
    cluster.do(Tick(), after_ms=1_000)
    cluster.do(End(take(cluster, number), How.BURY))
    assert died_ms(cluster, number) == cluster.now_ms
    cluster.do(Tick(), after_ms=1_000)
    cluster.do(Later(take(cluster, number)))
    assert died_ms(cluster, number) == cluster.now_ms - 1_000
    cluster.do(Move(take(cluster, number), "r"))
    assert died_ms(cluster, number) == 0
    cluster.do(End(take(cluster, number), How.BURY), Kick("r", 1))
    assert died_ms(cluster, number) == 0


def test_the_oldest_are_dropped_beyond_the_bytes_of_the_queue(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q", QueueChange(error_bytes=10)))
    one, two, three = (fail(cluster, letter * 4) for letter in (b"1", b"2", b"3"))
    assert kept(cluster, one, two, three) == [b"", b"2222", b"3333"]
    cluster.do(End(take(cluster, two), How.LATER, text=b"22222222"))       # now it is the newest
    assert kept(cluster, one, two, three) == [b"", b"22222222", b""]
    assert text(cluster, fail(cluster, b"x" * 11)) == b""


def test_other_queues_have_bytes_of_their_own(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q", QueueChange(error_bytes=4)))
    one, other = fail(cluster, b"1111"), fail(cluster, b"2222", "r")
    assert kept(cluster, one, other) == [b"1111", b"2222"]
    settings = cluster.machine.queue_settings("q")
    assert settings is not None
    assert settings.error_bytes == 4
    assert ERRORS_BYTES == 64 << 20


def test_a_job_that_dies_counts_in_the_dead_letter_queue_by_the_age_of_its_text(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q_dead", QueueChange(error_bytes=8)))
    old = fail(cluster, b"1111")
    dead = [fail(cluster, letter * 4, how=How.BURY) for letter in (b"2", b"3")]
    assert kept(cluster, old, *dead) == [b"1111", b"2222", b"3333"]
    cluster.do(End(take(cluster, old), How.BURY))
    assert kept(cluster, old, *dead) == [b"", b"2222", b"3333"]


def test_what_is_lowered_counts_at_once(cluster: Cluster) -> None:
    numbers = [fail(cluster, letter * 4) for letter in (b"1", b"2", b"3")]
    cluster.do(ConfigureQueue("q", QueueChange(error_bytes=9)))
    assert kept(cluster, *numbers) == [b"", b"2222", b"3333"]
    cluster.do(ConfigureQueue("q", QueueChange(error_bytes=0)))
    assert kept(cluster, *numbers) == [b"", b"", b""]
    cluster.do(ConfigureQueue("q", QueueChange(error_bytes=ERRORS_BYTES)))
    assert kept(cluster, *numbers) == [b"", b"", b""]


def test_many_are_dropped_in_portions(cluster: Cluster) -> None:
    cluster.do(*[Put("q", 0, b"")] * 2500)
    cluster.do(GetWith(GET, 2500))
    cluster.do(*[End(number, How.LATER, text=b"x") for number in range(1, 2501)])
    assert cluster.machine.error_bytes("q") == 2500
    cluster.do(ConfigureQueue("q", QueueChange(error_bytes=0)))
    assert cluster.machine.error_bytes("q") == 1500
    assert cluster.machine.next_due_ms() == cluster.machine.clock_ms
    cluster.machine = restored(snapshot_of(cluster.machine))
    cluster.do(Tick())
    assert cluster.machine.error_bytes("q") == 500
    cluster.do(Tick())
    assert cluster.machine.error_bytes("q") == 0
    assert cluster.machine.next_due_ms() is None


ENDS: dict[str, Operation] = {
    "deleted": Delete(FIRST),
    "purged": PurgeQueue("q", Purged.ALL),
    "gone with its queue": DeleteQueue("q", force=True),
}


@pytest.mark.parametrize("name", ENDS)
def test_it_ends_with_its_job(cluster: Cluster, name: str) -> None:
    number = fail(cluster, TEXT)
    operation = ENDS[name]
    assert cluster.machine.error_bytes("q") == len(TEXT)
    cluster.do(Delete(number) if isinstance(operation, Delete) else operation)
    assert cluster.machine.error_bytes("q") == 0


def test_and_when_it_is_done_or_its_time_is_over(cluster: Cluster) -> None:
    number = fail(cluster, TEXT)
    cluster.do(Done(take(cluster, number)))
    assert cluster.machine.error_bytes("q") == 0
    cluster.do(PutWith(Put("q", 0, b"a"), ttl_ms=100))
    (handed,) = cluster.do(GET)
    assert isinstance(handed, Handed)
    cluster.do(End(handed.id, How.LATER, text=TEXT))
    assert cluster.machine.error_bytes("q") == len(TEXT)
    cluster.do(Tick(), after_ms=200)
    assert cluster.machine.error_bytes("q") == 0


def test_an_aborted_batch_brings_it_back(cluster: Cluster) -> None:
    old, new = fail(cluster, TEXT), put(cluster)
    running = [take(cluster, old), take(cluster, new)]
    before = snapshot_of(cluster.machine)
    (reply,) = cluster.do(Batch((
        End(running[0], How.BURY, text=b"other"), Kick("q", 1), End(running[1], How.LATER, text=b"new"), Done(99),
    ), atomic=True))
    assert reply == Aborted(4, NotFound())
    assert kept(cluster, old, new) == [TEXT, b""]
    after = snapshot_of(cluster.machine)
    assert len(after) == len(before)
    cluster.do(Batch((Done(99),), atomic=True), End(running[1], How.LATER, text=b"new"))
    assert kept(cluster, old, new) == [TEXT, b"new"]
    assert cluster.machine.error_bytes("q") == len(TEXT) + 3
