"""`make model`: all states of the long configurations, the mistakes, and simulated runs compared with the model.

    python -m tests.model                   # 20 minutes
    python -m tests.model --seconds 60      # at most so long for each configuration
    python -m tests.model --only "syncs *"  # these
    python -m tests.model --only "" --seeds 2000 --first 300    # only runs

Exit code 1: an invariant does not hold, a mistake breaks none, or nodes did what the model forbids.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatch

import click

from tests.model.comparison import compared_run
from tests.model.configurations import LONG, SHORT, Configuration
from tests.model.mistakes import MISTAKES, Mistake
from tests.model.mistakes_of_leases import MISTAKES_OF_LEASES
from tests.model.mistakes_of_losses import MISTAKES_OF_LOSSES
from tests.model.mistakes_of_members import MISTAKES_OF_MEMBERS
from tests.model.search import Outcome, search

ALL_MISTAKES = (*MISTAKES, *MISTAKES_OF_LOSSES, *MISTAKES_OF_MEMBERS, *MISTAKES_OF_LEASES)


def look(configuration: Configuration, seconds: float) -> bool:
    """Search all states of a configuration, for a limited time; returns whether the invariants hold."""
    outcome = search(configuration.rules, configuration.first, configuration.invariants, seconds=seconds)
    whole = "all states" if outcome.whole else "not all states"
    click.echo(f"{configuration.name}: {figures(outcome)}, {whole}")
    if outcome.broken:
        click.echo(f"    {outcome.broken} does not hold after:")
        for label in outcome.path:
            click.echo(f"        {' '.join(map(str, label))}")
    if configuration.states and outcome.whole and outcome.states != configuration.states:
        click.echo(f"    there were {configuration.states} states when they were last counted")
    return not outcome.broken


def look_for(mistake: Mistake) -> bool:
    """Look for the shortest history that shows a mistake; returns whether there is one."""
    outcome = search(mistake.rules(), mistake.start(), mistake.invariants)
    what = f"{outcome.broken} does not hold after {len(mistake.before)} + {len(outcome.path)} steps" if (
        outcome.broken) else "breaks nothing"
    click.echo(f"{mistake.name} ({mistake.stands_for}): {what}; {figures(outcome)}")
    return bool(outcome.broken)


def figures(outcome: Outcome) -> str:
    """Return the size of a search in words."""
    return f"{outcome.states:,} states, {outcome.steps:,} steps, depth {outcome.depth}, {outcome.seconds:.1f} s"


def compare(seeds: range) -> bool:
    """Compare what nodes do in simulated runs with the model; returns whether it allows all."""
    allowed, steps = True, 0
    for seed in seeds:
        count, found = compared_run(seed)
        steps += count
        if found:
            allowed = False
            click.echo(f"seed {seed}: {found}")
    click.echo(f"{len(seeds)} runs compared, {steps:,} steps of nodes")
    return allowed


@click.command()
@click.option("--seconds", default=150.0, help="Of processor time, for each configuration.  [default: 150]")
@click.option("--only", default=["*"], multiple=True, metavar="GLOB",
              help="Configurations and mistakes of these names.")
@click.option("--seeds", default=300, help="Runs to compare.  [default: 300]")
@click.option("--first", default=0, help="The seed of the first of them.  [default: 0]")
def main(seconds: float, only: tuple[str, ...], seeds: int, first: int) -> None:
    """Search all states of the model, and for the mistakes; compare simulated nodes with it."""
    good = [
        look(configuration, seconds) for configuration in (*SHORT, *LONG)
        if any(fnmatch(configuration.name, glob) for glob in only)
    ]
    good += [look_for(mistake) for mistake in ALL_MISTAKES if any(fnmatch(mistake.name, glob) for glob in only)]
    good.append(compare(range(first, first + seeds)))
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
