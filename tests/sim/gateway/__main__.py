"""`make sim-pulses SEEDS=500 FIRST=0 JOBS=1`: pulses in simulated clusters whose leaders fail; exit code 1 when the
promise about them was broken. A run is `--seconds` of simulated time with `--failovers` changes of leader.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence

from tests.sim.gateway import campaign

PROGRESS_S = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Return exit code 0 when no promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.gateway", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--seconds", type=float, default=120.0, help="of each run")
    parser.add_argument("--failovers", type=int, default=5, help="in each run")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share them")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    report, told_at, told = campaign.GatewayReport(), time.monotonic(), set[int]()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    try:
        for report in campaign.spread(seeds, chosen.jobs, seconds=chosen.seconds, failovers=chosen.failovers):
            for seed in report.failures.keys() - told:
                told.add(seed)
                print(f"seed {seed}: {report.failures[seed]}", flush=True)
            if time.monotonic() - told_at > PROGRESS_S:
                told_at = time.monotonic()
                print(next(report.lines()), file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted")
    for line in report.lines():
        print(line)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
