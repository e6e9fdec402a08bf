"""`make moves ROUNDS=1000 FIRST=0 JOBS=1`: `pqctl map move` in two simulated clusters, ten rounds for each seed.

In each round pqctl is killed at any point and started again until the move is done, and the leaders of both clusters
are killed, while programs put and take jobs. Exit code 1 when a promise was broken (tests/sim/clusters/moves.py has
them). An interrupted campaign reports its results up to then.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Sequence

from tests.sim.clusters.moves_campaign import ROUNDS_EACH, Sum, add, lines, sums


def main(arguments: Sequence[str] | None = None) -> int:
    """Return exit code 0 when no promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.sim.clusters", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000, help="how many altogether")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share them")
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    total = Sum(Counter(), [], {})
    rounds = min(asked.rounds, ROUNDS_EACH)
    seeds = range(asked.first, asked.first + max(1, asked.rounds // ROUNDS_EACH))
    try:
        for found in sums(seeds, rounds, asked.jobs):
            total = add(total, found)
            for seed, failure in found.failures.items():
                print(f"seed {seed}: {failure}\nrepeat with: make moves ROUNDS={rounds} FIRST={seed}", flush=True)
            print(next(lines(total)), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    for line in lines(total):
        print(line)
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
