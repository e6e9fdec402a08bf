"""A local cluster whose machines can be altered: clocks that are set, disks that are small, slow, thin or that fail.

What its connections lead through is the matter of its subclasses: proxies (cluster.py), or network namespaces
(tests/proof).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from devcluster.authority import Authority
from devcluster.cluster import LocalCluster
from devcluster.node import NodeError, Settings
from devcluster.ports import HOST, free_ports
from tests.chaos.machines import altered, clocks, disks, faulty_disk, slow_disk, thin_disks
from tests.chaos.machines.beanstalkd import PROGRAM, BeanstalkdProgram
from tests.chaos.machines.faulty_disk import FaultyDisk

READY_S = 60.0
PRELOAD = "LD_PRELOAD"


class AlterableCluster(LocalCluster):
    """LocalCluster with the alterations that it is made with."""

    def __init__(
        self, nodes: int = 3, config: Settings | None = None, directory: Path | None = None, ready_s: float = READY_S,
        *, fake_clocks: bool = False, disk_mb: int | None = None, slow_disks: bool = False, small_pages: bool = False,
        beanstalkd: bool = False, faulty_disks: bool = False, thin_disk_mb: int | None = None, tls: bool = False,
    ) -> None:
        """`fake_clocks`: `set_clock` works (clocks.py); `disk_mb`: every node has a disk of its own (disks.py);
        `slow_disks`: `set_disk` works (slow_disk.py); `small_pages`: most jobs are on the disk (small_pages.py);
        `beanstalkd`: `beanstalkd_doors` are open (beanstalkd.py); `faulty_disks`: `faulty_disk` works (faulty_disk.py);
        `thin_disk_mb`: every node has a disk without the space that it promises (thin_disks.py); `tls`: between nodes
        only (tls_between_nodes.py)."""
        if disk_mb is not None or thin_disk_mb is not None:     # such a disk is beyond the usual mark from the start
            limits = {"disk_free_bytes_min": 0, **(config or {}).get("limits", {})}
            config = {**(config or {}), "limits": limits}
        self._certificates = tempfile.TemporaryDirectory() if tls else None
        authority = Authority(Path(self._certificates.name)) if self._certificates is not None else None
        super().__init__(nodes, config, directory, ready_s, authority)
        self._context = None            # clients use no TLS
        self._faketime = clocks.library() if fake_clocks else None
        self._disk_mb = disk_mb
        self._slow_disks = slow_disks
        self._faulty_disks: dict[str, FaultyDisk] | None = {} if faulty_disks else None
        self._thin_disk_mb = thin_disk_mb
        self._alterations = [word for word, is_on in (
            ("slow_disk", slow_disks), ("small_pages", small_pages), ("tls_between_nodes", tls)) if is_on]
        self._with_beanstalkd = beanstalkd
        self._program: BeanstalkdProgram | None = None
        self.beanstalkd_doors: dict[str, str] = {}      # the address of each node's listener and of the program
        if fake_clocks and self._faketime is None:
            raise NodeError("there is no libfaketime: install the package libfaketime")

    def start(self) -> None:
        """Start as LocalCluster does, and the program for clients of beanstalkd."""
        super().start()                         # calls `stop` when it fails
        if self._with_beanstalkd:
            assert self._guardian
            address, log = self.beanstalkd_doors[PROGRAM], self.folder / f"{PROGRAM}.log"
            self._program = BeanstalkdProgram(address, self.servers, log, self._guardian)
            try:
                self._program.start()
            except BaseException:
                self.stop()
                raise

    def stop(self) -> dict[str, int | None]:
        """Stop as LocalCluster does."""
        try:
            if self._program is not None:
                self._program.kill()
            return super().stop()
        finally:
            if self._certificates is not None:
                self._certificates.cleanup()

    @property
    def program(self) -> BeanstalkdProgram:
        """The process of `sockpq-beanstalkd` (with `beanstalkd`)."""
        assert self._program
        return self._program

    # other surroundings of a node

    def set_clock(self, name: str, ahead_s: float) -> None:
        """Let the node's wall clock be so far ahead of the real one (with `fake_clocks`)."""
        assert self._faketime
        clocks.set_ahead(self._clock(name), ahead_s)

    def set_disk(self, name: str, slower_ms: float) -> None:
        """Let each sync of the node's disk take longer by this time (with `slow_disks`)."""
        assert self._slow_disks
        slow_disk.set_ms(self._disk(name), slower_ms)

    def faulty_disk(self, name: str) -> FaultyDisk:
        """The disk of this node (with `faulty_disks`)."""
        assert self._faulty_disks is not None
        if name not in self._faulty_disks:
            self._faulty_disks[name] = FaultyDisk(self._faults(name))
        return self._faulty_disks[name]

    # hooks of LocalCluster

    def environment(self, name: str) -> Mapping[str, str]:
        listen = {"SOCKPQD_LISTEN_BEANSTALKD": self.beanstalkd_doors[name]} if self._with_beanstalkd else {}
        clock = clocks.environment(self._faketime, self._clock(name)) if self._faketime else {}
        disk = slow_disk.environment(self._disk(name)) if self._slow_disks else {}
        faults = faulty_disk.environment(self._faults(name)) if self._faulty_disks is not None else {}
        libraries = " ".join(one[PRELOAD] for one in (clock, faults) if one)
        preload = {PRELOAD: libraries} if libraries else {}
        words = {altered.VARIABLE: " ".join(self._alterations)} if self._alterations else {}
        return {**clock, **disk, **faults, **preload, **words, **listen}

    def _prepare(self) -> None:
        if self._with_beanstalkd:
            self.beanstalkd_doors = self._doors([*self.names, PROGRAM])
        super()._prepare()

    def _doors(self, names: list[str]) -> dict[str, str]:
        """Return the addresses of each node's listener for beanstalkd clients and of the program."""
        return {name: f"{HOST}:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)}

    def _prepare_node(self, name: str) -> None:
        if self._disk_mb is not None:
            disks.mount(self.folder / name, self._disk_mb)
        if self._thin_disk_mb is not None:
            thin_disks.mount(self.folder / name, self._thin_disk_mb)
        if self._faulty_disks is not None:
            self.faulty_disk(name).heal()
        if self._faketime:
            clocks.set_ahead(self._clock(name), 0)
        if self._slow_disks:
            slow_disk.set_ms(self._disk(name), 0)
        super()._prepare_node(name)
        if self._alterations:
            self.run_by(name, *altered.COMMAND)

    def _faults(self, name: str) -> Path:
        return self.folder / f"{name}.faults"

    def _clock(self, name: str) -> Path:
        return self.folder / f"{name}.clock"

    def _disk(self, name: str) -> Path:
        return self.folder / f"{name}.disk"
