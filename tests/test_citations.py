"""Every rule that is cited exists: pages and sections of docs/spec, headings of docs/PROTOCOL.md, links in docs/spec.

docs/spec/README.md explains the form of a citation. Citations of texts outside this repository are forbidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = ROOT / "docs" / "spec"
PROTOCOL = ROOT / "docs" / "PROTOCOL.md"

READ = {".py", ".md", ".txt", ".toml", ".yml", ".j2", ".cfg", ".service"}

CITED_RULE = re.compile(r"\bspec/([a-z][a-z-]*)(\.md)?(?: (\d+(?:\.\d+)*))?")
CITED_PART = re.compile(r'\bdocs/([A-Z_]+\.md), "([^"\n]+)"')
CITED_HEADING = re.compile(r'\bPROTOCOL "([^"\n]*)("?)')
NOT_HERE = re.compile(
    r"\b(?:EXTENSIONS|DECISIONS|CLUSTER\.md)\b"
    r"|\bPROTOCOL\.md(?: section)? A?\d"
    r"|(?<![\"'\w.])A[1-9]\d?\b"
)
FORMS = (CITED_RULE, CITED_PART, CITED_HEADING, NOT_HERE)     # all are found within a line
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SECTION = re.compile(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")

Rules = dict[str, set[str]]     # the sections of each page


def findings(text: str, rules: Rules, headings: set[str]) -> Iterator[str]:
    """Yield what is wrong with the citations in `text`, each with the number of its line."""
    if not any(form.search(text) for form in FORMS):
        return
    for number, line in enumerate(text.splitlines(), start=1):
        for page, suffix, section in CITED_RULE.findall(line):
            if page not in rules:
                yield f"line {number}: there is no page {page}"
            elif suffix or not section:
                yield f"line {number}: a rule is cited as spec/{page} and a section, on one line"
            elif section not in rules[page]:
                yield f"line {number}: {page} has no section {section}"
        for heading, closed in CITED_HEADING.findall(line):
            if not closed or heading not in headings:
                yield f"line {number}: PROTOCOL.md has no heading {heading}"
        for page, heading in CITED_PART.findall(line):
            if heading not in _headings_of(page):
                yield f"line {number}: {page} has no heading {heading}"
        for old in NOT_HERE.findall(line):
            yield f"line {number}: {old} is not in this repository"


def _rules() -> Rules:
    return {page.stem: set(SECTION.findall(page.read_text())) for page in SPEC.glob("*.md") if page.stem != "README"}


def _headings() -> set[str]:
    """The headings of PROTOCOL.md, whole and up to the colon."""
    headings = set(HEADING.findall(PROTOCOL.read_text()))
    return headings | {heading.partition(":")[0] for heading in headings}


@cache
def _headings_of(page: str) -> set[str]:
    """The headings of a page of docs."""
    path = ROOT / "docs" / page
    return set(HEADING.findall(path.read_text())) if path.is_file() else set()


def _files() -> Iterator[Path]:
    """All texts of this repository that may cite; docs/spec cites by links."""
    yield from (path for path in ROOT.iterdir() if path.suffix in READ)
    for folder in ROOT.iterdir():
        if folder.is_dir() and not folder.name.startswith("."):
            for path in folder.rglob("*"):
                if path.suffix in READ and path.is_file() and SPEC not in path.parents and path != Path(__file__):
                    yield path


def anchor(heading: str) -> str:
    """Return what a link to this heading ends with."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken_links(page: Path) -> Iterator[str]:
    """The links of a page to files of this repository that lead nowhere."""
    for name, fragment in LINK.findall(page.read_text()):
        if "://" in name:
            continue
        target = page.parent / name if name else page
        if not target.is_file():
            yield f"{page.name}: there is no {name}"
        elif fragment and fragment not in map(anchor, HEADING.findall(target.read_text())):
            yield f"{page.name}: {target.name} has no heading for #{fragment}"


def test_what_is_cited_exists() -> None:
    rules, headings = _rules(), _headings()
    found = [
        f"{path.relative_to(ROOT)}, {finding}"
        for path in sorted(_files()) for finding in findings(path.read_text(errors="replace"), rules, headings)
    ]
    assert not found, "\n".join(found)


def test_many_files_are_looked_at() -> None:
    assert len(list(_files())) > 300
    assert sum(map(len, _rules().values())) > 100


def test_links_of_the_specification_lead_somewhere() -> None:
    found = [broken for page in sorted(SPEC.glob("*.md")) for broken in broken_links(page)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", sorted(SPEC.glob("*.md")), ids=lambda page: page.stem)
def test_a_section_has_a_number_of_its_own(page: Path) -> None:
    numbers = SECTION.findall(page.read_text())
    assert len(numbers) == len(set(numbers))
    chapters = [number for number in numbers if "." not in number]
    assert {number.partition(".")[0] for number in numbers} == set(chapters)
    headings = HEADING.findall(page.read_text())[1:]
    assert len(headings) == len(numbers), "each section below the title has a number"


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("# as in spec/leases 1.2", "line 1: there is no page leases"),
        ("x = 1\n# as in spec/queue 1.9", "line 2: queue has no section 1.9"),
        ("# as in spec/queue 3", "line 1: queue has no section 3"),
        ("# as in spec/queue", "line 1: a rule is cited as spec/queue and a section, on one line"),
        ("# as in spec/queue\n# 1.2", "line 1: a rule is cited as spec/queue and a section, on one line"),
        ("# as in docs/spec/queue.md 1.2", "line 1: a rule is cited as spec/queue and a section, on one line"),
        ('# PROTOCOL "GETS"', "line 1: PROTOCOL.md has no heading GETS"),
        ('# PROTOCOL "PUT\n# add a job"', "line 1: PROTOCOL.md has no heading PUT"),
        ('# docs/OPERATIONS.md, "By hand"', "line 1: OPERATIONS.md has no heading By hand"),
        ("# (EXTENSIONS.md 5)", "line 1: EXTENSIONS is not in this repository"),
        ("# DECISIONS 40", "line 1: DECISIONS is not in this repository"),
        ("# see CLUSTER.md section 4", "line 1: CLUSTER.md is not in this repository"),
        ("# PROTOCOL.md A12", "line 1: PROTOCOL.md A1 is not in this repository"),
        ("# PROTOCOL.md 1.4", "line 1: PROTOCOL.md 1 is not in this repository"),
        ("# the job returns (A28)", "line 1: A28 is not in this repository"),
        ("# A9: in order", "line 1: A9 is not in this repository"),
    ],
)
def test_a_citation_that_leads_nowhere_is_found(text: str, finding: str) -> None:
    assert finding in list(findings(text, {"queue": {"1", "1.2"}}, {"PUT", "PUT: add a job"}))


@pytest.mark.parametrize(
    "text",
    [
        "# as in spec/queue 1.2.",
        '"""What a queue is (spec/queue 1); see also spec/queue 1.2."""',
        '# (PROTOCOL "PUT", PROTOCOL "PUT: add a job")',
        "# all of it is in docs/PROTOCOL.md, and docs/spec/README.md",
        'key = b"A9" * 32     # DECISION, hazard H9a, CLUSTER STATUS',
    ],
)
def test_a_citation_that_is_good_is_not_found(text: str) -> None:
    assert not list(findings(text, {"queue": {"1", "1.2"}}, {"PUT", "PUT: add a job"}))


def test_the_anchor_of_a_heading_is_that_of_a_link() -> None:
    assert anchor("9.2 The journal's room") == "92-the-journals-room"
    assert anchor("QUEUE CREATE, QUEUE CONFIG: settings") == "queue-create-queue-config-settings"
