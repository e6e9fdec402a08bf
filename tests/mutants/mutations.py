"""The mutations of a module: one comparison, condition, wait for the disk or early return changed in each."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

# of a comparison: its negation, and where it has a boundary, the comparison that differs exactly there
_OTHERS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", (">=", "<=")), ast.LtE: ("<=", (">", "<")), ast.Gt: (">", ("<=", ">=")), ast.GtE: (">=", ("<", ">")),
    ast.Eq: ("==", ("!=",)), ast.NotEq: ("!=", ("==",)), ast.Is: ("is", ("is not",)), ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)), ast.NotIn: ("not in", ("in",)),
}
_WAIT = re.compile(r"sync|wait|result|trust")   # occurs in the names of methods that wait for the disk
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_RAISES = ("damaged",)         # methods that do not return


@dataclass(frozen=True)
class Mutant:
    """A changed expression. `key` names it within its module, and does not depend on line numbers."""

    key: str
    line: int
    start: int              # the bytes start..end of the source become `text`
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """The module with this change."""
        return source[:self.start] + self.text.encode() + source[self.end:]


def mutants(source: bytes) -> list[Mutant]:
    """All mutants of a module in the order of their places.

    `a and b` has no mutant `a or b`: it differs where one side is false, and there `a` or `b` alone does as well.
    """
    found = sorted(_Finder(source).module(), key=lambda found: (found[1].start, found[1].end))
    seen: Counter[str] = Counter()
    named = []
    for key, change in found:
        seen[key] += 1
        number = f" #{seen[key]}" if seen[key] > 1 else ""
        named.append(Mutant(key + number, change.line, change.start, change.end, change.text))
    return named


@dataclass(frozen=True)
class _Change:
    line: int
    start: int
    end: int
    text: str


class _Finder:
    def __init__(self, source: bytes) -> None:
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

        self._tree = ast.parse(source)
        self._statements = {id(node.value) for node in ast.walk(self._tree) if isinstance(node, ast.Expr)}

    def module(self) -> Iterator[tuple[str, _Change]]:
        yield from self._within(self._tree, "")

    def _within(self, node: ast.AST, scope: str) -> Iterator[tuple[str, _Change]]:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            scope = f"{scope}.{node.name}".lstrip(".")
        for change, said in self._of(node):
            yield f"{scope}: {said}", change
        for child in ast.iter_child_nodes(node):
            yield from self._within(child, scope)

    def _of(self, node: ast.AST) -> Iterator[tuple[_Change, str]]:
        match node:
            case ast.Compare():
                yield from self._comparisons(node)
            case ast.BoolOp(op=op):
                always = isinstance(op, ast.And)
                for value in node.values:
                    if isinstance(value, ast.Constant):     # x or 0: a default, not a condition
                        continue
                    text = self._text(value)
                    yield self._forced(value, always=always), f"{_line(text)} => {always}"
            case ast.UnaryOp(op=ast.Not()):
                text = self._text(node).removeprefix("not").lstrip()
                yield self._change(node, text), f"{_line(self._text(node))} => {_line(text)}"
            case ast.If(orelse=[]) if _leaves(node.body[-1]):
                for always in (False, True):
                    said = f"if {_line(self._text(node.test))} => if {always}"
                    yield self._forced(node.test, always=always), said
            case ast.Call() if _waits(node):
                instead = "pass" if id(node) in self._statements else "True"
                yield self._change(node, instead), f"{_line(self._text(node))} => {instead}"

    def _comparisons(self, node: ast.Compare) -> Iterator[tuple[_Change, str]]:
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            sign, others = _OTHERS[type(op)]
            start, end = self._span(left)[1], self._span(right)[0]      # parentheses may be in between, beside the sign
            between = self._source[start:end].decode()
            for other in others:
                text = re.sub(r"\s+".join(map(re.escape, sign.split())), other, between, count=1)
                change = _Change(node.lineno, start, end, text)
                first, last = self._span(node)
                whole = self._source[first:start].decode() + text + self._source[end:last].decode()
                yield change, f"{_line(self._text(node))} => {_line(whole)}"

    def _forced(self, node: ast.expr, *, always: bool) -> _Change:
        """It is still evaluated: what it does besides, or assigns, is not what is changed."""
        return self._change(node, f"(({self._text(node)}) {'or True' if always else 'and False'})")

    def _change(self, node: ast.expr, text: str) -> _Change:
        return _Change(node.lineno, *self._span(node), text)

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset


def _leaves(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))):
            return name in _RAISES
        case _:
            return isinstance(statement, _LEAVES)


def _waits(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and _WAIT.search(call.func.attr) is not None


def _line(text: str) -> str:
    return " ".join(text.split())
