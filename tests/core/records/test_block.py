"""Blocks of records: their memory in a page, and what a record shares with its job."""

from __future__ import annotations

import pytest

from sockpqd.core.limits import RECORD_SPAN_MS
from sockpqd.core.ops.queues import EndState
from sockpqd.core.records.block import Block
from sockpqd.core.records.record import JobRecord
from sockpqd.core.store.job import Extras, JobCounts
from tests.core.helpers.paging import MemoryStore

EXTRAS = Extras(
    key="k", tries=3, ttl_ms=4, expires_at_ms=5, every_ms=6, origin="o", after=("i",), ready_ms=7, reason="r",
    group="g", body=8, lease_ms=9, counts=JobCounts(reserves=2, first_ms=10, last_ms=11), head=1, error=12,
)


def record(number: int, ended_ms: int, size: int) -> JobRecord:
    """Return a record of this many bytes."""
    return JobRecord(number, EndState.DONE, ended_ms, 0, None, bytes(size), 1, EXTRAS)


@pytest.mark.parametrize(("size", "since_ms", "each"), [
    (2**16 - 2, 2**16 - 1, 4), (2**16 - 1, 2**16 - 1, 6), (0, 2**16, 6), (2**17, RECORD_SPAN_MS, 8),
])
def test_in_a_page_ends_and_sizes_take_what_they_need(size: int, since_ms: int, each: int) -> None:
    block, space = Block(1, 0, 1000), MemoryStore().space()
    records = [record(1, 1000, 3), record(2, 1000 + since_ms, size)]
    assert [block.add(one, one.kept_bytes) for one in records] == [True, True]
    assert block.write(space)
    assert block.ends.itemsize + block.sizes.itemsize == each
    assert [block.ended_ms(at) for at in range(2)] == [1000, 1000 + since_ms]
    assert block.records(space.get) == records
    taken = block.remove(1)
    assert (taken, block.kept, block.kept_bytes) == (size + 1, 1, 3)
    block.put_back(1, taken)
    again = Block(2, 0, 1000)
    again.adopt(block.page or 0, list(block.ends), list(block.sizes))
    for one in (block, again):
        assert (one.ends, one.sizes, one.kept, one.kept_bytes) == (block.ends, block.sizes, 2, size + 3)
        assert one.ends.itemsize + one.sizes.itemsize == each


def test_a_record_names_the_extras_of_its_job_and_shows_what_lasts_of_them() -> None:
    running = JobRecord(1, EndState.DONE, 20, 0, None, b"", 3, EXTRAS, started_ms=15)
    assert running.own is EXTRAS
    lasting = Extras(
        key="k", tries=3, ttl_ms=4, origin="o", reason="r", group="g", lease_ms=9, head=1,
        counts=JobCounts(reserves=2, first_ms=10, last_ms=15),
    )
    assert running.extras == lasting
    waiting = JobRecord(1, EndState.EXPIRED, 20, 0, None, b"", 3, EXTRAS)
    assert waiting.extras.counts == EXTRAS.counts
