"""Wall clocks that can be set for one process: libfaketime (Debian's package `libfaketime`), preloaded.

The monotonic clock stays real, as it does when an administrator or NTP sets the time of a machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

NAME = "faketime/libfaketime.so.1"


def library() -> Path | None:
    """Return libfaketime; None where it is not installed. $SOCKPQD_TEST_FAKETIME names one elsewhere."""
    named = os.environ.get("SOCKPQD_TEST_FAKETIME")
    places = [Path(named)] if named else [
        *Path("/usr/lib").glob(f"*/{NAME}"), Path("/usr/lib") / NAME, Path("/usr/lib64") / NAME,
        Path("/usr/local/lib") / NAME,
    ]
    return next((place for place in places if place.exists()), None)


def environment(path: Path, file: Path) -> Mapping[str, str]:
    """Return the variables of a process whose clock is set by `file`. `path`: the library."""
    return {
        "LD_PRELOAD": str(path), "FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",        # two names, of older and newer versions
    }


def set_ahead(file: Path, seconds: float) -> None:
    """Set the clock this far ahead of the real one, from now on; negative: behind."""
    new = file.with_suffix(".new")
    new.write_text(f"{seconds:+.3f}s\n" if seconds else "+0\n")
    new.replace(file)                   # at once: no half of a line is read
