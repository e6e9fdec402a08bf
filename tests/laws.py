"""`python -m tests.laws`: a campaign of all tests of hypothesis, with many other examples than the gate has.

    python -m tests.laws --minutes 60               # rounds with ten times the examples, until the time is up
    python -m tests.laws --times 100 tests/core     # the laws of core alone, a hundred times their examples
    python -m tests.laws --seed 4711 tests/core     # the round of that seed again

Each round has a seed, which is printed. The first round that fails ends the campaign, with exit code 1; hypothesis says
how to repeat what it has found, and keeps it in .hypothesis: the next campaign begins with it.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]


@click.command()
@click.option("--minutes", type=float, default=0.0, help="Begin rounds for so long.  [default: one round]")
@click.option("--times", type=float, default=10.0, help="So many times the examples of the gate.  [default: 10]")
@click.option("--jobs", type=int, default=1, help="Processes of a round.  [default: 1]")
@click.option("--seed", type=int, help="Of the only round.")
@click.argument("tests", nargs=-1)
def main(minutes: float, times: float, jobs: int, seed: int | None, tests: tuple[str, ...]) -> None:
    """Look for what the examples of the gate do not show, in all TESTS or these."""
    until = time.monotonic() + 60 * minutes
    while True:
        of_round = random.SystemRandom().randrange(2**31) if seed is None else seed
        print(f"seed {of_round}", flush=True)
        code = subprocess.run(command(of_round, times, jobs, tests), cwd=ROOT, check=False).returncode
        if code or seed is not None or time.monotonic() >= until:
            sys.exit(code)


def command(seed: int, times: float, jobs: int, tests: Sequence[str] = ()) -> list[str]:
    """Return what runs one round."""
    many = ["-n", str(jobs)] if jobs > 1 else []
    return [
        sys.executable, "-m", "pytest", "-q", "-m", "not processes", "--timeout=0", f"--laws={times}",
        f"--hypothesis-seed={seed}", *many, *(tests or ["tests"]),
    ]


if __name__ == "__main__":
    main()
