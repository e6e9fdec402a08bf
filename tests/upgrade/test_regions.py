"""States of copies and of fenced origins, as released programs wrote them, are read by this one, and written again.

`data/regions/` has those of each feature level (regions.py).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from sockpqd.core import decode_entry
from tests.core.helpers.logs import restored, snapshot_of
from tests.upgrade import regions
from tests.upgrade.test_formats import FRAMES

NAMES = sorted(path.stem for path in regions.REGIONS.glob("*.json"))
NEWEST = NAMES[-1]


def recorded(name: str) -> dict[str, dict[str, Any]]:
    states: dict[str, dict[str, Any]] = json.loads((regions.REGIONS / f"{name}.json").read_text("utf-8"))
    return states


def without(state: dict[str, Any], *parts: str) -> dict[str, Any]:
    return {part: value for part, value in state.items() if part not in parts}


def test_those_of_the_level_that_added_copies_are_there() -> None:
    assert "level2" in NAMES
    data = b"".join(bytes.fromhex(state["snapshot"]) for state in recorded("level2").values())
    assert [word for word in FRAMES if bytes([0xa0 + len(word)]) + word.encode() not in data] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_state_is_read_and_goes_on(name: str) -> None:
    for state in recorded(name).values():
        machine = restored(bytes.fromhex(state["snapshot"]))
        assert regions.found(machine) == without(state, "snapshot", "rest", "with the rest")
        if "rest" in state:
            entry = decode_entry(bytes.fromhex(state["rest"]))
            machine.apply(machine.index + 1, entry.now_ms, entry.seed, entry.operations)
            assert regions.found(machine) == state["with the rest"]


@pytest.mark.parametrize("name", NAMES)
def test_each_state_is_written_as_the_same_bytes(name: str) -> None:
    for state in recorded(name).values():
        assert snapshot_of(restored(bytes.fromhex(state["snapshot"]))).hex() == state["snapshot"]


def test_this_program_writes_what_was_recorded_last() -> None:
    for name, machine in regions.states().items():
        assert snapshot_of(machine).hex() == recorded(NEWEST)[name]["snapshot"]
