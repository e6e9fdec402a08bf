"""Observes the nodes from outside during an attack: their memory, and whether one of them ended."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from msgspec import Struct

from devcluster.node import NodeError
from tests.hostile.cluster import HostileCluster

LOOK_S = 0.05
RESTARTABLE = 75            # the exit code that a unit starts a node for again
RESTART_S = 0.2


class End(Struct, frozen=True):
    """The end of a node's process."""

    name: str
    pid: int
    code: int | None            # None: it was started again before anybody asked

    @property
    def told(self) -> str:
        """Describe in words how the process ended."""
        return f"{self.name} ended" + ("" if self.code is None else f" with {self.code}")


class Watch:
    """Looks at all nodes twenty times a second, in a thread."""

    def __init__(self, cluster: HostileCluster, *, restarts: bool) -> None:
        """`restarts`: restart a node whose exit code asks for it, as its unit does."""
        self._cluster = cluster
        self._restarts = restarts
        self._pids = {name: cluster.pid(name) for name in cluster.names}
        self._largest: dict[str, int] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self.ends: list[End] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def begin(self) -> int:
        """Restart the measurement; returns the largest node's memory now, in bytes."""
        self._largest = {}
        self._look()
        return self.largest_bytes

    @property
    def largest_bytes(self) -> int:
        """The most resident memory that a node had since `begin`."""
        return max(self._largest.values(), default=0)

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        for name, known in self._pids.items():
            pid = self._cluster.pid(name)
            if pid is not None:
                self._largest[name] = max(self._largest.get(name, 0), resident_bytes(pid))
            if known is not None and pid != known:
                self._ended(name, known)
            self._pids[name] = pid

    def _ended(self, name: str, pid: int) -> None:
        code = self._cluster.exit_code(name)
        self.ends.append(End(name, pid, code))
        if self._restarts and code == RESTARTABLE and not self._stopping.is_set():
            time.sleep(RESTART_S)
            try:
                self._cluster.restart(name, wait=False)
            except NodeError:
                return


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * 4096
    except (OSError, IndexError):
        return 0
