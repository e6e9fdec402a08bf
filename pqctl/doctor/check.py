"""The result of one check of `pqctl doctor`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

OK, WARN, FAIL, SKIP = "OK", "WARN", "FAIL", "SKIP"


class Check(NamedTuple):
    """One check: its state, the finding, and advice if action is needed."""

    state: str
    name: str
    found: str
    advice: str | None = None


def exit_code(checks: Iterable[Check]) -> int:
    """Return 0 if all is well, 1 if there are warnings, 2 if there are failures."""
    return max({OK: 0, SKIP: 0, WARN: 1, FAIL: 2}[check.state] for check in checks)
