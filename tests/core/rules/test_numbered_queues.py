"""Numbers that jobs have by the setting of their queue (NUMBERED): who gets one, and what it is good for."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    BindQueue,
    ConfigureQueue,
    Dedup,
    Delete,
    Done,
    Due,
    End,
    EndState,
    FindPlace,
    Get,
    GetWith,
    Handed,
    How,
    JobIgnored,
    JobState,
    Kick,
    Later,
    Machine,
    Move,
    Number,
    OnDup,
    Operation,
    Put,
    PutWith,
    QueueChange,
    Removed,
    Reply,
    Search,
    Stored,
    StoredNumber,
    Tick,
    ToQueues,
    ToTopic,
    Wanted,
)
from sockpqd.core.ops.replies import IgnoredNumber
from tests.core.helpers.logs import restored, snapshot_of

START_MS = 1_700_000_000_000


class Cluster:
    """A machine with a clock, and a queue that gives numbers."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.now_ms = START_MS
        self.do(ConfigureQueue("q", QueueChange(numbered=True, retain_ms=60_000)))

    def do(self, *operations: Operation, after_ms: int = 0) -> list[Reply]:
        self.now_ms += after_ms
        return self.machine.apply(self.machine.index + 1, self.now_ms, 1, list(operations)).replies

    def take(self, queue: str = "q") -> Handed:
        (reply,) = self.do(Get((queue,)))
        assert isinstance(reply, Handed)
        return reply

    def numbers(self, queue: str = "q", state: JobState = JobState.READY) -> list[int | None]:
        return [job.number for job in self.machine.peek_queue(queue, state, 99)]

    def number(self) -> int:
        """Return the number of the only READY job."""
        (number,) = self.numbers()
        assert number is not None
        return number


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.mark.parametrize("put", [
    Put("q", 0, b""), Put("q", 0, b"", new_item=True), PutWith(Put("q", 0, b""), key="k"),
    PutWith(Put("q", 0, b""), targets=ToQueues(("q", "r"))), PutWith(Put("r", 0, b""), targets=ToTopic("t", "x")),
    PutWith(Put("q", 0, b"x" * 5000), targets=ToQueues(("q", "r"))),
])
def test_each_job_that_is_put_has_one_and_the_answer_does_not_say_so(cluster: Cluster, put: Operation) -> None:
    cluster.do(BindQueue("t", "q"))
    (reply,) = cluster.do(put)
    assert not isinstance(reply, StoredNumber)
    job = cluster.machine.peek(Number(cluster.number()))
    assert job is not None
    assert job.queue == "q"


def test_periodic_jobs_and_those_for_later_have_one(cluster: Cluster) -> None:
    cluster.do(PutWith(Put("q", 0, b""), when=Due(50)), PutWith(Put("q", 0, b""), every_ms=500))
    before = sorted([*cluster.numbers(state=JobState.DELAYED), *cluster.numbers()], key=lambda one: one or 0)
    cluster.do(Done(cluster.take().id))
    cluster.do(Tick(), after_ms=1000)
    assert sorted(cluster.numbers(), key=lambda one: one or 0) == before
    assert None not in before


def test_with_number_in_its_put_the_answer_shows_it_and_the_place_stays(cluster: Cluster) -> None:
    (reply,) = cluster.do(PutWith(Put("q", 0, b"first"), number=True))
    assert isinstance(reply, StoredNumber)
    cluster.do(Put("q", 0, b"second"))
    cluster.do(Later(cluster.take().id), after_ms=5)
    assert cluster.numbers()[0] == reply.number


def test_without_number_in_its_put_it_goes_to_the_tail_and_is_found_there(cluster: Cluster) -> None:
    cluster.do(Put("q", 0, b"first"), Put("q", 0, b"second"))
    first, second = cluster.numbers()
    cluster.do(Later(cluster.take().id), after_ms=5)
    assert cluster.numbers() == [second, first]
    job = cluster.machine.peek(Number(first or 0))
    assert job is not None
    assert job.seq != first
    assert cluster.machine.peek(Number(job.seq)) is None
    assert job.created_ms == START_MS


