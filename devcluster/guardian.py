"""A process that outlives its parent just long enough to kill the processes that the parent started.

The parent sends it process ids through a pipe. When the pipe is closed, because the parent is done or was killed, the
guardian kills the remaining process groups and removes the folder, after unmounting everything below it. It runs with
`python -I` and needs only the standard library.
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
    """The parent's side. Each watched process must lead its own process group."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__, str(folder)], stdin=subprocess.PIPE, start_new_session=True,
            env=dict(os.environ),   # a copy, because Python uses vfork and another thread may change the original
        )

    def watch(self, pid: int) -> None:
        """Kill this process when the parent ends."""
        self._tell(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        """Stop watching a process that has ended and was waited for, as its id may be reused."""
        self._tell(f"-{pid}\n")

    def close(self) -> None:
        """Make the guardian clean up, and wait for it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        assert self._process.stdin
        os.write(self._process.stdin.fileno(), line.encode())     # in one write, so that no line is sent partly


def main(folder: str) -> None:
    """Run the guardian: watch until standard input ends, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)       # only the end of the parent counts
    pids: set[int] = set()
    for line in sys.stdin:
        (pids.add if line[0] == "+" else pids.discard)(int(line[1:]))
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    _unmount(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _unmount(folder: str) -> None:
    """Unmount the small disks that tests may have mounted below the folder."""
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()]
    for point in reversed(points):
        if point.startswith(f"{folder}/"):
            subprocess.run(["umount", "-l", point], check=False)


if __name__ == "__main__":
    main(sys.argv[1])
