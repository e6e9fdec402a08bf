"""`make model`: all states of the long configurations, and the mistakes.

    python -m tests.model                   # 20 minutes
    python -m tests.model --seconds 60      # at most so long for each configuration
    python -m tests.model --only "syncs *"  # these

Exit code 1: an invariant does not hold, or a mistake breaks none.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatch

import click

from tests.model.configurations import LONG, SHORT, Configuration
from tests.model.mistakes import MISTAKES, Mistake
from tests.model.search import Outcome, search


def look(configuration: Configuration, seconds: float) -> bool:
    """Look at all states of a configuration, for a time; returns whether the invariants hold."""
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


@click.command()
@click.option("--seconds", default=600.0, help="Of processor time, for each configuration.  [default: 600]")
@click.option("--only", default=["*"], multiple=True, metavar="GLOB",
              help="Configurations and mistakes of these names.")
def main(seconds: float, only: tuple[str, ...]) -> None:
    """Look at all states of the model, and for the mistakes."""
    good = [
        look(configuration, seconds) for configuration in (*SHORT, *LONG)
        if any(fnmatch(configuration.name, glob) for glob in only)
    ]
    good += [look_for(mistake) for mistake in MISTAKES if any(fnmatch(mistake.name, glob) for glob in only)]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
