"""Files that documents and comments name exist: what moves takes its name along."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = (
    "core", "cluster", "beanstalk", "connections", "gateway", "beanstalk_proxy", "client/src", "client/tools", "pqctl",
    "devcluster", "bench", *(f"integrations/{path.name}/src" for path in ROOT.glob("integrations/*")),
)
DOCUMENTS = (
    *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "client").glob("*.md"), *(ROOT / "bench").glob("*.md"),
    *ROOT.glob("integrations/*/*.md"),
    *(ROOT / "tests").rglob("README.md"),
)
NAMED = re.compile(r"(?<![\w./*{<-])((?:[a-z_]\w*/)*[a-z_]\w*\.py)\b(?!\w)")
# What is not ours: files of a reader's own project in examples, and those of other projects.
FOREIGN = {
    "worker.py", "syncobj.py", "app.py", "proj.py", "tasks.py", "test_mail.py", "manage.py",
    "orders/models.py", "orders/tasks.py", "orders/tests.py", "shop/test_settings.py", "celeryconfig.py",
}


@cache
def files() -> set[str]:
    """All Python files of the project, by their paths and by the ends of these."""
    found = set()
    folders = (
        "beanstalk", "beanstalk_proxy", "bench", "client", "cluster", "core", "deploy", "devcluster", "gateway",
        "integrations", "pqctl", "tests", "connections", "examples",
    )
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).parts
            found |= {"/".join(parts[start:]) for start in range(len(parts))}
    return found


def words_of(path: Path) -> str:
    """The text of a document; the comments and strings of a program, if any may name a file."""
    text = path.read_text()
    if path.suffix != ".py":
        return text
    if not NAMED.search(text):
        return ""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(token.string for token in tokens if token.type in (tokenize.COMMENT, tokenize.STRING))


def unknown(texts: Iterator[tuple[str, str]], known: set[str]) -> list[str]:
    """The names of files in these texts that no file has, with the name of the text."""
    return [
        f"{place}: {name}" for place, text in texts for name in NAMED.findall(text)
        if name not in known and name not in FOREIGN
    ]


def test_files_that_documents_name_exist() -> None:
    assert unknown(((str(path.relative_to(ROOT)), words_of(path)) for path in DOCUMENTS), files()) == []


@pytest.mark.parametrize("package", PRODUCT)
def test_files_that_comments_name_exist(package: str) -> None:
    texts = ((str(path.relative_to(ROOT)), words_of(path)) for path in (ROOT / package).rglob("*.py"))
    assert unknown(texts, files()) == []


def test_a_name_that_no_file_has_is_found() -> None:
    texts = iter([("a.md", "see `leader/nowhere.py`, core/state.py and state.py")])
    assert unknown(texts, files()) == ["a.md: leader/nowhere.py"]
