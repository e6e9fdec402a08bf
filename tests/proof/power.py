"""Disks that can lose their power: ext4 on a loop device. Needs root.

`lose` copies the device as it stands, which has what the file system has sent to it and nothing of what is only in
memory, and mounts the copy, as a machine does that comes up again: the journal of ext4 is replayed. The copy is of one
moment: the kernel counts what is written to the device, and when that has changed during the copy it is copied again.
(A device may itself lose data that it was not asked to flush; that is not simulated here.)
"""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from tests.proof.network import run

MKFS = ("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-E", "nodiscard")
OPTIONS = "nodiscard,errors=continue"
ATTEMPTS = 20


class Unsteady(OSError):
    """The device was written to whenever it was copied."""


def mount(point: Path, megabytes: int) -> None:
    """Put an empty disk there, unless there is one; raises OSError. devcluster/guardian.py takes it away."""
    if os.path.ismount(point):
        return
    point.mkdir(exist_ok=True)
    image = _image(point, 0)
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    run([*MKFS, str(image)])
    _attach(image, point)


def lose(point: Path) -> int:
    """Forget what is not on the device. No process may have a file open there.

    Returns how many files have lost something: those that were not the same before. Raises OSError.
    """
    before = _digests(point)
    device = Path(run(["findmnt", "-n", "-o", "SOURCE", str(point)]))
    old = Path(run(["losetup", "-n", "-O", "BACK-FILE", str(device)]))
    new = _image(point, int(old.suffix[1:]) + 1)
    for _ in range(ATTEMPTS):
        count = _writes(device)
        run(["cp", "--sparse=always", str(old), str(new)])
        if _writes(device) == count:
            break
    else:
        raise Unsteady(f"{device} is written to all the time")
    run(["umount", str(point)])
    old.unlink()
    _attach(new, point)
    return len(before.items() - _digests(point).items())


@functools.cache
def can_lose() -> bool:
    """Return whether it works here."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        point = Path(folder) / "disk"
        try:
            mount(point, 16)
            lose(point)
        except OSError:
            return False
        finally:
            subprocess.run(["umount", "-l", point], check=False, capture_output=True)
    return True


def _attach(image: Path, point: Path) -> None:
    device = run(["losetup", "-f", "--show", str(image)])
    try:
        run(["mount", "-o", OPTIONS, device, str(point)])
    finally:
        run(["losetup", "-d", device])          # as soon as it is not mounted
    if (point / "lost+found").exists():
        (point / "lost+found").rmdir()


def _image(point: Path, number: int) -> Path:
    return point.with_suffix(f".{number}")


def _writes(device: Path) -> str:
    """Return how often, and how much, was written to it since it was made."""
    return " ".join((Path("/sys/block") / device.name / "stat").read_text().split()[4:7])


def _digests(point: Path) -> dict[Path, str]:
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in point.rglob("*") if path.is_file()}
