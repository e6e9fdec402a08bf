"""Measures how well the cluster served: the runner reports it, and uses it to recognise a void run."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from tests.chaos.checker.evidence.moments import NEVER, SECOND, is_ok
from tests.chaos.workload.history import Record


def availability(records: Iterable[Record], from_ns: int = -NEVER, until_ns: int = NEVER) -> int:
    """The longest time without an acknowledged command, in nanoseconds, among the records of this window.

    The first and the last record of the window count as its ends, whatever came of them: so an outage that never ended
    is seen as long as somebody tried. 0 when there is no record.
    """
    moments = []
    edges = []
    for record in records:
        for moment in (record.start_ns, record.end_ns):
            if moment is not None and from_ns <= moment <= until_ns:
                edges.append(moment)
        if is_ok(record) and record.end_ns is not None and from_ns <= record.end_ns <= until_ns:
            moments.append(record.end_ns)
    if not edges:
        return 0
    return max(after - before for before, after in pairwise(sorted([min(edges), *moments, max(edges)])))


def rate_before(records: Iterable[Record], moment_ns: int, window_ns: int = SECOND) -> float:
    """Return the acknowledged commands per second in the window that ends at this moment."""
    number = sum(
        is_ok(record) and record.end_ns is not None and moment_ns - window_ns <= record.end_ns < moment_ns
        for record in records
    )
    return number * SECOND / window_ns
