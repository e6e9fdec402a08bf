"""Links between the documents lead to files that exist, and to headings that they have."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "client", "bench", "tests", "deploy", "examples", "integrations")
DOCUMENTS = (*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")))
BLOCK = re.compile(r"```.*?```", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
URL = re.compile(r"\w+:")


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub and the site make them."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for heading in HEADING.findall(BLOCK.sub("", text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words).strip().lower().replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


def broken(path: Path, text: str) -> list[str]:
    """The links of this document that lead nowhere."""
    wrong = []
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", BLOCK.sub("", text))):
        if URL.match(link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (
            anchor and target.suffix == ".md" and anchor not in anchors(text if target == path else target.read_text())
        ):
            wrong.append(link)
    return wrong


def test_links_lead_somewhere() -> None:
    assert len(DOCUMENTS) > 20
    wrong = {str(path.relative_to(ROOT)): links for path in DOCUMENTS if (links := broken(path, path.read_text()))}
    assert wrong == {}


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# One: two\n")
    path = tmp_path / "a.md"
    path.write_text("# Here\n[a](#here) [b](#there) [c](b.md#one-two) [d](b.md#two) [e](c.md) [f](https://example.org)\n")
    assert broken(path, path.read_text()) == ["#there", "b.md#two", "c.md"]
