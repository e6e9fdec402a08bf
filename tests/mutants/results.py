"""The known mutants: results of all sittings, the survivors that are equivalent, and a report of both."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

Name = tuple[str, str]          # module, key of the mutant
SAID_MAX = 100                  # characters: which test, not how it failed; the file is in the repository
CAUGHT = ("tests", "seeds", "timeout")
COLUMNS = (*CAUGHT, "equivalent", "SURVIVED", "not run")


@dataclass(frozen=True)
class Result:
    """The reason why a mutant was noticed: tests, seeds, timeout or nothing; `said`: the first line about it."""

    by: str
    said: str


def read_results(path: Path) -> dict[Name, Result]:
    """The newest result of each mutant. A sitting may have been interrupted in the middle of its last line."""
    found: dict[Name, Result] = {}
    if path.exists():
        for line in path.read_text("utf-8").split("\n")[:-1]:
            module, key, by, said = json.loads(line)
            found[module, key] = Result(by, said)
    return found


def append_result(path: Path, name: Name, result: Result) -> None:
    """Add a result to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps([*name, result.by, result.said.partition(" - ")[0][:SAID_MAX]]) + "\n")


def read_survivors(path: Path) -> dict[Name, str]:
    """The reasons why these mutants change nothing that matters: a table for each module, keys and reasons in it."""
    tables = tomllib.loads(path.read_text("utf-8"))
    return {(module, key): reason for module, reasons in tables.items() for key, reason in reasons.items()}


def report(
    mutants: Mapping[str, Iterable[str]], results: Mapping[Name, Result], survivors: Mapping[Name, str],
) -> tuple[list[str], bool]:
    """Lines for a reader, and whether all that was run is caught or equivalent. `mutants`: the keys by module."""
    lines = [f"{'':36} mutants" + "".join(f"{column:>11}" for column in COLUMNS)]
    counts: dict[str, Counter[str]] = {}
    known = {(module, key) for module, keys in mutants.items() for key in keys}
    for module, keys in mutants.items():
        counts[module] = Counter(_verdict((module, key), results, survivors) for key in keys)
    counts["total"] = sum(counts.values(), Counter())
    for module, count in counts.items():
        lines.append(f"{module:36} {count.total():7}" + "".join(f"{count[column]:11}" for column in COLUMNS))
    wrong = [*_survived(sorted(known), results, survivors), *_outdated(mutants, known, results, survivors)]
    return lines + wrong, not wrong


def _verdict(name: Name, results: Mapping[Name, Result], survivors: Mapping[Name, str]) -> str:
    if name not in results:
        return "not run"
    if results[name].by in CAUGHT:
        return results[name].by
    return "equivalent" if name in survivors else "SURVIVED"


def _survived(
    known: Iterable[Name], results: Mapping[Name, Result], survivors: Mapping[Name, str],
) -> Iterator[str]:
    """In the form of the list, for the reason to be added."""
    for module, key in known:
        if _verdict((module, key), results, survivors) == "SURVIVED":
            yield f"SURVIVED in {module}: {json.dumps(key, ensure_ascii=False)}"


def _outdated(
    mutants: Mapping[str, Iterable[str]], known: set[Name], results: Mapping[Name, Result],
    survivors: Mapping[Name, str],
) -> Iterator[str]:
    for name in survivors:
        module, key = name
        if module in mutants and name not in known:
            yield f"OUTDATED in {module}, there is no such mutant: {key}"
        elif name in known and name in results and results[name].by in CAUGHT:
            yield f"OUTDATED in {module}, caught by {results[name].by}, {results[name].said}: {key}"
