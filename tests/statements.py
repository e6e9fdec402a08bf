"""Statements of a module, which tests of style look at: walking through all expressions takes ten times as long."""

from __future__ import annotations

import ast
from collections.abc import Iterator

PARTS = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the node itself and all statements in it, also those in functions and classes, in the order of the file."""
    yield node
    for name in PARTS:
        for part in getattr(node, name, ()):
            yield from statements(part)
