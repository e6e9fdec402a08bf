"""The blocks of code in documents: fenced ones with their language, and indented ones."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
INDENT = "    "
# They show what happened, or are made from the programs themselves.
OTHERWISE = ("CHANGELOG.md", "docs/reference/", "docs/spec/")


class Block(NamedTuple):
    """One block: where it begins, its language ("indented" without a fence) and its text."""

    document: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def first(self) -> str:
        """Its first line."""
        return self.text.partition("\n")[0].strip()


def documents() -> list[str]:
    """All documents with blocks that a reader may copy."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.split() if not path.startswith(OTHERWISE)]


def blocks(document: str) -> Iterator[Block]:
    """The blocks of a document, in their order."""
    lines = (ROOT / document).read_text("utf-8").split("\n")
    number = 0
    while number < len(lines):
        fence = re.match(r"```(\w*)$", lines[number])
        indented = lines[number].startswith(INDENT) and not lines[number - 1].strip()
        end = number + 1
        if fence:
            while lines[end] != "```":
                end += 1
            yield Block(document, number + 1, fence[1], "\n".join(lines[number + 1 : end]) + "\n")
        elif indented and not re.match(r"([-*]|\d+\.) ", lines[number].strip()):
            while lines[end].startswith(INDENT):
                end += 1
            yield Block(document, number + 1, "indented",
                        "".join(f"{line.removeprefix(INDENT)}\n" for line in lines[number:end]))
        number = end + bool(fence)


def commands(block: Block) -> list[str]:
    """The commands of a block for a shell, without comments; lines that end with a backslash go on."""
    text = block.text.replace("\\\n", " ")
    lines = [re.sub(r"(^|\s+)#( .*)?$", "", line).strip() for line in text.splitlines()]
    return [re.sub(r"\s+", " ", line) for line in lines if line]
