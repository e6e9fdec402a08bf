"""Campaigns: scenarios in a random order with random lengths, each for so many minutes, or each so many times.

    python -m tests.chaos --minutes 60                              # rotating; the seed is printed and can be given
    python -m tests.chaos --only "torture: *" --each-minutes 5      # until the sums of each have reached that
    python -m tests.chaos --only "leader killed" --times 20         # as they are in the table, 20 times
    python -m tests.chaos --only "torture: one way" --again 4711    # a run with the length and variants of this seed

A run passed, failed, or is void: it proves nothing, and its reason is printed. Histories and logs of those that did not
pass are kept in ./chaos-failed. Campaigns for minutes draw a length for each run, and variants for those that are to
have some (variants.py), by the seed that they print with it. The exit code is 1 when a run failed, 2 when none failed
and one was void. The table at the end goes into docs/CHAOS.md.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import click

from devcluster.node import LocalNode
from tests.chaos.all_scenarios import ALL, lacks
from tests.chaos.runner import Result, run, table
from tests.chaos.scenarios import Scenario
from tests.chaos.sums import Sums
from tests.chaos.variants import drawn
from tests.forkserver import Forkserver

KEEP = Path("chaos-failed")
SEEDS = 2**31
VOID_MAX = 4            # runs of a scenario in one sitting: another one has its turn then


@click.command()
@click.option("--minutes", type=float, help="Rotate for so long; with --each-minutes: stop then at the latest.")
@click.option("--each-minutes", type=float, help="Play each until its faults were there for so long, summed over runs.")
@click.option("--times", type=int, default=1, help="Or run each scenario so many times.  [default: 1]")
@click.option("--only", multiple=True, help="Those with these names, in which * stands for anything.")
@click.option("--seed", type=int, help="Of the order and of the seeds of the runs.")
@click.option("--again", type=int, help="Repeat a run: its seed.")
@click.option("--sums", type=Path, default=Path("chaos-sums.json"), show_default=True,
              help="Where --each-minutes keeps the sums.")
@click.option("--fork", is_flag=True, help="Nodes begin as forks, which is quicker than to execute them.")
def main(
    minutes: float | None, each_minutes: float | None, times: int, only: tuple[str, ...], seed: int | None,
    again: int | None, sums: Path, fork: bool,
) -> None:
    """Run a campaign of faults."""
    seed = random.SystemRandom().randrange(SEEDS) if seed is None else seed
    named = [scenario for scenario in ALL if not only or any(fnmatchcase(scenario.name, name) for name in only)]
    for scenario in named:
        if lacking := lacks(scenario):
            print(f"not played: {scenario.name}: {lacking}")
    chosen = [scenario for scenario in named if not lacks(scenario)]
    if not chosen:
        raise click.UsageError("no scenario is called so: " + ", ".join(scenario.name for scenario in ALL))
    print(f"seed {seed}, {len(chosen)} scenarios", flush=True)
    until = time.monotonic() + 60 * minutes if minutes else None
    counted = Sums(sums) if each_minutes else None
    chance = random.Random(seed)
    if counted is not None and each_minutes:
        runs = _each(chosen, counted, 60 * each_minutes, until, chance)
    elif until:
        runs = _rotating(chosen, until, chance)
    elif again is not None:
        runs = ((drawn(scenario, again), again) for scenario in chosen)
    else:
        runs = ((scenario, chance.randrange(SEEDS)) for _ in range(times) for scenario in chosen)
    forks = Forkserver() if fork else None
    if forks is not None:
        LocalNode.launch = staticmethod(forks.launch)
    results: list[Result] = []
    for scenario, number in runs:
        results.append(_run(scenario, number))
        if counted is not None:
            counted.add(results[-1])
    if forks is not None:
        forks.close()
    print(table(results, {scenario.name: scenario.goal_s for scenario in ALL}))
    if counted is not None:
        print(counted.table())
    sys.exit(_summary(results))


def _rotating(chosen: list[Scenario], until: float, chance: random.Random) -> Iterator[tuple[Scenario, int]]:
    """Run all scenarios repeatedly, in a new order each time."""
    while True:
        for scenario in chance.sample(chosen, len(chosen)):
            if time.monotonic() >= until:
                return
            seed = chance.randrange(SEEDS)
            yield drawn(scenario, seed), seed


def _each(
    chosen: list[Scenario], sums: Sums, seconds: float, until: float | None, chance: random.Random,
) -> Iterator[tuple[Scenario, int]]:
    """Run the scenario that was run least, until each has had its time or was void too often."""
    voids = {scenario.name: sums.voids(scenario.name) for scenario in chosen}
    while left := [scenario for scenario in chosen if sums.seconds(scenario.name) < seconds
                   and sums.voids(scenario.name) < voids[scenario.name] + VOID_MAX]:
        if until is not None and time.monotonic() >= until:
            return
        seed = chance.randrange(SEEDS)
        yield drawn(min(left, key=lambda scenario: sums.seconds(scenario.name)), seed), seed


def _run(scenario: Scenario, seed: int) -> Result:
    result = run(scenario, seed, KEEP)
    print(f"{_state(result):6} {scenario.name}, seed {seed}{''.join(f', {word}' for word in scenario.variants)}, "
          f"{scenario.lasts_s:.1f} s: gap {result.gap_s:.2f} s, {result.commands} commands, "
          f"{result.rate:.0f}/s before, stall {result.stall_s:.2f} s", flush=True)
    for line in (result.report, result.void and f"void: {result.void}", *result.violations):
        if line:
            print(f"       {line}", flush=True)
    return result


def _state(result: Result) -> str:
    """Return the verdict in one word. A violation counts even if the rest of the history proves nothing."""
    return "FAILED" if result.violations else "void" if result.void else "passed"


def _summary(results: list[Result]) -> int:
    """Print how many runs ended in each state, and return the exit code."""
    states = [_state(result) for result in results]
    print(f"{len(results)} runs: {states.count('passed')} passed, {states.count('FAILED')} failed, "
          f"{states.count('void')} void; {sum(result.commands for result in results):,} commands recorded")
    return 1 if "FAILED" in states else 2 if "void" in states else 0


if __name__ == "__main__":
    main()
