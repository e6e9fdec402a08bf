"""The settings of a queue and of the cluster (spec/state-machine 10), as they stand when nothing is set."""

from __future__ import annotations

from msgspec import Struct

from core.ops.jobs import Policy, Then
from core.ops.queues import Order

PORTION_MAX = 1000          # jobs that one entry activates, purges or kicks: keeps it short
QUEUES_MAX = 100_000        # that have settings
RESORTED_JOBS_MAX = 2_000   # waiting jobs of a queue whose order may still be changed

# An entry is over when this was spent, and its other operations are left to the next one: a byte handed out counts as
# one, a step of work that cannot be foreseen (core/ops/cost.py has the measure) as STEP. The last operation may go
# beyond it; a job has 8 MiB at most, so an entry hands out 16 MiB at most.
SPENT_MAX = 8 << 20
STEP = 512
HANDED_BYTES_MAX = 2 * SPENT_MAX


class QueueSettings(Struct, gc=False, frozen=True):
    """Of one queue; 0 stands for no limit. QueueChange tells what each means."""

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


class ClusterSettings(Struct, gc=False, frozen=True):
    """Of the cluster; None: what each node's own configuration says."""

    expire_default: Then = Then.LATER
    autocreate: bool = True
    policy: Policy = Policy.RANDOM
    grace_ms: int | None = None
    session_ttl_ms: int | None = None
    fast_empty: bool = False
