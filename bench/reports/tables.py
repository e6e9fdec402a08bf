"""Writes recorded benchmarks as tables in Markdown.

    python -m bench.reports.tables bench/results/*.jsonl [--into docs/BENCHMARKS.md]

Of several records of one program with the same options the last one is used. `--into` replaces the text between the
lines <!-- author --> and <!-- /author --> in the file, and the same for each other program that has records.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from bench.reports.recording import Record, columns, heading, read, told, written


@click.command()
@click.argument("recorded", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--into", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file with such places.")
def main(recorded: tuple[Path, ...], into: Path | None) -> None:
    """Print tables, or write them into a document."""
    try:
        sections = tables(read(recorded))
        if into is None:
            for program, text in sections.items():
                click.echo(f"## {program}\n\n{text}")
        else:
            into.write_text(replaced(into.read_text(), sections))
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def tables(records: list[Record]) -> dict[str, str]:
    """Return the text for each program: all its records with the conditions of their measurement."""
    sections: dict[str, str] = {}
    for record in sorted(records, key=lambda record: (record.program, record.at)):
        sections[record.program] = sections.get(record.program, "") + "\n".join(lines(record)) + "\n\n"
    return {program: text.rstrip("\n") + "\n" for program, text in sections.items()}


def lines(record: Record) -> Iterator[str]:
    """Yield the lines of one record."""
    machine = record.machine
    of_commit = f" (commit {machine['commit']})" if machine.get("commit") else ""
    yield f"{record.cluster}, sockpqd {record.version}{of_commit}, {record.at[:10]}, {machine['cores']} cores " \
          f"{machine['cpu']}, Linux {machine['kernel']}, Python {machine['python']}."
    yield "Options: " + ", ".join(f"{name} {_option(value)}" for name, value in record.options.items()) + "."
    yield ""
    names = columns(record.rows)
    yield "| " + " | ".join(heading(name) for name in names) + " |"
    yield "|" + "|".join("---" if number == 0 else "--:" for number in range(len(names))) + "|"
    for row in record.rows:
        yield "| " + " | ".join(written(row.get(name)) for name in names) + " |"
    if record.summary:
        yield ""
        yield told(record.summary)[:1].upper() + told(record.summary)[1:] + "."
    if record.problems:
        yield ""
        yield "Problems: " + ", ".join(f"{count} x {problem}" for problem, count in record.problems.items()) + "."


def replaced(document: str, sections: dict[str, str]) -> str:
    """Return the document with these sections replaced. Raises ValueError if it has no place for one."""
    for program, text in sections.items():
        begin, end = f"<!-- {program} -->\n", f"<!-- /{program} -->"
        before, begun, rest = document.partition(begin)
        _, ended, behind = rest.partition(end)
        if not begun or not ended:
            raise ValueError(f"there is no place <!-- {program} --> .. <!-- /{program} -->")
        document = before + begin + text + end + behind
    return document


def _option(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(_option, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    main()
