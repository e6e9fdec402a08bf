"""Disks whose space is promised and not there: ext4 on a loop device in a file on a small tmpfs. Needs root.

When the tmpfs is full the disk has room for all that it knows, and a write fails only when it is to reach the device:
at a sync. What the system does then is what it does with a broken disk: the bytes stay visible, count as written, and
the next sync succeeds (`let_forget` shows what there really is).
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.machines import disks

PROMISED = 4                # times the space that exists
MKFS = ("mkfs.ext4", "-q", "-b", "4096", "-O", "^has_journal", "-E", "nodiscard")
REQUEST_KB = 4              # a loop device takes a short write for a whole one; one page is never short


def store_of(point: Path) -> Path:
    """Return the directory that really holds the bytes of this disk: disks.fill and disks.empty work there."""
    return point.with_suffix(".store")


def mount(point: Path, megabytes: int) -> None:
    """Mount an empty thin disk there, unless there is one; raises OSError. devcluster/guardian.py removes it."""
    if os.path.ismount(point):
        return
    point.mkdir(exist_ok=True)
    store = store_of(point)
    disks.mount(store, megabytes)
    image = store / "image"
    with image.open("wb") as file:
        file.truncate(PROMISED * megabytes << 20)
    _run([*MKFS, str(image)])
    device = _run(["losetup", "-f", "--show", str(image)])
    try:
        (Path("/sys/block") / Path(device).name / "queue" / "max_sectors_kb").write_text(str(REQUEST_KB))
        _run(["mount", "-o", "nodiscard,errors=continue", device, str(point)])
    finally:
        _run(["losetup", "-d", device])         # as soon as it is not mounted
    (point / "lost+found").rmdir()


@functools.cache
def can_mount() -> bool:
    """Return whether mounting works here."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        point = Path(folder) / "disk"
        try:
            mount(point, 8)
        except OSError:
            return False
        finally:
            for one in (point, store_of(point)):
                subprocess.run(["umount", "-l", one], check=False, capture_output=True)
    return True


def let_forget(point: Path) -> None:
    """Drop what is only in the page cache and counts as written, as a loss of power does. What is still to be written
    stays. For a disk that no process writes."""
    for path in point.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                file = os.open(path, os.O_RDONLY)
                try:
                    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(file)


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise OSError(f"there is no {command[0]}") from error
    if done.returncode:
        raise OSError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout.strip()
