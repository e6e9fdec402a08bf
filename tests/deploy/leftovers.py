"""Commands that are run when this process ends, also when it is killed: what else would remove a bridge?

As devcluster/guardian.py, which ends processes and removes folders. Run with `python -I`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

ATTEMPTS = 100          # what is removed may be in use by processes that are being ended meanwhile
PAUSE_S = 0.1


class Leftovers:
    """The side of the process that leaves something."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__], stdin=subprocess.PIPE, start_new_session=True
        )

    def later(self, *command: str) -> None:
        """Run this at the end; the last one added is run first."""
        assert self._process.stdin
        os.write(self._process.stdin.fileno(), f"{json.dumps(command)}\n".encode())

    def close(self) -> None:
        """Run everything now and wait for it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    """The side that stays behind."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)       # only the parent's end counts
    commands = [json.loads(line) for line in sys.stdin]
    for command in reversed(commands):
        for _ in range(ATTEMPTS):
            if subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0:
                break
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
