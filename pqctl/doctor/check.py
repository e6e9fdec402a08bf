"""What a check of `pqctl doctor` is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

OK, WARN, FAIL, SKIP = "OK", "WARN", "FAIL", "SKIP"


class Check(NamedTuple):
    """One check: its state, what was found, and what to do about it where something is to be done."""

    state: str
    name: str
    found: str
    advice: str | None = None


def exit_code(checks: Iterable[Check]) -> int:
    """0 when all is well, 1 with a warning, 2 with a failure."""
    return max({OK: 0, SKIP: 0, WARN: 1, FAIL: 2}[check.state] for check in checks)
