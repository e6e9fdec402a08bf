"""`make sim SEEDS=1000 FIRST=0`: run seeds, tell what happened; exit code 1 when a promise was broken."""

from __future__ import annotations

import argparse
import sys
import time

from tests.sim import campaign

PROGRESS_S = 10.0


def main() -> int:
    """Exit code 0 when all is well."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    asked = parser.parse_args()
    report = campaign.Report()
    told = time.monotonic()
    for report in campaign.run(range(asked.first, asked.first + asked.seeds)):
        if time.monotonic() - told > PROGRESS_S:
            told = time.monotonic()
            print(f"{report.runs} runs, {len(report.failures)} failed", file=sys.stderr, flush=True)
    for what in list(report.failures.values())[:3]:
        print(what, end="\n\n")
    for line in report.lines():
        print(line)
    print(f"{report.runs / time.process_time():.1f} runs in a second of one core")
    return 1 if report.failures or report.void == report.runs else 0


if __name__ == "__main__":
    sys.exit(main())
