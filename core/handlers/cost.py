"""The cost of an operation: an upper bound of its bytes in an entry, and of the work it causes.

The proposer closes an entry of the log by the sums of both (cluster/leader/proposer.py), so that no entry is too large
to be sent and none blocks the others for long. Both follow from the operation alone, before it is proposed, and must be
cheap to compute. Work that depends on the state is counted while an entry is applied: see State.spent.

The unit of work is one name: looking up whether the queue of that name has a job to hand out. Names are plain ASCII
(PROTOCOL "Lines, data, values"), so their length in characters is their length in bytes.
"""

from __future__ import annotations

from typing import Any

Cost = tuple[int, int]          # bytes, work

BASE_BYTES = 64                 # of all fields of fixed length, and of the operation in memory
OPTIONS_BYTES = 64              # of the options of a Put
CHANGE_BYTES = 128              # of the settings of a queue
NAME_BYTES = 3                  # of a string besides its characters
ID_BYTES = 9

JOB = 8                         # to put, hand out or end a job
JOB_WITH_EXTRAS = 24            # the same with all rare attributes: key, TTL, time, attempts
AFTER = 2                       # to note that a job waits for an item
NAMED = 24                      # each further queue or group among the jobs of a Batch: it is looked up or created
BOUND = 4                       # a queue bound to the topic of a Put
ROUTE_STEPS = 3                 # this many words of its key, each compared with a pattern, are one unit of work
FAIR = 16                       # to put a job, or end a hand-out, where groups are ranked
DROP = 48                       # to remove a job that makes room for one with options (OVERFLOW DROPOLDEST)
RELISTED = 8                    # to list a group of a queue again, whose settings have changed
RANKED = 10                     # to rank a group again in one of the queues where it is one of many, or list it there
USERS = 160                     # to change a user, which copies the table of all users

_SMALL = (BASE_BYTES, JOB)


def small(operation: object) -> Cost:
    """Return the cost of an operation that consists of a few numbers and changes at most one job."""
    return _SMALL


def of_names(*names: str | None) -> int:
    """Return the number of bytes that the names take in an entry."""
    return sum(NAME_BYTES + len(name) for name in names if name is not None)


def of_ids(ids: tuple[int, ...]) -> Cost:
    """Return the cost of an operation on the running jobs with these ids."""
    return BASE_BYTES + ID_BYTES * len(ids), JOB * len(ids)


def on_queue(operation: Any) -> Cost:
    """Return the cost of a small operation that names a queue."""
    return BASE_BYTES + of_names(operation.queue), JOB


def on_pulse(operation: Any) -> Cost:
    """Return the cost of a small operation that names a pulse."""
    return CHANGE_BYTES + of_names(operation.pulse), JOB
