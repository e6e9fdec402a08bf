"""`make sim SEEDS=1000 FIRST=0 JOBS=1`: run seeds, tell what happened; exit code 1 when a promise was broken.

Whoever interrupts a campaign is told what it amounted to until then.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time

from tests.sim import campaign

PROGRESS_S = 10.0
TRACES = 3                      # so many failed runs are told in full


def main() -> int:
    """Exit code 0 when all is well."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share them")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    report, whole = campaign.Report(), False
    told_at, told = time.monotonic(), 0
    try:
        for report in campaign.spread(range(asked.first, asked.first + asked.seeds), asked.jobs):
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
        print(f"interrupted after {report.runs} of {asked.seeds} runs")
    for line in report.lines():
        print(line)
    return 0 if whole and not report.failures and report.void < report.runs else 1


if __name__ == "__main__":
    sys.exit(main())
