"""A recorded log is charged as ever: what an operation costs is a promise to the other nodes, as what it does is.

An entry ends when its operations have been charged enough (State.spent), and the portions of what is done in several
entries, and how many jobs a GET with COUNT hands out, depend on it. So nodes of two releases that charge differently
would execute different parts of one entry. A change is written so that it asks `State.level` (core/levels.py), and
these figures stay as they are. They were recorded by charges.py.
"""

from __future__ import annotations

import json

import pytest

from tests.upgrade.charges import charges_of, recorded
from tests.upgrade.test_scenario import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_log_is_charged_as_ever(name: str) -> None:
    expected = json.loads(recorded(name).read_text("utf-8"))
    assert sum(map(bool, expected)) > 50
    assert charges_of(name) == expected
