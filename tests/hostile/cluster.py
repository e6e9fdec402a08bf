"""A cluster of real nodes with limits (descriptors, address space, memory, disk) and clocks that can be set."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from devcluster.authority import Authority
from devcluster.cluster import LocalCluster
from devcluster.node import Settings
from devcluster.ports import HOST, free_ports
from tests.chaos.machines import clocks, disks, faulty_disk
from tests.chaos.machines.faulty_disk import FaultyDisk

READY_S = 60.0
POLL_S = 0.02


class HostileCluster(LocalCluster):
    """LocalCluster with `wrapper`, a command before each node's program, by its name."""

    def __init__(
        self, config: Settings, *, wrappers: Mapping[str, Sequence[str]], disk_mb: int | None = None,
        fake_clocks: bool = False, slow_disks: bool = False, authority: Authority | None = None,
    ) -> None:
        """`disk_mb`: each node has a disk of its own; `fake_clocks`: `set_clock` works; `slow_disks`: `disk` does.

        (The files disks.py, clocks.py and faulty_disk.py in chaos/machines.)
        """
        super().__init__(3, config, ready_s=READY_S, authority=authority)
        self.ca = None if authority is None else str(authority.ca)      # whom clients trust
        self._wrappers = wrappers
        self._disk_mb = disk_mb
        self._slow_disks = slow_disks
        self._faketime = clocks.library() if fake_clocks else None

    def set_clock(self, name: str, ahead_s: float) -> None:
        """Let the node's wall clock be so far ahead of the real one (with `fake_clocks`)."""
        clocks.set_ahead(self._clock(name), ahead_s)

    def serving(self, timeout: float) -> str | None:
        """Return the node that serves, as soon as one does, regardless of the others; None when none does in time."""
        until = time.monotonic() + timeout
        while True:
            leader = self.leader()
            if leader is not None or time.monotonic() > until:
                return leader
            time.sleep(POLL_S)

    def exit_code(self, name: str) -> int | None:
        """Return the exit code of a node's process; None while it runs."""
        return self._nodes[name].wait(0)

    def environment(self, name: str) -> Mapping[str, str]:
        clock = clocks.environment(self._faketime, self._clock(name)) if self._faketime else {}
        disk = faulty_disk.environment(self._disk_file(name)) if self._slow_disks else {}
        return {**clock, **disk, "SOCKPQD_BEANSTALKD_JOB_BYTES_MAX": str(8 << 20)}

    def wrapper(self, name: str) -> Sequence[str]:
        return self._wrappers.get(name, ())

    def beanstalkd(self, name: str) -> str:
        """Return where beanstalkd clients reach the node."""
        return self._listens[name]["beanstalkd"]

    def disk(self, name: str) -> FaultyDisk:
        """Return the disk of a node (with `slow_disks`)."""
        return FaultyDisk(self._disk_file(name))

    def _prepare_node(self, name: str) -> None:
        self._listens[name]["beanstalkd"] = f"{HOST}:{free_ports(1)[0]}"
        if self._disk_mb is not None:
            disks.mount(self.folder / name, self._disk_mb)
        if self._faketime:
            clocks.set_ahead(self._clock(name), 0)
        if self._slow_disks:
            FaultyDisk(self._disk_file(name))
        super()._prepare_node(name)

    def _disk_file(self, name: str) -> Path:
        return self.folder / f"{name}.disk"

    def _clock(self, name: str) -> Path:
        return self.folder / f"{name}.clock"
