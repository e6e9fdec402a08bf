from __future__ import annotations

import ast
from pathlib import Path

from tests.statements import statements

SOURCE = """
match x:
    case 1:
        try:
            async def f(): yield 1
        except A:
            class B: pass
        else:
            for _ in y: import c
            else: import d
        finally:
            with e: del g
    case _ if (lambda: 0)():
        while z: return
"""


def test_all_statements_are_found_and_no_expression() -> None:
    for source in (SOURCE, Path(ast.__file__).read_text()):
        tree = ast.parse(source)
        found = [node for node in statements(tree) if isinstance(node, ast.stmt)]
        walked = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
        assert {*map(id, found)} == {*map(id, walked)}
        assert len(found) == len(walked)
        assert not any(isinstance(node, ast.expr) for node in statements(tree))
