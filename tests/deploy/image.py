"""The system every container starts with: a small Debian, built once by debootstrap and kept outside the tree.

It has what a host has that was just set up: systemd, sshd, sudo, Python. Nothing of sockpqd, no pip, no network beyond
the bridge. It is never written to again: each container has an overlay of its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SUITE = "bookworm"
MIRROR = os.environ.get("SOCKPQD_TEST_MIRROR", "http://deb.debian.org/debian")
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "python3", "iproute2", "nftables",
)
LOGIN = "admin"                 # who ssh logs in as; sudo makes him root, as on a cloud's images
BUILD_S = 1200

# Run inside, when the packages are there.
PREPARE = f"""
set -e
useradd --create-home --shell /bin/bash {LOGIN}
echo '{LOGIN} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/{LOGIN}
systemctl enable systemd-networkd ssh
systemctl disable apt-daily.timer apt-daily-upgrade.timer
rm -rf /var/cache/apt/archives/*.deb /var/lib/apt/lists/*
: > /etc/machine-id
"""


def image() -> Path:
    """The folder with the system, built now if it is not there. Raises CalledProcessError."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "sockpqd-deploy")
    cache.mkdir(parents=True, exist_ok=True)
    contents = hashlib.sha256("\n".join((SUITE, PREPARE, *PACKAGES)).encode()).hexdigest()[:12]
    system = cache / f"{SUITE}-{contents}"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)        # two runs at once build it once
        if not system.exists():
            _build(system)
    return system


def _build(system: Path) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=system.parent))
    unfinished.chmod(0o755)
    log = system.with_suffix(".log")
    try:
        with log.open("w") as output:
            for command in (
                ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(unfinished), MIRROR],
                ["chroot", str(unfinished), "sh", "-c", PREPARE],
            ):
                subprocess.run(command, stdout=output, stderr=output, check=True, timeout=BUILD_S)
        unfinished.rename(system)
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"the system for the containers could not be built; see {log}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
