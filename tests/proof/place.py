"""The machine on which the proof runs, and the folder in which it keeps the disks of its own machines."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from tests.proof.network import run

MACHINES = Path("/run/sockpqd-proof")


def memory(folder: Path = MACHINES) -> Path:
    """Make this folder one in memory, which is gone when the program ends, as its mounts are."""
    folder.mkdir(exist_ok=True)
    run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(folder)])
    return folder


def machine() -> str:
    """Return what a reader of results wants to know of this machine."""
    return f"Linux {platform.release()}, Python {platform.python_version()}, {os.cpu_count()} processors"
