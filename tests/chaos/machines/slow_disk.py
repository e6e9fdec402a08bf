"""sockpqd on a disk whose speed can be set: an alteration (altered.py).

Each sync of the process takes longer by the number of milliseconds in the file that the variable SLOW_DISK names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

VARIABLE = "SLOW_DISK"


def environment(file: Path) -> Mapping[str, str]:
    """Return the variable of a process whose disk is set by `file`."""
    return {VARIABLE: str(file)}


def set_ms(file: Path, milliseconds: float) -> None:
    """Delay each sync by this time, from now on."""
    new = file.with_suffix(".new")
    new.write_text(f"{milliseconds:g}")
    new.replace(file)                   # at once: no half of a number is read


def slowed(sync: Callable[[int], None], file: Path) -> Callable[[int], None]:
    """Return `sync` with the additional delay that is read from the file."""
    def slow(descriptor: int) -> None:
        sync(descriptor)
        time.sleep(float(file.read_text()) / 1000)

    return slow


def alter() -> None:
    """Replace the sync of the program."""
    file = Path(os.environ[VARIABLE])
    os.fsync = slowed(os.fsync, file)               # type: ignore[assignment]
    os.fdatasync = slowed(os.fdatasync, file)
