"""Settings that do not concern how jobs come and are handed out cost PUT and GET nothing, and records cost DONE little.

Counted in calls of Python functions, which are most of what a command costs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType

import pytest

from sockpqd.core import (
    ConfigureQueue,
    End,
    Get,
    Handed,
    How,
    Machine,
    Operation,
    Put,
    PutWith,
    QueueChange,
    Then,
)

JOBS = 50
RECORD_CALLS = 7        # a record: whether the job leaves one, its data and size, to its queue, a block and the index
QUIET = [
    QueueChange(retain_ms=60_000, retain_max=1000, retain_bytes=10**6), QueueChange(tries=3, dead="d"),
    QueueChange(expire_ms=60_000, then=Then.DEAD), QueueChange(weight=3), QueueChange(keep_ms=60_000),
    QueueChange(backoff_ms=1000, backoff_max_ms=9000), QueueChange(error_bytes=10_000), QueueChange(dedup_max=10),
]


def calls_of(machine: Machine, operations: Sequence[Operation]) -> tuple[int, list[object]]:
    """Return the number of calls that these operations make, and their replies."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        replies = machine.apply(machine.index + 1, 1_700_000_000_000, 0, operations).replies
    finally:
        sys.setprofile(before)
    return calls, [*replies]


def costs(change: QueueChange | None) -> tuple[float, float, float]:
    """Return the calls for the PUT, the GET and the DONE of a job with a number, in a queue with these settings."""
    machine = Machine()
    if change is not None:
        machine.apply(1, 1_700_000_000_000, 0, [ConfigureQueue("q", change)])
    puts: list[Operation] = [PutWith(Put("q", 0, b"x" * 100), number=True)] * JOBS
    for _ in range(2):      # what the first jobs make is there the second time
        put, _ = calls_of(machine, puts)
        get, replies = calls_of(machine, [Get(("q",))] * JOBS)
        ids = [reply.id for reply in replies if isinstance(reply, Handed)]
        assert len(ids) == JOBS
        done, _ = calls_of(machine, [End(id_, How.DONE, text=b"yes") for id_ in ids])
    return put / JOBS, get / JOBS, done / JOBS


@pytest.mark.parametrize("change", QUIET)
def test_put_and_get_do_not_notice_settings_of_leases_ends_and_records(change: QueueChange) -> None:
    plain, configured = costs(None), costs(change)
    more = [round(with_it - without) for without, with_it in zip(plain, configured, strict=True)]
    lease = int(change.expire_ms is not None)       # which GET has to note, and DONE to forget
    assert more == [0, lease, lease + (RECORD_CALLS if change.retain_ms else 1)]
