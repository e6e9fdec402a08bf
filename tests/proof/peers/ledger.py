"""Records the answers to clients about each job, and finds the jobs that were lost or doubled."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

CONFIRMED, REFUSED, UNKNOWN = "confirmed", "refused", "unknown"


class Put(Struct):
    """A job that a client put. Times are of the same monotonic clock, in nanoseconds."""

    job: str
    ended_ns: int
    outcome: str


class Delivery(Struct):
    """A job that a client was given."""

    job: str
    came_ns: int
    ended_ns: int | None = None             # when its end was confirmed, or, where that never is, the next command was


class Findings(Struct):
    """The jobs with which something is wrong."""

    lost: list[str]                         # confirmed, and never delivered
    invented: list[str]                     # delivered, and never put
    doubled: list[str]                      # delivered again after their end was confirmed


class Ledger:
    """All puts and deliveries; may be used by several threads."""

    def __init__(self) -> None:
        self.puts: list[Put] = []
        self.deliveries: list[Delivery] = []
        self._lock = threading.Lock()

    def note_put(self, put: Put) -> None:
        """Record a put, from any thread."""
        with self._lock:
            self.puts.append(put)

    def note_delivery(self, delivery: Delivery) -> None:
        """Add a delivery, whose `ended_ns` may be set later."""
        with self._lock:
            self.deliveries.append(delivery)

    def outcomes(self) -> Counter[str]:
        """Return how many puts ended in which way."""
        return Counter(put.outcome for put in self.puts)

    def findings(self) -> Findings:
        """Return what is wrong; only when everything that was left has been taken."""
        put = {one.job for one in self.puts}
        delivered = {one.job for one in self.deliveries}
        confirmed = [one.job for one in self.puts if one.outcome == CONFIRMED]
        ended: dict[str, int] = {}
        for one in self.deliveries:
            if one.ended_ns is not None:
                ended[one.job] = min(one.ended_ns, ended.get(one.job, one.ended_ns))
        return Findings(
            lost=[job for job in confirmed if job not in delivered],
            invented=sorted(delivered - put),
            doubled=sorted({one.job for one in self.deliveries if one.came_ns > ended.get(one.job, one.came_ns)}),
        )

    def longest_gap_s(self, from_ns: int, until_ns: int) -> float:
        """Return the longest time in between without a confirmed put or a delivery."""
        times = [put.ended_ns for put in self.puts if put.outcome == CONFIRMED]
        times += [one.came_ns for one in self.deliveries]
        return longest_gap_ns([at for at in times if from_ns < at < until_ns], from_ns, until_ns) / 1e9


def longest_gap_ns(times: Sequence[int], from_ns: int, until_ns: int) -> int:
    """Return the longest distance between neighbours among these times and the two ends."""
    ordered = [from_ns, *sorted(times), until_ns]
    return max(after - before for before, after in itertools.pairwise(ordered))
