"""The definition of an attack: its actions, its kind of cluster, and the conditions that must hold during it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct, field

from tests.chaos.machines import clocks, disks, faulty_disk
from tests.hostile import limits, network
from tests.hostile.arena import Arena
from tests.hostile.ordinary import Habits

MIB = 1 << 20


class Bounds(Struct, frozen=True):
    """The conditions of an attack, in addition to those that always hold: see verdict.py."""

    p50_ms: float = 100.0           # of the ordinary client's commands
    gap_s: float = 5.0              # the longest time in which it got no job through
    back_s: float = 5.0             # from the end of the attack until a leader serves and all nodes are level
    rss_mb: int | None = None       # of each node, at any time during the attack
    growth_mb: int | None = None    # the same, more than before the attack


class Attack(Struct, frozen=True):
    """`prepare` is done before the ordinary client begins, `run` while it works."""

    name: str
    what: str
    run: Callable[[Arena], Awaitable[None]]
    seconds: float = 10.0
    prepare: Callable[[Arena], Awaitable[None]] | None = None
    config: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    descriptors: int | None = None      # a node's limit of open files
    address_mb: int | None = None       # of its address space
    memory_mb: int | None = None        # of its memory, as MemoryMax does; where that cannot be done it is watched
    disk_mb: int | None = None          # it has a disk of its own, so large
    slow_disks: bool = False            # the syncs of each can be made slow
    tls: bool = False                   # the nodes have certificates, and all clients use TLS
    fake_clocks: bool = False           # its wall clock can be set
    strangers: int = 0                  # the number of addresses besides loopback from which hostile clients come
    habits: Habits = Habits()           # of the ordinary client
    excused: tuple[str, ...] = ()       # errors that it may get during the attack, as "PUT: 503 Busy"
    restarts: bool = False              # a node that ends with 75 is started again, as its unit does
    bounds: Bounds = Bounds()

    def lacks(self) -> str:
        """Return what this machine lacks for it; empty when nothing is missing."""
        if self.fake_clocks and clocks.library() is None:
            return "needs libfaketime"
        if self.disk_mb is not None and not disks.can_mount():
            return "needs root and mount, for small disks"
        if self.slow_disks and not faulty_disk.can_build():
            return "needs cc, for slow disks"
        if self.strangers and not network.separate():
            return "needs root and ip, for a network of its own"
        if (self.descriptors or self.address_mb) and not limits.can_limit():
            return "needs prlimit"
        return ""
