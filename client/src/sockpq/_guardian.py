"""Runs a program until it should stop, or until the parent process is gone; then removes its folder.

    python -I _guardian.py FOLDER SECONDS PROGRAM ARGUMENTS..

Any byte on standard input, or its end, is the signal to stop; the end comes however the parent ends. The program gets
SECONDS to end. Nothing but the standard library is needed.
"""

from __future__ import annotations

import select
import shutil
import signal
import subprocess
import sys

POLL_S = 0.05


def main(folder: str, stop_s: float, command: list[str]) -> int:
    """Run the program; returns its exit code.

    The folder stays when the program ends by itself, for the parent to read.
    """
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)       # only the parent's end counts
    while process.poll() is None:
        if select.select([0], [], [], POLL_S)[0]:
            _end(process, stop_s)
            shutil.rmtree(folder, ignore_errors=True)
    return process.returncode


def _end(process: subprocess.Popen[bytes], stop_s: float) -> None:
    process.terminate()
    try:
        process.wait(stop_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
