"""The settings of a queue and of the cluster (spec/state-machine 10), with their defaults."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from sockpqd.core.limits import (
    ERRORS_BYTES,
    PORTION_MAX,
    REMEMBERED_OF_QUEUE,
    RETAIN_BYTES,
    RETAIN_MAX,
    RETAINED_BYTES,
)
from sockpqd.core.ops.jobs import Policy, Then
from sockpqd.core.ops.queues import GroupBy, Order, Overflow, Sched


class QueueSettings(Struct, gc=False, frozen=True):
    """The settings of one queue; 0 means no limit. QueueChange explains each."""

    expire_ms: int = 0
    then: Then = Then.LATER
    order: Order = Order.FIFO
    tries: int = 0
    dead: str | None = None
    weight: int = 1
    limit: int = 0
    item_limit: int = 0
    capacity: int = 0
    data_bytes_max: int = 0
    batch: int = 0
    portion: int = PORTION_MAX
    keep_ms: int = 0
    paused_in: bool = False
    paused_out: bool = False
    ttl_ms: int = 0
    idle_ms: int = 0
    overflow: Overflow = Overflow.REFUSE
    bound: int = 0              # the session with which the queue ends; 0: none
    alarm: int = 0
    alarmed: bool = False       # as many jobs waited as `alarm` says, and since then always more than half of that
    pulse: str | None = None    # whose grants its hand-outs take
    sched: Sched = Sched.FIFO
    pause_ms: int = 0           # how long the present pause (OUT) is; 0: until it is ended
    pause_ends_ms: int = 0      # when it ends
    passing: bool = False       # they are there for the pause only, and end with it
    backoff_ms: int = 0         # how long a job is DELAYED after its first attempt that fails,
    backoff_max_ms: int = 0     # and at most after a later one
    error_bytes: int = ERRORS_BYTES
    dedup_max: int = REMEMBERED_OF_QUEUE        # keys of DEDUP that are remembered at a time
    retain_ms: int = 0          # for which records of ended jobs are kept; 0: there are none
    retain_max: int = RETAIN_MAX            # as many, and
    retain_bytes: int = RETAIN_BYTES        # as many bytes of them
    numbered: bool = False      # each job that is put or moved here has a number
    group_limit: int = 0        # of queues that choose among groups
    group_rate: int = 0
    group_per_ms: int = 0
    group_by: GroupBy = GroupBy.PUT
    group_header: str = ""     # of GroupBy.HEAD
    group_order: bool = False

    @property
    def by_groups(self) -> bool:
        """True if the queue chooses its jobs by their groups."""
        return self.sched is not Sched.FIFO

    @property
    def sleep_by_group(self) -> bool:
        """True if SLEEP of a job holds back its group (spec/fair 7)."""
        by_settings = self.group_limit or self.group_rate or self.group_by is not GroupBy.PUT
        return self.pulse is None and (self.sched is Sched.GROUPS or (self.by_groups and bool(by_settings)))

    @property
    def shaping(self) -> bool:
        """True if the settings affect how jobs are added or handed out, not only leases, ends and records."""
        others = replace(
            self, expire_ms=0, then=Then.LATER, tries=0, dead=None, weight=1, keep_ms=0, backoff_ms=0, backoff_max_ms=0,
            error_bytes=ERRORS_BYTES, dedup_max=REMEMBERED_OF_QUEUE, retain_ms=0, retain_max=RETAIN_MAX,
            retain_bytes=RETAIN_BYTES,
        )
        return others != PLAIN_SETTINGS


PLAIN_SETTINGS = QueueSettings()


def error_bytes_of(settings: Mapping[str, QueueSettings], queue: str) -> int:
    """Return the maximum total bytes of the error texts of the jobs in the queue, by these settings."""
    its = settings.get(queue)
    return ERRORS_BYTES if its is None else its.error_bytes


class ClusterSettings(Struct, gc=False, frozen=True):
    """The settings of the cluster; None: as configured on each node."""

    expire_default: Then = Then.LATER
    autocreate: bool = True
    policy: Policy = Policy.RANDOM
    grace_ms: int | None = None
    session_ttl_ms: int | None = None
    fast_empty: bool = False
    retained_bytes: int = RETAINED_BYTES    # of the records of all queues
