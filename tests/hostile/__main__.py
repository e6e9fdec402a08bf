"""The hostile suite: attacks on clusters of real nodes, all on loopback, and one table of their outcomes.

    python -m tests.hostile                         # all of them, about eight minutes
    python -m tests.hostile --only entry-bytes      # these
    python -m tests.hostile --list

Ends with 0 only when all attacks were held off. What README.md tells of each needs root is left out otherwise.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from types import FrameType

import click
import msgspec

from tests.hostile import limits, network
from tests.hostile.attack import Attack
from tests.hostile.attacks import ATTACKS
from tests.hostile.runner import run
from tests.hostile.verdict import Outcome, table


@click.command()
@click.option("--only", multiple=True, metavar="NAME", help="These attacks.")
@click.option("--list", "listing", is_flag=True, help="Say what attacks there are, and do nothing.")
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write the outcomes there, too.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False),
              help="Leave the logs of attacks that were not held off there.")
def main(only: tuple[str, ...], listing: bool, file: Path | None, keep: Path | None) -> None:
    """Attack clusters of real nodes."""
    signal.signal(signal.SIGTERM, _terminate)
    network.enter()
    limits.raise_own()
    if listing:
        for attack in ATTACKS:
            lacking = attack.lacks()
            print(f"{attack.name:16} {attack.what}{f' ({lacking})' if lacking else ''}")
        return
    if unknown := set(only) - {attack.name for attack in ATTACKS}:
        raise click.UsageError(f"no attack is called {', '.join(sorted(unknown))}")
    outcomes: list[Outcome] = []
    try:
        for attack in ATTACKS:
            if not only or attack.name in only:
                outcomes.append(_run(attack, keep))
    finally:
        print(f"\n{table(outcomes)}\n")
        if file is not None:
            file.write_bytes(msgspec.json.format(msgspec.json.encode(outcomes)))
    made = [one for one in outcomes if not one.left_out]
    print(f"{len(made)} attacks, {sum(one.held for one in made)} held off, {len(outcomes) - len(made)} left out")
    sys.exit(0 if all(one.held for one in made) else 1)


def _run(attack: Attack, keep: Path | None) -> Outcome:
    begun = time.monotonic()
    outcome = run(attack, keep)
    state = "left out" if outcome.left_out else "held" if outcome.held else "NOT HELD"
    print(f"{state:8} {attack.name} ({time.monotonic() - begun:.0f} s)", flush=True)
    for line in (outcome.left_out, *outcome.reasons):
        if line:
            print(f"         {line}", flush=True)
    return outcome


def _terminate(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)      # as ^C does: everything is cleaned up on the way out


if __name__ == "__main__":
    main()
