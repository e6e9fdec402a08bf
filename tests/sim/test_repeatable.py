"""A seed is a run: the same in another process, whatever its hashes are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim import campaign

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from tests.sim import campaign; print(*campaign.digests(map(int, sys.argv[1:])))"
SEEDS = (3, 11, 12, 20, 21, 42)


def digests(hash_seed: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    arguments = [sys.executable, "-c", PROGRAM, *map(str, SEEDS)]
    ended = subprocess.run(arguments, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    return ended.stdout.split()


def test_a_seed_repeats_itself_in_another_process() -> None:
    first = digests("1")
    assert len(set(first)) == len(SEEDS)
    assert digests("2") == first
    assert list(campaign.digests(SEEDS)) == first


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_seed_repeats_itself_after_others(seed: int) -> None:
    alone = list(campaign.digests([seed]))
    assert list(campaign.digests([seed + 1, seed]))[1:] == alone


def test_processes_that_share_the_seeds_find_the_same() -> None:
    seeds = range(9)
    *_, alone = campaign.spread(seeds, 1)
    *_, shared = campaign.spread(seeds, 2)
    assert (shared.runs, shared.steps, shared.acknowledged) == (alone.runs, alone.steps, alone.acknowledged)
    assert (shared.faults, shared.seen) == (alone.faults, alone.seen)
