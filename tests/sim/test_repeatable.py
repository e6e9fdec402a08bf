"""A seed is a run: the same in another process, whatever its hashes are and whatever ran before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.sim import campaign

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from tests.sim import campaign; print(*campaign.digests(map(int, sys.argv[1:])))"
SEEDS = (3, 11, 12, 20, 21, 42)
SHARED = range(5)           # by two processes: two parts of the same size, and a smaller one


def test_a_seed_repeats_itself_in_another_process_and_after_others() -> None:
    """The other process has other hashes and runs the seeds in the other order: each one comes after others."""
    other_hashes = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, SEEDS)], env={**os.environ, "PYTHONHASHSEED": other_hashes},
        cwd=ROOT, capture_output=True, text=True, check=True,
    )
    there = ended.stdout.split()
    assert len(set(there)) == len(SEEDS)
    assert list(campaign.digests(reversed(SEEDS)))[::-1] == there


def test_processes_that_share_the_seeds_find_the_same() -> None:
    *_, alone = campaign.spread(SHARED, 1)
    *_, shared = campaign.spread(SHARED, 2)
    assert (shared.runs, shared.steps, shared.acknowledged) == (alone.runs, alone.steps, alone.acknowledged)
    assert (shared.faults, shared.seen) == (alone.faults, alone.seen)
