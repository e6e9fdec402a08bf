"""The rate and the cost of turns of a pulse, and the cost of pulses for other clients.

    python -m bench.turns [rate] [together] [beside] [entries] [shared] [--clients 1000] [--seconds 12]

A local cluster of three nodes, which shares the machine with the clients. `rate`: turns a second, and the processor
time of each. `together`: how close together the turns of one period are. `beside`: the time of commands for a queue
while another one with a rate is flooded. `entries`: what a thousand slow pulses write into the log. `shared`: what a
limited API refuses to twenty clients of a pulse, and to a program that takes no turns. All are measured, unless some
are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click

from bench.turns import measures
from bench.turns.shared_api import shared
from devcluster.cluster import LocalCluster

PARTS = ("rate", "together", "beside", "entries", "shared")


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option("--clients", default=1000, show_default=True, type=click.IntRange(1, 10_000), help="Of `rate`.")
@click.option("--seconds", default=12.0, show_default=True, type=click.FloatRange(1, 3600), help="Of each part.")
def main(parts: tuple[str, ...], clients: int, seconds: float) -> None:
    """Measure turns of pulses under load."""
    measured: dict[str, Callable[[LocalCluster], Iterator[str]]] = {
        "rate": lambda cluster: measures.rate(cluster, clients, seconds),
        "together": lambda cluster: measures.together(cluster, seconds),
        "beside": lambda cluster: measures.beside(cluster, 2 * seconds),
        "entries": lambda cluster: measures.entries(cluster, max(seconds, 2.0 * measures.PER_S)),
        "shared": lambda cluster: shared(cluster, seconds),
    }
    with LocalCluster(3) as cluster:
        cluster.wait_until_level()
        for part in parts or PARTS:
            for line in measured[part](cluster):
                print(f"{part}: {line}", flush=True)


if __name__ == "__main__":
    main()
