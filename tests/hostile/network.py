"""A network of this process alone: a loopback interface on which there may be addresses that are not loopback's.

What the servers grant to loopback strangers must not have, so hostile clients come from other addresses. An address
that is taken away leaves half of each connection behind, as a host does that has lost its power. Needs root and `ip`.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess

CLONE_NEWNET = 0x40000000
PREFIX = "10.255.77."

_entered = False


def separate() -> bool:
    """Return whether this process has a network of its own."""
    return _entered


def enter() -> bool:
    """Move this process, and all it will start, into a network of its own. To be called before there are threads.
    False where that cannot be done."""
    global _entered
    if not _entered and os.geteuid() == 0 and shutil.which("ip") is not None:
        _entered = ctypes.CDLL(None).unshare(CLONE_NEWNET) == 0 and _ip("link", "set", "lo", "up")
    return _entered


def stranger(number: int) -> str:
    """Return the address of the stranger with this number, from 0 on."""
    return f"{PREFIX}{number + 1}"


def add(address: str) -> None:
    """Let connections come from this address; raises OSError."""
    if not _ip("address", "replace", f"{address}/32", "dev", "lo"):
        raise OSError(f"cannot add the address {address}")


def remove(address: str) -> None:
    """Remove the address: its packets are dropped from now on, without notice to any connection."""
    _ip("address", "del", f"{address}/32", "dev", "lo")


def _ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0
