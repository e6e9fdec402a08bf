"""A hook of mkdocs that makes client/README.md a page of the site, with its links adapted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[2] / "client" / "README.md"
PAGE = "CLIENT.md"


def page() -> str:
    """The text of the page: links to documents lead to their pages, links to sources become plain text."""
    text = README.read_text("utf-8").replace("# sockpq\n", "# The Python client\n", 1)
    text = text.replace("](../README.md)", "](index.md)").replace("](../docs/", "](")
    return re.sub(r"\[([^]]*)\]\((?:src|examples)\b[^)]*\)", r"\1", text)


def on_files(files: Any, *, config: Any) -> Any:
    """Add the page; mkdocs calls this."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=page()))
    return files
