"""The tables of DIFFERENCES.md: tests of others that fail here, as they expect what Amazon does not do."""

from __future__ import annotations

import re
from pathlib import Path

TABLES = Path(__file__).parent / "DIFFERENCES.md"
SUITES = ("moto", "elasticmq")
RACES = frozenset({"should run and cancel message move task"})          # DIFFERENCES.md says which, in its last lines


def rows(suite: str) -> dict[str, list[str]]:
    """Return the tests of a suite ("moto", "elasticmq") that fail.

    With each: what it expects, what Amazon and we answer, and the source.
    """
    text = TABLES.read_text("utf-8")
    part = text.partition(f"\n## {suite}\n")[2].partition("\n## ")[0]
    found: dict[str, list[str]] = {}
    for line in part.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and cells[0].startswith("`"):
            for name in re.findall(r"`([^`]+)`", cells[0]):
                found[name] = cells[1:]
    return found