def test_a_search_by_time_goes_by_when_it_was_put_not_by_when_it_took_its_place(cluster: Cluster) -> None:
    cluster.do(Put("q", 0, b"first"), Put("r", 0, b"other"))
    cluster.do(Later(cluster.take("q").id), Later(cluster.take("r").id), after_ms=5000)
    search = Search(Wanted(until_ms=START_MS + 1000))
    found = [cluster.machine.find(search, FindPlace(queue), 9, 9, 999).jobs for queue in "qr"]
    assert [[job.data for job in jobs] for jobs in found] == [[b"first"], []]


def test_one_that_is_moved_here_gets_one_and_one_that_has_one_keeps_it(cluster: Cluster) -> None:
    cluster.do(Put("r", 0, b""), PutWith(Put("s", 0, b""), number=True))
    cluster.do(Move(cluster.take("r").id, "q"))
    number = cluster.number()
    (other,) = cluster.numbers("s")
    cluster.do(Move(cluster.take("q").id, "r"), Move(cluster.take("s").id, "q"))
    assert (cluster.numbers("r"), cluster.numbers()) == ([number], [other])


def test_one_from_before_the_setting_gets_one_when_it_is_replaced(cluster: Cluster) -> None:
    cluster.do(PutWith(Put("r", 0, b""), key="k"))
    cluster.do(ConfigureQueue("r", QueueChange(numbered=True)))
    assert cluster.numbers("r") == [None]
    cluster.do(PutWith(Put("r", 0, b""), key="k", on_dup=OnDup.REPLACE))
    (number,) = cluster.numbers("r")
    assert number is not None
    cluster.do(PutWith(Put("r", 0, b""), key="k", on_dup=OnDup.REPLACE))
    cluster.do(ConfigureQueue("r", QueueChange(numbered=False)), PutWith(Put("r", 0, b""), key="l"))
    assert cluster.numbers("r") == [number, None]


@pytest.mark.parametrize("options", [{"key": "k", "on_dup": OnDup.IGNORE}, {"dedup": Dedup("k", 5000)}])
def test_exists_shows_it_to_who_asks_for_numbers(cluster: Cluster, options: dict[str, object]) -> None:
    put = PutWith(Put("q", 0, b""), **options)  # type: ignore[arg-type]
    assert cluster.do(put) == [Stored(None)]
    number = cluster.number()
    cluster.do(Later(cluster.take().id))
    asked = PutWith(Put("q", 0, b""), **options, number=True)  # type: ignore[arg-type]
    assert cluster.do(put, asked) == [JobIgnored(), IgnoredNumber(number)]


def test_it_is_taken_and_deleted_by_it_wherever_it_stands(cluster: Cluster) -> None:
    cluster.do(Put("q", 0, b"a"))
    number = cluster.number()
    cluster.do(End(cluster.take().id, How.LATER, Due(5000)))
    (reply,) = cluster.do(GetWith(Get(None), number=number))
    assert [job.data for job in getattr(reply, "jobs", [reply])] == [b"a"]
    cluster.do(Later(getattr(reply, "jobs", [reply])[0].id))
    cluster.do(Delete(Number(number)))
    assert cluster.numbers() == []


def test_its_record_has_it_and_it_comes_back_at_the_tail(cluster: Cluster) -> None:
    cluster.do(Put("q", 0, b"a"), Put("q", 0, b"b"))
    first, second = cluster.numbers()
    assert first is not None
    cluster.do(Later(cluster.take().id), after_ms=5)
    cluster.do(Delete(Number(second or 0)))
    cluster.do(Done(cluster.take().id))
    records, _ = cluster.machine.ended_jobs("q", 9)
    assert [(record.number, record.state) for record in records] == [
        (first, EndState.DONE), (second, EndState.CANCELLED)]
    cluster.do(Put("q", 0, b"c"))
    assert cluster.do(Kick("", 1, selector=Number(first), ended=True)) == [Removed(1)]
    assert cluster.numbers()[1:] == [first]
    machine = restored(snapshot_of(cluster.machine))
    assert machine.peek(Number(first)) == cluster.machine.peek(Number(first))
