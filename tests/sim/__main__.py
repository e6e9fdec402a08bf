"""`make sim SEEDS=1000 FIRST=0 JOBS=1`: run seeds and report; exit code 1 when a promise was broken.

An interrupted campaign reports its results up to then.

A change that must not alter any behaviour, of names or of the places of files, can be checked against digests of runs:
write them before it (`--digests FILE`), and compare after it (`--compare FILE`). They contain no words of the program,
only numbers and the bytes of its formats.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.sim import campaign
from tests.sim.world.plan import SLOW_GROUPS

PROGRESS_S = 10.0
TRACES = 3                      # the number of failed runs that are printed in full


def main(arguments: Sequence[str] | None = None) -> int:
    """Return exit code 0 when no promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.sim", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share them")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--digests", type=Path, metavar="FILE",
        help='write a line "seed digest" for each seed, as soon as it has run, instead of the report',
    )
    which.add_argument(
        "--compare", type=Path, metavar="FILE",
        help="stop at the first seed whose digest is not the one in FILE, name it, and exit with code 1",
    )
    which.add_argument("--paged", action="store_true", help="in each run jobs leave memory, not in half of them")
    which.add_argument("--grouped", action="store_true", help="all clients are of groups, for half a simulated minute")
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    seeds = range(asked.first, asked.first + asked.seeds)
    if asked.digests is not None:
        return _write(asked.digests, seeds, asked.jobs)
    if asked.compare is not None:
        return _compare(asked.compare, seeds, asked.jobs)
    if asked.grouped:
        return _report(seeds, asked.jobs, SLOW_GROUPS, " GROUPED=1")
    return _report(seeds, asked.jobs, {"paged": True} if asked.paged else {}, " PAGED=1" if asked.paged else "")


def _write(path: Path, seeds: range, jobs: int) -> int:
    with path.open("w", encoding="ascii") as file:
        for seed, digest in zip(seeds, campaign.digests(seeds, jobs), strict=True):
            print(seed, digest, file=file, flush=True)
    return 0


def _compare(path: Path, seeds: range, jobs: int) -> int:
    lines = path.read_text(encoding="ascii").splitlines()
    known = {int(seed): digest for seed, digest in map(str.split, lines)}
    for seed in seeds:
        if seed not in known:
            print(f"{path} has no digest of seed {seed}")
            return 1
    for seed, digest in zip(seeds, campaign.digests(seeds, jobs), strict=True):
        if digest != known[seed]:
            print(f"seed {seed} differs: its digest is {digest}, and {known[seed]} in {path}")
            return 1
    print(f"{len(seeds)} digests, of the {len(known)} in {path}, are the same")
    return 0


def _report(seeds: range, jobs: int, fixed: Mapping[str, Any], options: str) -> int:
    report, whole = campaign.Report(), False
    told_at, told = time.monotonic(), 0
    try:
        for report in campaign.spread(seeds, jobs, **fixed):
            for seed, what in list(report.failures.items())[told:]:
                told += 1
                print(f"seed {seed}: {what if told <= TRACES else what.splitlines()[0]}", flush=True)
            if time.monotonic() - told_at > PROGRESS_S:
                told_at = time.monotonic()
                print(
                    f"{report.runs} runs, {len(report.failures)} failed, {report.speed():.1f} in a second of one core",
                    file=sys.stderr, flush=True,
                )
        whole = True
    except KeyboardInterrupt:
        print(f"interrupted after {report.runs} of {len(seeds)} runs")
    for line in report.lines(options):
        print(line)
    return 0 if whole and not report.failures and report.void < report.runs else 1


if __name__ == "__main__":
    sys.exit(main())
