"""Many rounds of moves, in one process or several, and their sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from typing import NamedTuple

from tests.sim.campaign import broken, processes, rare_collections
from tests.sim.clusters.moves import Moves
from tests.sim.world.trace import Violation

ROUNDS_EACH = 10                # of a run
WORDS = ("rounds", "leaders killed", "pqctl killed", "pqctl failed", "elsewhere")


class Sum(NamedTuple):
    """The sum of some runs. `seen` has WORDS, `jobs` and `simulated s`; the times are as in Moves.unowned_s."""

    seen: Counter[str]
    unowned_s: list[tuple[float, float]]
    failures: dict[int, str]


def one(seed: int, rounds: int) -> Sum:
    """Run this seed for `rounds` rounds; returns what it has counted, and its failure."""
    run, failures = Moves(seed, rounds), {}
    with rare_collections():
        try:
            run.run()
        except Violation as violation:
            failures[seed] = "\n".join([str(violation), *run.trace.last()])
        except Exception as error:
            failures[seed] = broken(error)
    seen = Counter({word: run.trace.seen[word] for word in WORDS})
    seen.update({"jobs": len(run.answered), "simulated s": round(run.events.now)})
    return Sum(seen, run.unowned_s, failures)


def add(total: Sum, other: Sum) -> Sum:
    """Return the sum of both."""
    return Sum(total.seen + other.seen, total.unowned_s + other.unowned_s, total.failures | other.failures)


def lines(total: Sum) -> Iterator[str]:
    """Yield the lines of the report."""
    counts = ", ".join(f"{total.seen[word]:,} {word}" for word in (*WORDS, "jobs", "simulated s"))
    yield f"{counts}; {len(total.failures)} runs failed"
    if total.unowned_s:
        changing, whole = (sorted(times) for times in zip(*total.unowned_s, strict=True))
        yield (f"{len(changing):,} times a name had no owner: while pqctl ran and both had a leader for "
               f"{middle(changing):.2f} s (median) and {changing[-1]:.2f} s at most, altogether for "
               f"{middle(whole):.2f} s and {whole[-1]:.2f} s")


def middle(times: Sequence[float]) -> float:
    """Return the median of sorted times."""
    return times[len(times) // 2]


def sums(seeds: Iterable[int], rounds: int, jobs: int) -> Iterator[Sum]:
    """Yield the result of each run, as it comes."""
    if jobs == 1:
        yield from (one(seed, rounds) for seed in seeds)
        return
    with processes(jobs) as pool:
        try:
            for part in as_completed([pool.submit(one, seed, rounds) for seed in seeds]):
                yield part.result()
        finally:
            pool.shutdown(cancel_futures=True)
