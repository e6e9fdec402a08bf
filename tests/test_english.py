"""Docstrings, comments, messages and documents are written as an English engineer writes them."""

from __future__ import annotations

import ast
import inspect
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

DONE = (
    "cluster", "core", "connections", "gateway", "beanstalk", "beanstalk_proxy", "pqctl", "client", "devcluster",
    "deploy", "bench", "integrations", "examples",
)
DOCUMENTS = ("*.md", "docs/*.md", "docs/design/*.md", "docs/spec/*.md", "client/*.md", "integrations/*/*.md")

# Words of a translation, with what to write instead.
WORDS = {
    r"anew": "again, from scratch, re-",
    r"whoever": "a client that, any node that",
    r"for want of": "because there is no",
    r"told": "reported, notified, sent",
    r"said": "reported, sent",
    r"under way": "in flight, in progress",
    r"beside the (?:loop|log|program)": "in the background, outside",
    r"all the same": "still, nevertheless",
    r"so (?:many|much) \w+ (?:is|are|was|were)": "the number of",
    r"what becomes of": "the outcome of",
    r"(?:that|those) of (?:the|a|an|its|their)": "repeat the noun, or 's",
}
DENIED = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)

# A first line names the thing, or begins with a verb.
CLAUSE = re.compile(r"(?:What|Which|Whose|Who|Whether|Nobody|Somebody)\b")
CODE = re.compile(r"`[^`]*`")


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The docstrings in a module, with the lines on which they begin."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, text


def translated(source: str) -> list[tuple[int, str]]:
    """The words, and the first lines, of docstrings that are not English, each with its line."""
    found = []
    for line, text in docstrings(ast.parse(source)):
        if CLAUSE.match(text):
            found.append((line, text.splitlines()[0]))
        found += [(line, word) for word in DENIED.findall(CODE.sub("", text))]
    return found


def remarks(source: str) -> Iterator[tuple[int, str]]:
    """The comments and the messages in a module, with their lines."""
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    tree = ast.parse(source)
    documented = {text for _, text in docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(text := node.value, str) and " " in text.strip():
            yield from [(node.lineno, text)] * (inspect.cleandoc(text) not in documented)


def denied(text: str) -> list[str]:
    """The words of translations in a text, outside code."""
    return DENIED.findall(CODE.sub("", text))


@pytest.mark.parametrize("package", DONE)
def test_docstrings_are_english(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    found = {path.relative_to(ROOT).as_posix(): translated(path.read_text()) for path in files}
    assert {path: words for path, words in found.items() if words} == {}


@pytest.mark.parametrize("package", DONE)
def test_comments_and_messages_are_english(package: str) -> None:
    found = [
        (path.relative_to(ROOT).as_posix(), line, word)
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, text in remarks(path.read_text())
        for word in denied(text)
    ]
    assert found == []


def test_documents_are_english() -> None:
    paths = {path for pattern in DOCUMENTS for path in ROOT.glob(pattern)} - {ROOT / "CHANGELOG.md"}
    assert len(paths) > 20
    lines = [(path.name, line, text) for path in paths for line, text in enumerate(path.read_text().splitlines(), 1)]
    assert [(name, line, word) for name, line, text in lines for word in denied(text)] == []


def test_each_kind_is_found() -> None:
    assert translated('"""What is there."""\n') == [(1, "What is there.")]
    assert translated('def f():\n    """Begin anew, and that is\n\n    Told to all."""\n') == [(2, "anew"), (2, "Told")]
    assert translated('def f(told):\n    """`told` is called; Whatever else."""\n') == []
    assert translated('"""Its length, and that of the other."""') == [(1, "that of the")]


def test_remarks_are_comments_and_messages() -> None:
    assert list(remarks('"""Told so."""\nx = f"{told} is said"      # whoever\ny = "told"\n')) == [
        (2, "# whoever"), (2, " is said"),
    ]
    assert denied("`told` is whoever said it") == ["whoever", "said"]
