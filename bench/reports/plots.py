"""Draws plots of recorded benchmarks. Needs matplotlib: pip install -e '.[bench]'.

    python -m bench.reports.plots bench/results/*.jsonl --to docs/benchmarks

It draws one plot for each program that has records: author, depth, failover, fan, latency, tails. Of several records of
one program with the same options the last one is used; the same records give the same files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from bench.reports.recording import Record, read

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from bench.reports import pictures
except ImportError as error:
    sys.exit(f"{error}; to draw, install it first: pip install -e '.[bench]'")

PICTURES: dict[str, Callable[[list[Record]], Figure]] = {
    "author": pictures.author, "depth": pictures.depth, "failover": pictures.failover, "fan": pictures.fan,
    "latency": pictures.latency, "tails": pictures.tails,
}


@click.command()
@click.argument("recorded", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", "folder", required=True, type=click.Path(file_okay=False, path_type=Path), help="A folder.")
@click.option("--format", "kind", default="svg", show_default=True, type=click.Choice(["svg", "png"]))
def main(recorded: tuple[Path, ...], folder: Path, kind: str) -> None:
    """Draw the plots of the recorded figures."""
    try:
        records = read(recorded)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    folder.mkdir(parents=True, exist_ok=True)
    for program, draw in PICTURES.items():
        of_program = [record for record in records if record.program == program]
        if of_program:
            path = folder / f"{program}.{kind}"
            write(partial(draw, of_program), path)
            click.echo(path)


def write(draw: Callable[[], Figure], path: Path) -> None:
    """Draw in the style of all plots, into this file; the same figures make the same bytes."""
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    with mpl.rc_context(pictures.STYLE):
        draw().savefig(path, bbox_inches="tight", dpi=120, metadata=metadata)


if __name__ == "__main__":
    main()
