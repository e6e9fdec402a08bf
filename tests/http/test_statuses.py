"""docs/HTTP.md lists every status that the program answers with, in their order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from sockpq_http.problems import errors
from sockpq_http.routes.table import ROUTES
from sockpq_http.server.openapi import PROBLEMS

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "integrations" / "http" / "src" / "sockpq_http"
MAKERS = {"Problem": 0, "answer": 1, "replay": 1}       # which of their arguments is a status


def listed() -> list[int]:
    """Return the statuses of the page, from the top to the bottom."""
    part = (ROOT / "docs/HTTP.md").read_text("utf-8").partition("## What a status means")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d{3}(?:, \d{3})*) \|", part, re.MULTILINE)
    return [int(word) for row in rows for word in row.split(", ")]


def made() -> Iterator[int]:
    """Yield the statuses that stand in calls of what makes an answer."""
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
                for argument in node.args[MAKERS[node.func.id]:][:1]:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, int):
                        yield argument.value


def test_every_status_of_an_answer_is_on_the_page_in_its_order() -> None:
    known = {200, *made(), *errors._PLAIN, *(status for _, status in errors._STATUSES), *map(int, PROBLEMS)}
    known |= {route.status for group in ROUTES.values() for route in group}
    assert {405, 500, 201} <= known         # it finds them
    assert listed() == sorted(known)
