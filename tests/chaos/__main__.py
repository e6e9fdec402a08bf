"""Campaigns: scenarios in a random order with random lengths, for so many minutes, or each of them so many times.

    python -m tests.chaos --minutes 60              # rotating; the seed is printed and can be given again
    python -m tests.chaos --times 20                # each scenario 20 times
    python -m tests.chaos --only "leader killed" --times 5

Histories and logs of runs with violations are kept in ./chaos-failed. The table at the end goes into docs/CHAOS.md.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import click
import msgspec

from tests.chaos.all_scenarios import ALL
from tests.chaos.machines import clocks, disks
from tests.chaos.runner import Result, run, table
from tests.chaos.scenarios import Scenario

KEEP = Path("chaos-failed")


@click.command()
@click.option("--minutes", type=float, help="Rotate for so long.")
@click.option("--times", type=int, default=1, help="Or run each scenario so many times.  [default: 1]")
@click.option("--only", multiple=True, help="These scenarios.")
@click.option("--seed", type=int, help="Of the order and the lengths.")
def main(minutes: float | None, times: int, only: tuple[str, ...], seed: int | None) -> None:
    """Let things break for a while."""
    seed = random.SystemRandom().randrange(2**31) if seed is None else seed
    chance = random.Random(seed)
    chosen = [scenario for scenario in ALL if _possible(scenario) and (not only or scenario.name in only)]
    if not chosen:
        raise click.UsageError("no scenario is called so: " + ", ".join(scenario.name for scenario in ALL))
    print(f"seed {seed}, {len(chosen)} scenarios", flush=True)
    until = time.monotonic() + 60 * minutes if minutes else None
    results: list[Result] = []
    round_ = 0
    while (time.monotonic() < until) if until else round_ < times:
        round_ += 1
        for scenario in chance.sample(chosen, len(chosen)) if until else chosen:
            if until and time.monotonic() >= until:
                break
            results.append(_run(_varied(scenario, chance) if until else scenario, chance.randrange(2**31)))
    failed = [result for result in results if result.violations]
    void = [result for result in results if result.void and not result.violations]
    print(table(results, {scenario.name: scenario.goal_s for scenario in ALL}))
    print(f"{len(results)} runs, {len(void)} void, {len(failed)} failed, "
          f"{sum(result.commands for result in results):,} commands recorded")
    sys.exit(1 if failed else 0)


def _run(scenario: Scenario, seed: int) -> Result:
    result = run(scenario, seed, KEEP)
    state = "FAILED" if result.violations else "void" if result.void else "ok"
    print(f"{state:6} {scenario.name}, seed {seed}, {scenario.lasts_s:.1f} s: gap {result.gap_s:.2f} s, "
          f"{result.commands} commands, {result.rate:.0f}/s before, stall {result.stall_s:.2f} s", flush=True)
    for line in (result.report, result.void, *result.violations):
        if line:
            print(f"       {line}", flush=True)
    return result


def _varied(scenario: Scenario, chance: random.Random) -> Scenario:
    """Another length of the fault: what takes hold at its edges should do so at many of them."""
    return msgspec.structs.replace(scenario, lasts_s=scenario.lasts_s * chance.uniform(0.3, 3))


def _possible(scenario: Scenario) -> bool:
    return not (scenario.fake_clocks and clocks.library() is None) and (
        scenario.disk_mb is None or disks.can_mount())


if __name__ == "__main__":
    main()
