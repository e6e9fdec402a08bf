"""What tests of real processes wait for: conditions, however long a busy machine needs for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 60.0           # a safety limit, far more than anything takes
POLL_S = 0.02


def eventually(condition: Callable[[], object], seconds: float = PATIENCE_S) -> bool:
    """Does this become true in time?"""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True


def until(condition: Callable[[], object], what: str | Callable[[], str] = "", seconds: float = PATIENCE_S) -> None:
    """Wait for a condition; `what` says what was expected, or what there is instead."""
    assert eventually(condition, seconds), what if isinstance(what, str) else what()


def gone(pid: int) -> bool:
    """Has this process ended, whoever has to be told of it?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
