"""`python -m tests.mutants.seeds 60`: that many seeds of the simulation, ending with code 1 at the first red one."""

from __future__ import annotations

import sys

from tests.sim import campaign

VOID_SHARE = 10             # one run of so many may be void, as in tests/sim/test_seeds.py


def main(seeds: int) -> int:
    """Exit code 0 when all are green."""
    report = campaign.Report()
    for report in campaign.run(range(seeds)):
        for seed, what in report.failures.items():
            print(f"FAILED seed {seed}: {what.splitlines()[0]}")
            return 1
    if report.void > report.runs / VOID_SHARE:
        print(f"FAILED {report.void} of {report.runs} runs are void")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
