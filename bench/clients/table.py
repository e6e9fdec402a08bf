"""All libraries in turn, each with its own servers, as a table in Markdown with the durability of each.

    python -m bench.clients.table [LIBRARY ..] [--rounds 3] --record FILE --into docs/BENCHMARKS.md

Figures are appended to the record, and the table shows the medians of all that stand there. With `--rounds 0` nothing
is measured.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click

from bench.clients.drivers import DRIVERS
from bench.clients.measuring import ClientsCase, Figures, measure
from bench.clients.servers import DURABLE, ServersError, servers
from bench.reports.recording import surroundings
from bench.reports.tables import replaced

BLOCKING = ClientsCase(1, tasks=3000), ClientsCase(10, tasks=12_000)
PREFETCHING = ClientsCase(1, prefetch=100, tasks=20_000, producers=10)
IN_TASKS = ClientsCase(1, tasks=12_000, in_tasks=True), ClientsCase(1, prefetch=100, tasks=50_000, in_tasks=True)
CASES = {                       # greenstalk and Redis lists have nothing like prefetching
    "sockpq": (*BLOCKING, PREFETCHING, *IN_TASKS), "pika": (*BLOCKING, PREFETCHING), "greenstalk": BLOCKING,
    "redis": BLOCKING, "nats": (*BLOCKING, PREFETCHING),
}


@click.command(help=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
@click.argument("libraries", nargs=-1, type=click.Choice(sorted(DRIVERS)))
@click.option("--rounds", default=1, show_default=True, type=click.IntRange(0))
@click.option("--record", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Lines of JSON.")
@click.option("--into", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A file with <!-- clients --> and <!-- /clients -->.")
def main(libraries: tuple[str, ...], rounds: int, record: Path, into: Path | None) -> None:
    """Measure, and print the table or write it into a document."""
    try:
        for _ in range(rounds):
            for library in libraries or CASES:
                with servers(library) as address, record.open("a") as file:
                    for case in CASES[library]:
                        figures = measure(library, address, case)
                        file.write(json.dumps(figures) + "\n")
                        if figures["work"]["tasks"] != case.tasks:
                            raise ServersError(f"{library}: {figures['work']['tasks']} of {case.tasks} tasks came")
    except (ServersError, ImportError, FileNotFoundError) as error:
        sys.exit(f"{error}; bench/README.md says what the libraries need")
    measured = [json.loads(line) for line in record.read_text().splitlines()]
    text = "\n".join([*lines(measured), "", surroundings(), ""])
    if into is None:
        click.echo(text)
    else:
        into.write_text(replaced(into.read_text(), {"clients": text}))


def lines(measured: list[Figures]) -> Iterator[str]:
    """Return the lines of the table, of medians; the ratio compares the processor time with pika's."""
    found: dict[tuple[bool, int, int], dict[str, list[Figures]]] = defaultdict(lambda: defaultdict(list))
    for figures in measured:
        found[figures["asyncio"], figures["prefetch"], figures["processes"]][figures["library"]].append(figures)
    yield "| processes, prefetch | library | put/s | CPU µs | work/s | CPU µs | work to pika's |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for (in_tasks, prefetch, processes), of_libraries in sorted(found.items()):
        case = f"{processes}, {prefetch}" + (", 100 asyncio tasks" if in_tasks else "")
        pika = of_libraries.get("pika")
        for library in sorted(of_libraries, key=list(CASES).index):
            runs = of_libraries[library]
            ratio = _median(runs, "work", "per_second") / _median(pika, "work", "per_second") if pika else None
            yield (f"| {case} | {library} | {_median(runs, 'put', 'per_second'):,.0f} "
                   f"| {_median(runs, 'put', 'cpu_us'):,.0f} | {_median(runs, 'work', 'per_second'):,.0f} "
                   f"| {_median(runs, 'work', 'cpu_us'):,.0f} | {'' if ratio is None else f'{ratio:.2f}'} |")
    yield ""
    for library in CASES:
        if any(library in of_libraries for of_libraries in found.values()):
            yield f"* {library}: {DURABLE[library]}."


def _median(runs: list[Figures], step: str, figure: str) -> float:
    return float(statistics.median(run[step][figure] for run in runs))


if __name__ == "__main__":
    main()
