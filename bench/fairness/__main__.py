"""Prints the tables of docs/FAIRNESS.md, or writes them and draws its pictures (`make bench-plots`)."""

from __future__ import annotations

from pathlib import Path

import click

from bench.fairness.tables import sections
from bench.reports.tables import replaced


@click.command()
@click.option("--into", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Write the tables into this file, between the lines <!-- latencies --> and <!-- /latencies -->, ..")
@click.option("--pictures", "folder", type=click.Path(file_okay=False, path_type=Path),
              help="Draw the pictures, as SVG, in this folder; needs matplotlib.")
def main(into: Path | None, folder: Path | None) -> None:
    """Simulate what FAIR was made for, and FIFO and PRIORITY for comparison."""
    found = sections()
    if into is None:
        for name, text in found.items():
            click.echo(f"## {name}\n\n{text}")
    else:
        try:
            into.write_text(replaced(into.read_text(), found))
        except ValueError as error:
            raise click.ClickException(f"{into}: {error}") from None
    if folder is not None:
        draw(folder)


def draw(folder: Path) -> None:
    """Draw all pictures. Raises ClickException without matplotlib."""
    try:
        import matplotlib as mpl

        from bench.fairness.pictures import PICTURES
        from bench.reports.pictures import STYLE
    except ImportError as error:
        raise click.ClickException(f"{error}; to draw, install it first: pip install -e '.[bench]'") from None
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        for name, picture in PICTURES.items():
            path = folder / f"{name}.svg"
            picture().savefig(path, bbox_inches="tight", metadata={"Date": None})
            click.echo(path)


if __name__ == "__main__":
    main()
