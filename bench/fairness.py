"""Simulates what FAIR was made for, in replicated time: ten queries, one long and nine short, by one worker and more.

    python -m bench.fairness

Nothing waits: the program drives the state machine itself. The tables are those of docs/FAIRNESS.md.
"""

from __future__ import annotations

from heapq import heappop, heappush

from msgspec import Struct

from core import (
    ConfigureFair,
    Get,
    GetWith,
    Handed,
    LaterRan,
    LaterWith,
    Machine,
    Operation,
    Policy,
    Put,
    PutGrouped,
    PutWith,
    Reply,
)
from core import Done as End

SLICE_MS = 1000
LONG_MS = 10_000
SHORT_MS = 1_000
SHORT = 9
HUNG_MS = 600_000


class Latencies(Struct, frozen=True):
    """When the queries were finished, in ms."""

    short_ms: list[int]
    long_ms: int

    @property
    def mean_s(self) -> float:
        """The mean latency of the short ones."""
        return sum(self.short_ms) / len(self.short_ms) / 1000

    @property
    def worst_s(self) -> float:
        """That of the last of the short ones; of nine it is the p99, too."""
        return max(self.short_ms) / 1000


class SimulatedQueue:
    """A machine and its time."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.now_ms = 1_000_000

    def do(self, *operations: Operation) -> list[Reply]:
        """Execute one entry."""
        return self.machine.apply(self.machine.index + 1, self.now_ms, 0, list(operations)).replies


def simulate(
    policy: Policy | None, workers: int, multiplier: int = 2, *, hung: bool = False, after: bool = False,
) -> Latencies:
    """Let workers do the queries, in slices of a second; without FAIR a query is done in one piece.

    `policy`: None for FIFO. `hung`: the long one never says anything for ten minutes. `after`: the last one waits for
    the first six (AFTER).
    """
    cluster = SimulatedQueue()
    cluster.do(ConfigureFair(multiplier=multiplier))
    left = {0: HUNG_MS if hung else LONG_MS, **dict.fromkeys(range(1, SHORT + 1), SHORT_MS)}
    start_ms = cluster.now_ms
    for number in left:
        put = Put("q", int(number > 0) if policy is Policy.PRIORITY else 0, b"%d" % number, f"query_{number}")
        if after and number == SHORT:
            cluster.do(PutWith(put, after=tuple(f"query_{one}" for one in range(6))))
        else:
            cluster.do(PutGrouped(put, f"query_{number}"))
    get = GetWith(Get(("q",)), policy=Policy.FAIR if policy is Policy.FAIR else Policy.ORDER)
    busy: list[tuple[int, int, int, int]] = []          # until when, job id, query, for how long
    finished: dict[int, int] = {}
    free = workers
    while len(finished) < len(left):
        while free:
            (reply,) = cluster.do(get)
            if not isinstance(reply, Handed):
                break
            number = int(reply.data)
            whole = policy is not Policy.FAIR or (hung and number == 0)
            run_ms = left[number] if whole else min(SLICE_MS, left[number])
            heappush(busy, (cluster.now_ms + run_ms, reply.id, number, run_ms))
            free -= 1
        cluster.now_ms, job, number, run_ms = heappop(busy)
        left[number] -= run_ms
        free += 1
        if left[number]:
            cluster.do(LaterRan(LaterWith(job, yielded=True), run_ms))
        else:
            cluster.do(End(job))
            finished[number] = cluster.now_ms - start_ms
    return Latencies([finished[number] for number in range(1, SHORT + 1)], finished[0])


ROWS = (
    ("FIFO", None, 2), ("PRIORITY", Policy.PRIORITY, 2), ("FAIR", Policy.FAIR, 2),
    ("FAIR, MULTIPLIER 4", Policy.FAIR, 4),
)


def table(title: str, workers: tuple[int, ...], *, hung: bool = False, after: bool = False) -> str:
    """The latencies of the short queries by each policy, for so many workers."""
    lines = [f"{title}", "", "| | " + " | ".join(f"{count} worker{'s' * (count > 1)}" for count in workers) + " |"]
    lines.append("|---" * (len(workers) + 1) + "|")
    for name, policy, multiplier in ROWS:
        results = [simulate(policy, count, multiplier, hung=hung, after=after) for count in workers]
        cells = [f"{one.mean_s:.1f} s, last {one.worst_s:.0f} s" for one in results]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    print(table("One of 10 s, then nine of 1 s: mean latency of the nine, and that of their last:", (1, 2, 4)))
    print()
    print(table("The same, the last one waiting for the first six (AFTER):", (1, 2, 4), after=True))
    print()
    print(table("The same, the first one hanging for ten minutes:", (2, 4), hung=True))


if __name__ == "__main__":
    main()
