"""Small disks that can be filled: a tmpfs for each node, mounted on its data directory. Needs root."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

FILLER = "filler"
PIECE = bytes(1 << 20)


def mount(point: Path, megabytes: int) -> None:
    """Mount an empty disk there, unless there is one; raises OSError. devcluster/guardian.py removes it."""
    point.mkdir(exist_ok=True)
    if os.path.ismount(point):
        return
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", str(point)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"cannot mount a tmpfs here: {done.stderr.strip()}")


def can_mount() -> bool:
    """Return whether mounting works here."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            mount(Path(folder) / "disk", 1)
        except OSError:
            return False
        subprocess.run(["umount", "-l", Path(folder) / "disk"], check=True)
    return True


def fill(disk: Path) -> int:
    """Use up all remaining space; returns the size in bytes."""
    size = 0
    with (disk / FILLER).open("ab", buffering=0) as file:
        for piece in (PIECE, PIECE[:4096]):
            try:
                while written := file.write(piece):
                    size += written
            except OSError:
                continue
    return size


def free_bytes(disk: Path) -> int:
    """Return the remaining space in bytes."""
    status = os.statvfs(disk)
    return status.f_bavail * status.f_frsize


def empty(disk: Path) -> None:
    """Give back what `fill` took."""
    (disk / FILLER).unlink(missing_ok=True)
