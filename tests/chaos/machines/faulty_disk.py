"""Disks that fail on request, with any errno, or are slow: a library for LD_PRELOAD.

It is built with cc when it is first needed. A file of eight words of 32 bits is shared with the process: while
`sync_left` (fsync, fdatasync) or `write_left` (pwritev) is not 0 each call takes one and fails; `delay_us` is how much
longer each sync takes; the rest counts.
"""

from __future__ import annotations

import functools
import hashlib
import mmap
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
TOOLS = Path(__file__).parents[3] / ".tools"
VARIABLE = "FAULTY_DISK"
WORDS = ("sync_errno", "sync_left", "write_errno", "write_left", "delay_us", "syncs_failed", "writes_failed", "syncs")
BYTES = 4 * len(WORDS)


def can_build() -> bool:
    """Return whether there is a compiler."""
    return shutil.which("cc") is not None


@functools.cache
def library() -> Path:
    """Return the built library; raises OSError when it cannot be built."""
    text = SOURCE.read_bytes()
    built = TOOLS / f"faulty-disk-{hashlib.sha256(text).hexdigest()[:12]}.so"
    if not built.exists():
        TOOLS.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=TOOLS) as folder:      # a rename: two at once do not disturb each other
            new = Path(folder) / built.name
            done = subprocess.run(
                ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", new, SOURCE, "-ldl"], capture_output=True, text=True,
                check=False)
            if done.returncode:
                raise OSError(f"cc cannot build {SOURCE.name}: {done.stderr}")
            new.rename(built)
    return built


def environment(file: Path) -> Mapping[str, str]:
    """Return the environment of a process whose disk is controlled by `file`."""
    return {"LD_PRELOAD": str(library()), VARIABLE: str(file)}


class FaultyDisk:
    """The control words of one node's disk."""

    def __init__(self, file: Path) -> None:
        """Make the file unless it exists."""
        if not file.exists():
            file.write_bytes(bytes(BYTES))
        descriptor = os.open(file, os.O_RDWR)
        try:
            self._words = memoryview(mmap.mmap(descriptor, BYTES)).cast("I")
        finally:
            os.close(descriptor)

    def __getitem__(self, word: str) -> int:
        return self._words[WORDS.index(word)]

    def __setitem__(self, word: str, value: int) -> None:
        self._words[WORDS.index(word)] = value

    def fail(self, call: str, code: int, times: int) -> None:
        """Let this many of the next calls fail with this error; `call`: "sync" or "write"."""
        self[f"{call}_errno"] = code
        self[f"{call}_left"] = times

    def heal(self) -> None:
        """Let all calls succeed, at once."""
        for word in ("sync_left", "write_left", "delay_us"):
            self[word] = 0

    @property
    def failed(self) -> int:
        """Return how many calls have failed."""
        return self["syncs_failed"] + self["writes_failed"]
