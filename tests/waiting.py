"""Waits of tests for real processes: for conditions, however long a busy machine needs for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 120.0          # a safety limit, far more than anything takes
POLL_S = 0.02
TICK_S = 0.005


def eventually(condition: Callable[[], object], seconds: float = PATIENCE_S) -> bool:
    """Return whether this becomes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True


def until(condition: Callable[[], object], what: str | Callable[[], str] = "", seconds: float = PATIENCE_S) -> None:
    """Wait for a condition; `what` describes what was expected, or the actual state."""
    assert eventually(condition, seconds), what if isinstance(what, str) else what()


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """A generous limit: the point is that it is no hang.

    How long the machine holds up a thread that only ticks does not count: it holds up what is tested for as long.
    """
    held_up_s, ended = 0.0, threading.Event()

    def tick() -> None:
        nonlocal held_up_s
        before = time.monotonic()
        while not ended.is_set():
            ended.wait(TICK_S)
            now = time.monotonic()
            held_up_s += max(now - before - TICK_S, 0.0)
            before = now

    ticking = threading.Thread(target=tick, name="at_most")
    ticking.start()
    begun = time.monotonic()
    try:
        yield
        took_s = time.monotonic() - begun
    finally:
        ended.set()
        ticking.join()
    assert took_s - held_up_s < seconds, f"{took_s:.1f} s, of which the machine held us up for {held_up_s:.1f} s"


def gone(pid: int) -> bool:
    """Return whether this process has ended, whichever process is its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
