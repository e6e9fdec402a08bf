"""A process that outlives its parent just long enough to end what the parent started.

The parent tells it pids through a pipe. When the pipe ends, because the parent is done or was killed in any way, the
guardian kills the process groups that are still on its list and removes the folder, with what is mounted below it. Run
with `python -I`: it needs nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path


class Guardian:
    """The parent's side. Each process must lead a process group of its own."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__, str(folder)], stdin=subprocess.PIPE, start_new_session=True,
            env=dict(os.environ),   # a copy: Python forks as vfork does, and another thread may change the original
        )

    def watch(self, pid: int) -> None:
        """End this process when the parent ends."""
        self._tell(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        """This process has ended and its end was waited for: its number may soon be another's."""
        self._tell(f"-{pid}\n")

    def close(self) -> None:
        """Let the guardian do its work and wait for its end."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        assert self._process.stdin
        os.write(self._process.stdin.fileno(), line.encode())     # one write: a line is never sent by halves


def main(folder: str) -> None:
    """The guardian's side."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)       # only the parent's end counts
    pids: set[int] = set()
    for line in sys.stdin:
        (pids.add if line[0] == "+" else pids.discard)(int(line[1:]))
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    _unmount(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _unmount(folder: str) -> None:
    """Tests may have mounted small disks below the folder."""
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()]
    for point in reversed(points):
        if point.startswith(f"{folder}/"):
            subprocess.run(["umount", "-l", point], check=False)


if __name__ == "__main__":
    main(sys.argv[1])
