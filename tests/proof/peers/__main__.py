"""Lets faults befall RabbitMQ, NATS or sockpqd for some minutes, and records the outcome of each job. Needs root."""

from __future__ import annotations

import datetime
import logging
import os
import random
import sys
import time
from pathlib import Path

import click

from tests.proof.network import OWN, alone
from tests.proof.peers.episode import play
from tests.proof.peers.faults import BIT_FLIP
from tests.proof.peers.results import Run, note
from tests.proof.peers.system import System
from tests.proof.place import machine, memory

SEEDS = 2**31
EPISODE_S = 90.0            # of faults
SYSTEMS = "rabbitmq", "nats", "sockpqd"


def system_of(word: str) -> System:
    """Return the system with this name; its client library is imported only then."""
    if word == "rabbitmq":
        from tests.proof.peers.rabbitmq import RabbitMQ
        return RabbitMQ()
    if word == "nats":
        from tests.proof.peers.nats import Nats
        return Nats()
    from tests.proof.peers.sockpqd import Sockpqd
    return Sockpqd()


@click.command()
@click.argument("name", type=click.Choice(SYSTEMS))
@click.option("--minutes", type=float, default=10.0, show_default=True)
@click.option("--seed", type=int, help="Of the seeds of all episodes; drawn and printed when left out.")
@click.option("--again", type=int, help="Play one episode only: its seed.")
@click.option("--into", type=Path, help="The folder that gets a row; none is written without it.")
@click.option("--keep", type=Path, default=Path("proof-failed"), show_default=True,
              help="Where logs are left of episodes that prove nothing.")
def main(name: str, minutes: float, seed: int | None, again: int | None, into: Path | None, keep: Path) -> None:
    """Let faults befall a system for a while."""
    if os.geteuid() != 0:
        raise click.UsageError("root is needed: for network namespaces and disks")
    if not alone():
        os.execvp(OWN[0], [*OWN, sys.executable, "-m", "tests.proof.peers", *sys.argv[1:]])
    for library in ("sockpq", "nats", "amqp"):
        logging.getLogger(library).setLevel(logging.CRITICAL)       # that no server answers is no news here
    system = system_of(name)
    place = memory(system.place)
    seed = random.SystemRandom().randrange(SEEDS) if seed is None else seed
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    run = Run(now, f"{system.name} {system.version()}", machine(), seed, minutes)
    print(f"{run.system}, seed {seed}", flush=True)
    chance, end, number = random.Random(seed), time.monotonic() + 60 * minutes, 0
    while not run.episodes or (again is None and time.monotonic() < end):
        number += 1
        folder = place / f"episode-{number}"
        folder.mkdir()
        episode = play(
            system, number, chance.randrange(SEEDS) if again is None else again, EPISODE_S, folder, keep)
        run.episodes.append(episode)
        for strike in episode.strikes:
            whole = f"whole after {strike.whole_after_s} s" if strike.whole_after_s is not None else (
                "not waited for" if strike.kind == BIT_FLIP else "not whole in time")
            print(f"    {strike.began_s:6.1f} s, {strike.lasted_s:5.1f} s: {strike.kind}: {strike.evidence}; {whole}")
        print(f"episode {number}, seed {episode.seed}: {episode.void or 'drained'}: {episode.confirmed:,} confirmed, "
              f"{episode.refused:,} refused, {episode.unknown:,} unknown, {episode.deliveries:,} deliveries, "
              f"{len(episode.lost)} lost, {len(episode.invented)} invented, {len(episode.doubled)} doubled, "
              f"gap {episode.gap_s} s", flush=True)
        if into is not None:
            note(into, run)


if __name__ == "__main__":
    main()
