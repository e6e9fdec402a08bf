"""Runs one of the named loads, and prints and records its figures.

    python -m bench.load NAME [--servers HOST:PORT,...] [--record FILE] [OPTION...]

Each load has a file here, which says what it does and measures.
"""

from __future__ import annotations

import click

from bench.load.author import author
from bench.load.depth import depth
from bench.load.failover import failover
from bench.load.find import find
from bench.load.handover import fan, handover
from bench.load.latency import latency
from bench.load.quiet import quiet
from bench.load.rates import RATES
from bench.load.tails import tails

main = click.Group(
    "load", [*RATES, author, fan, handover, depth, latency, quiet, tails, find, failover],
    help="Put a named load on a cluster, and measure it.",
)


if __name__ == "__main__":
    main()
