"""Portions: bounded in jobs and in bytes, the same wherever the jobs are, and what is dropped is not read."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from sockpqd.core import (
    Accepted,
    Change,
    Configure,
    DeleteQueue,
    Due,
    End,
    Get,
    GetWith,
    How,
    JobState,
    Machine,
    MoveJobs,
    Operation,
    Place,
    Policy,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    Removed,
    Tick,
    limits,
)
from sockpqd.core.ops.jobs import Kick
from sockpqd.core.pages.pager import Stage
from tests.core.helpers.logs import KNOWN_LEVEL, LogEntry, lead
from tests.core.helpers.paging import MemoryStore, page_out, paged_machine, small_collections
from tests.core.helpers.paging_law import assert_law

QUEUES = ("a", "b")
WIDE = (Stage(5, 40, 1),)


def removal(random: Random, machine: Machine, queue: str) -> Operation:
    """Return an operation that is done in portions."""
    seen = machine.peek_queue(queue, random.choice([JobState.READY, JobState.DELAYED]), 100)
    before = random.choice([None, machine.next_seq, random.choice(seen).seq if seen else 0])
    return random.choice([
        PurgeQueue(queue, random.choice([*Purged]), before), PurgeQueue(queue, Purged.READY, before),
        PurgeQueue(queue, Purged.ALL, before), Kick(queue, random.choice([3, 1000]), here=True),
        Kick(queue, random.choice([3, 1000])), DeleteQueue(queue, force=True),
        DeleteQueue(queue, force=True, leave=True),
        PurgeQueue(queue, random.choice([Purged.RUNNING, Purged.OWN]), before, random.choice([None, machine.next_id])),
        MoveJobs(queue, random.choice(QUEUES), random.choice([3, 50, 1000])),
        MoveJobs(f"{queue}_dead", queue, 1000, queue),
    ])


def removing_log(seed: int, length: int, *, numbered: bool = False, fair: bool = False) -> list[LogEntry]:
    """A log with long queues of jobs of all states, which are filled and then removed, and now and then both.

    `numbered`: many of them are; `fair`: many have groups.
    """
    random, machine = Random(seed), Machine(KNOWN_LEVEL)
    log: list[LogEntry] = []
    ids: list[int] = []
    now_ms = 1_700_000_000_000
    while len(log) < length:
        now_ms += random.choice([0, 1, 30, 400])
        fills = len(log) % 60 < 40
        operations = []
        for _ in range(random.randrange(1, 14)):
            queue, kind = random.choice(QUEUES), random.random()
            put = Put(queue, random.choice([0, 0, 0, 7, -7]), random.randbytes(random.randrange(30)))
            if kind < (0.9 if fills else 0.2):
                later = PutWith(put, when=Due(random.choice([10, 500, 90_000])))
                grouped = PutWith(put, group=random.choice(["x", "y", *QUEUES]))
                operations.append(random.choice([
                    put, put, put, later, PutWith(put, key=f"k{len(log)}"),
                    *([PutWith(put, number=True), PutWith(put, later.when, number=True)] * numbered),
                    *[grouped] * fair]))
            elif kind < (0.91 if fills else 0.3) and fair:
                operations.append(random.choice([
                    Configure(policy=Policy.FAIR), Get((queue,)), GetWith(Get((queue,)), 2)]))
            elif kind < 0.93:
                operations.append(random.choice([
                    Get((queue,)), GetWith(Get((queue,)), 3), Tick(),
                    *([End(random.choice(ids), How.BURY), End(random.choice(ids), How.BURY, here=True)] if ids else []),
                ]))
            else:
                operations.append(removal(random, machine, queue))
        log.append(LogEntry(now_ms, random.getrandbits(64), operations))
        for reply in machine.apply(len(log), *log[-1]).replies:
            ids += [job.id for job in getattr(reply, "jobs", [reply]) if hasattr(job, "id") and hasattr(job, "data")]
        ids = ids[-40:]
    return log


@pytest.mark.parametrize(("seed", "kinds"), [
    *[(seed, {}) for seed in range(6)], (0, {"numbered": True}), (1, {"numbered": True}), (0, {"fair": True}),
    (1, {"fair": True}), (2, {"fair": True, "numbered": True}),
])
@pytest.mark.parametrize(("jobs_max", "bytes_max"), [(7, 1 << 20), (30, 90)])
def test_paging_shows_nowhere_in_what_is_done_in_portions(
    seed: int, jobs_max: int, bytes_max: int, kinds: dict[str, bool], monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_collections(monkeypatch)
    monkeypatch.setattr(limits, "PORTION_MAX", jobs_max)
    monkeypatch.setattr(limits, "PORTION_BYTES_MAX", bytes_max)
    if seed % 2:
        monkeypatch.setattr("sockpqd.core.store.ready.SCANNED_RUNS_MAX", 2)     # so that the runs have their index
    assert assert_law(removing_log(seed, 400, **kinds), seed, full=0.02) > 60


class Reading:
    """A machine with jobs in pages that counts what it reads."""

    def __init__(self, puts: list[Any], stages: tuple[Stage, ...] = WIDE) -> None:
        self.store = MemoryStore()
        self.machine = paged_machine(self.store, stages)
        self.bytes = 0
        self.do([lead()])
        for start in range(0, len(puts), 100):
            self.do(puts[start:start + 100])
        page_out(self.machine, _All())
        for space in self.store.spaces:
            space.get = self._counting(space.get)       # type: ignore[method-assign]

    def do(self, operations: list[Any], at_ms: int = 1000) -> list[Any]:
        """Apply an entry; returns the replies."""
        self.bytes = 0
        return self.machine.apply(self.machine.index + 1, at_ms, 7, operations).replies

    def _counting(self, get: Any) -> Any:
        def counted(number: int) -> bytes:
            data: bytes = get(number)
            self.bytes += len(data)
            return data
        return counted


class _All(Random):
    """Pages out all that can be."""

    def choice(self, seq: Any) -> Any:
        return seq[-1]


SMALL, LARGE = 100, 200 << 10


def jobs(count: int, size: int, when: Due | None = None) -> list[Any]:
    puts = [Put("q", 0, bytes(size)) for _ in range(count)]
    return puts if when is None else [PutWith(put, when=when) for put in puts]


def numbered(puts: list[Any]) -> list[Any]:
    return [PutWith(put, number=True) for put in puts]


GROUPS = [Configure(policy=Policy.FAIR), *[PutWith(Put("q", 0, b""), group="other") for _ in range(3)], Get(("q",))]


@pytest.mark.parametrize("puts", [
    jobs(5000, SMALL), numbered(jobs(5000, SMALL)), [*GROUPS[:1], *jobs(5000, SMALL)],
    [*GROUPS, *jobs(4998, SMALL)], [*GROUPS, *numbered(jobs(4998, SMALL))],
], ids=["plain", "numbered", "fair", "groups", "numbered groups"])
@pytest.mark.parametrize("operation", [
    PurgeQueue("q", Purged.ALL), DeleteQueue("q", force=True)], ids=["purge", "delete"])
def test_pages_are_dropped_unread(operation: Operation, puts: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGE_BYTES_MIN", 0)
    reading = Reading(puts)
    assert reading.machine.on_disk("q").jobs > 4000
    for _ in range(4):
        reply, = reading.do([operation])
        assert reply == Removed(1000, more=True)
        assert reading.bytes <= 3 * 40 * (SMALL + 90), "the page that the portion ends in, and the new front"
    reading.do([operation, operation])
    assert reading.machine.total(None).jobs == 0
    assert reading.store.pages == 0


def test_the_last_pages_before_a_seq_are_dropped_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGE_BYTES_MIN", 0)
    reading = Reading(jobs(5000, SMALL))
    before_seq = reading.machine.peek_queue("q", JobState.READY, 5000)[450].seq
    reply, = reading.do([PurgeQueue("q", Purged.ALL, before_seq)])
    assert reply == Removed(450)
    assert reading.bytes <= 3 * 40 * (SMALL + 50), "those behind the place are not looked at"
    assert reading.machine.total(None).jobs == 4550


@pytest.mark.parametrize("operation", [
    PurgeQueue("q", Purged.ALL), DeleteQueue("q", force=True)], ids=["purge", "delete"])
def test_a_portion_that_may_have_to_be_read_is_bounded_in_bytes(operation: Operation) -> None:
    puts = jobs(100, LARGE, Due(60_000))
    reading = Reading(puts)
    plain = Machine(KNOWN_LEVEL)
    plain.apply(1, 1000, 7, puts)
    whole = limits.PORTION_BYTES_MAX // LARGE
    for left in range(100 - whole, 0, -whole):
        reply, = reading.do([operation])
        assert reply == Removed(whole, more=True)
        assert plain.apply(plain.index + 1, 1000, 7, [operation]).replies == [reply]
        assert reading.bytes <= 2 * limits.PORTION_BYTES_MAX + LARGE
        assert reading.machine.total(None).jobs == left
    reply, = reading.do([operation])
    assert isinstance(reply, Removed | Accepted)
    assert reading.machine.total(None).jobs == 0


@pytest.mark.parametrize("operation", [
    PurgeQueue("q", Purged.ALL), DeleteQueue("q", force=True)], ids=["purge", "delete"])
def test_large_jobs_that_need_not_be_read_are_one_portion(operation: Operation) -> None:
    reading = Reading(jobs(500, LARGE))
    reading.do([operation])
    assert reading.machine.total(None).jobs == 0
    assert reading.bytes <= 2 * LARGE


def test_a_portion_of_many_priorities_is_bounded_in_bytes() -> None:
    reading = Reading([Put("q", number, bytes(LARGE)) for number in range(100)])
    reply, = reading.do([PurgeQueue("q", Purged.ALL)])
    assert reply == Removed(limits.PORTION_BYTES_MAX // LARGE, more=True)


def test_a_kick_of_delayed_jobs_is_bounded_in_bytes() -> None:
    reading = Reading(jobs(100, LARGE, Due(60_000)))
    whole = limits.PORTION_BYTES_MAX // LARGE
    kicked = 0
    while kicked < 100:
        reply, = reading.do([Kick("q", 100 - kicked, here=True)])
        kicked += reply.count
        assert reply == Removed(min(whole, 100 - kicked + reply.count), kicked < 100, False)
        assert reading.bytes <= limits.PORTION_BYTES_MAX + 2 * LARGE
    assert reading.machine.counts("q").ready == 100


def test_what_becomes_due_in_one_entry_is_bounded_in_bytes() -> None:
    reading = Reading(jobs(100, LARGE, Due(60_000)))
    whole = limits.PORTION_BYTES_MAX // LARGE
    for ready in [*range(whole, 100, whole), 100]:
        reading.do([Tick()], at_ms=100_000)
        assert reading.machine.counts("q").ready == ready
        assert reading.bytes <= limits.PORTION_BYTES_MAX + 2 * LARGE


@pytest.mark.parametrize("first", [PurgeQueue("q", Purged.ALL), DeleteQueue("q", force=True), Kick("q", 2, here=True)])
def test_a_delayed_job_larger_than_a_portion_is_a_portion(first: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PORTION_BYTES_MAX", 10)
    reading = Reading(jobs(2, 100, Due(60_000)))
    reply, = reading.do([first])
    assert (reply.count, reply.more) == (1, True)


def test_jobs_of_groups_are_dropped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGE_BYTES_MIN", 0)
    reading = Reading([Configure(policy=Policy.FAIR), *jobs(1500, SMALL)])
    assert reading.do([PurgeQueue("q", Purged.ALL)]) == [Removed(1000, more=True)]
    place = Place("q", reading.machine.peek_queue("q", JobState.READY, 1)[0].seq)
    reading.do([Change(place, priority=3)])
    assert reading.do([PurgeQueue("q", Purged.ALL)]) == [Removed(500)]
    assert reading.machine.total(None).jobs == 0
