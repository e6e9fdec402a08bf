"""The listeners for beanstalkd clients: one at each node, and `sockpq-beanstalkd` in front of all of them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from devcluster.guardian import Guardian
from devcluster.node import NodeError

PROGRAM = "program"
READY_S = 30.0
LOOK_S = 0.02


class BeanstalkdProgram:
    """The process of `sockpq-beanstalkd`; it ends with `guardian`'s parent, whatever happens."""

    def __init__(self, address: str, servers: Sequence[str], log: Path, guardian: Guardian) -> None:
        """`address`: where it listens; `servers`: as it dials them; `log`: the file of its output."""
        self._command = [
            str(Path(sys.executable).parent / "sockpq-beanstalkd"), "--listen", address, "--servers", ",".join(servers)]
        self._log, self._guardian = log, guardian
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """True if there is a process."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; returns when it listens. Raises NodeError when it does not."""
        size = len(self.log())
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self._guardian.watch(self._process.pid)
        until = time.monotonic() + READY_S
        while "listening on" not in self.log()[size:]:
            if not self.running or time.monotonic() > until:
                raise NodeError(f"the program does not listen: {self.log()[size:]}")
            time.sleep(LOOK_S)

    def kill(self) -> None:
        """SIGKILL, unless the process has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._guardian.forget(self._process.pid)
            self._process = None

    def log(self) -> str:
        """Return its output since the start of the cluster."""
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""
