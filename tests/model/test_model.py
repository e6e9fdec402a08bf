"""All states of small clusters keep the promises, and each mistake breaks one (spec/model 1)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.model.configurations import LONG, SHORT, Configuration
from tests.model.invariants import broken
from tests.model.mistakes import MISTAKES, Mistake
from tests.model.mistakes_of_leases import MISTAKES_OF_LEASES
from tests.model.mistakes_of_losses import MISTAKES_OF_LOSSES
from tests.model.mistakes_of_members import MISTAKES_OF_MEMBERS
from tests.model.search import follow, search
from tests.model.state import canonical, renamed, start

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "spec" / "model.md").read_text()
ALL_MISTAKES = (*MISTAKES, *MISTAKES_OF_LOSSES, *MISTAKES_OF_MEMBERS, *MISTAKES_OF_LEASES)
HAZARDS = {*(f"H{number}" for number in range(1, 12))}
FINDINGS = {f"#{number}" for number in (6888, 7545, 7549, 7556, 7564, 7567)}


@pytest.mark.parametrize("configuration", SHORT, ids=lambda configuration: configuration.name)
def test_all_states_keep_the_promises(configuration: Configuration) -> None:
    outcome = search(configuration.rules, configuration.first, configuration.invariants)
    assert outcome.broken == "", outcome.path
    assert outcome.whole
    assert outcome.states == configuration.states       # a rule that forbids too much shows here


@pytest.mark.parametrize("mistake", ALL_MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_breaks_a_promise(mistake: Mistake) -> None:
    outcome = search(mistake.rules(), mistake.start(), mistake.invariants)
    assert outcome.broken
    steps = len(mistake.before) + len(outcome.path)
    assert f"| `{mistake.name}` | {mistake.stands_for} | {outcome.broken} | {steps} |" in PAGE
    end = follow(mistake.rules(), mistake.start(), outcome.path)
    assert end is not None
    assert outcome.broken in broken(mistake.rules(), mistake.invariants, end)


def test_every_hazard_and_every_finding_is_in_the_table() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert {hazard for row in rows for hazard in re.findall(r"\bH\d+\b", re.sub(r"(H\d+)[a-g]", r"\1", row))} == HAZARDS
    assert {issue for row in rows for issue in re.findall(r"#\d{4}\b", row)} == FINDINGS


def test_what_the_code_shows_is_there() -> None:
    """The mistakes of which no state of the model knows are made in the code, by these tests."""
    for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE):
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"


def test_the_page_has_the_figures() -> None:
    for configuration in (*SHORT, *(one for one in LONG if one.states)):
        assert f"| {configuration.name} | {configuration.states:,} |" in PAGE, configuration.name


def test_states_that_differ_by_names_only_are_one() -> None:
    rules = SHORT[0].rules
    path = (("stand", 0, 1), ("vote", 1, 0, 1), ("lead", 0), ("receive", 2, 1, 1, 0))
    state = follow(rules, start(3, 2, entries=1, crashes=0), path)
    assert state is not None
    for order in ([0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
        other = renamed(state, order)
        assert other != state
        assert canonical(other) == canonical(state)
