"""Style as a test: what core must stay away from, and that nothing grows out of sight."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.statements import statements
from tests.test_imports import PACKAGES, ROOT

# The first two differ between two processes, the others reach out of the machine or are not exact.
CORE_BUILTINS_FORBIDDEN = {"hash", "id", "open", "print", "input", "exec", "eval", "__import__", "float", "round"}

FUNCTION_LINES_MAX = 60
LEFTOVERS = ("TODO", "FIXME", "XXX")


def findings(path: str, source: str) -> list[str]:
    """Return what is wrong with the file `path` (from the root) of a package."""
    tree = ast.parse(source)
    found = [*_size(source, tree)]
    if path.startswith("core/"):
        found += _impurities(tree)
    return [f"{path}: {finding}" for finding in found]


def _size(source: str, tree: ast.AST) -> Iterator[str]:
    lines = source.splitlines()
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield f"{node.name} has {length} lines"
    for leftover in LEFTOVERS:
        for number, line in enumerate(lines if leftover in source else (), start=1):
            if leftover in line:
                yield f"{leftover} in line {number}"


def _impurities(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in CORE_BUILTINS_FORBIDDEN:
            yield f"{node.id} in line {node.lineno}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, float):
            yield f"float in line {node.lineno}"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            yield f"division that makes a float in line {node.lineno}"
        elif isinstance(node, ast.For | ast.comprehension) and _is_set(node.iter):
            yield f"iteration over a set in line {node.iter.lineno}"


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("set", "frozenset")
    return isinstance(node, ast.Set | ast.SetComp)


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_tidy(package: str) -> None:
    found = []
    for path in sorted((ROOT / PACKAGES[package][0]).rglob("*.py")):
        found += findings(path.relative_to(ROOT).as_posix(), path.read_text())
    assert not found, "\n".join(found)


def test_core_is_there_to_be_looked_at() -> None:
    assert len(list((ROOT / "core").rglob("*.py"))) > 10


@pytest.mark.parametrize(
    ("path", "source", "finding"),
    [
        ("core/a.py", "x = hash('q')", "hash in line 1"),
        ("core/a.py", "x = sorted([], key=id)", "id in line 1"),
        ("core/a.py", "x = 0.5", "float in line 1"),
        ("core/a.py", "x = 1 / 2", "division that makes a float in line 1"),
        ("core/a.py", "x = 1\nx /= 2", "division that makes a float in line 2"),
        ("core/a.py", "for x in {1, 2}: pass", "iteration over a set in line 1"),
        ("core/a.py", "y = [x for x in set('ab')]", "iteration over a set in line 1"),
        ("pqctl/a.py", "def f():\n" + "    pass\n" * 60, "f has 61 lines"),
        ("pqctl/a.py", "async def f():\n" + "    pass\n" * 60, "f has 61 lines"),
        ("pqctl/a.py", "x = 1\n# TO" "DO: more", "TO" "DO in line 2"),
        ("pqctl/a.py", "x = 1   # FIX" "ME", "FIX" "ME in line 1"),
    ],
)
def test_what_is_not_tidy_is_found(path: str, source: str, finding: str) -> None:
    assert f"{path}: {finding}" in findings(path, source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/a.py", "x = 7 // 2\nfor y in sorted({1, 2}): pass\ntype(x)"),
        ("pqctl/a.py", "def f():\n" + "    pass\n" * 59),
    ],
)
def test_what_is_tidy_is_not_found(path: str, source: str) -> None:
    assert findings(path, source) == []
