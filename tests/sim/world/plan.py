"""The plan that a seed draws for a run: nodes, sizes and faults; and what makes runs repeatable."""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from sockpqd.cluster import driver, limits
from sockpqd.cluster.leader import leadership, proposer
from sockpqd.cluster.paging import file_space
from sockpqd.cluster.raft import pysyncobj_adapter
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode
from sockpqd.core import Later, Then
from sockpqd.core import limits as core_limits
from sockpqd.core.handlers import dispatch
from sockpqd.core.pages import paged_run
from sockpqd.core.store import job_list, ready
from tests.core.model import give as model_give
from tests.core.model import model
from tests.core.model import sessions as model_sessions

NETWORK = (
    "connection lost", "partition", "one-way", "bridge", "isolated leader", "random cuts", "slow link", "narrow link",
    "deposed leader",
)
SIDES = ("half-open",)
MACHINES = (
    "crash", "power loss", "crash at a step", "pause", "clock jump", "offline", "snapshot", "slow disk", "failed fsync",
    "full disk", "full disks",
)
LOSSES = ("damage", "wiped disk")
PAGES = ("damaged pages",)
MISTAKES = ("older copy", "twin")
RELEASES = ("other release",)
CHANGES = ("add node", "add again", "remove node", "transfer", "service offline")
CHANGING = 0.5                  # in so many runs operators change the cluster
UPGRADING = 0.3                 # in so many runs nodes are given another release
OVERLAPPING = 0.6               # in so many runs small entries overlap
FRAGMENTS = 0.3                 # of the seeds
GROUPED = 0.1                   # in so many runs all clients are of groups
OPERATIONS = 120                # of clients, answered; then faults stop (the end adds about as many),
TROUBLE_S = 3.5                 # or after so long
DRIFT_MAX = 0.024               # of each clock: two run apart by less than the 5% that leases allow for
OLD_LEVEL, NEW_LEVEL = 2, 3     # the feature levels of the two releases: the newer one brought Later


@dataclass
class Plan:
    """The plan of one run."""

    nodes: int                  # founders of the cluster
    spares: int                 # further nodes that may be added
    segment_bytes: int
    window_bytes: int
    heartbeat_ms: int
    grace_ms: int
    expire_default: Then
    clients: int
    think_s: float
    pipeline: tuple[int, ...]
    clones: float
    fault_s: float              # mean time between two faults
    calm_s: float               # faults begin after so long
    drift: float
    bytes_per_s: float          # of an undisturbed line; infinity: what is sent together arrives together
    fine_turns: bool            # take an idle turn every 10 ms, as a real node does
    child_s: tuple[float, ...]  # how long a child writes a snapshot
    weights: dict[str, float]
    constants: list[tuple[Any, str, Any]] = field(default_factory=list)
    sessions: float = 0.0       # so many clients work in a session
    extended: float = 0.0       # so much of what clients ask for is beyond the original protocol
    upgraded: bool = False      # all nodes begin with the older release
    passing: bool = False       # among that are queues that do not last, and jobs in several queues
    ended: bool = False         # and numbers, headers, results and records of jobs that have ended
    grouped: bool = False       # all clients are of groups, and ask for nothing else
    operations: int = OPERATIONS        # the trouble ends when so many were answered,
    trouble_s: float = TROUBLE_S        # or after so long
    paged: bool = False         # jobs leave memory as soon as they can
    deep: float = 0.0           # so much of what clients ask for is one more plain job for the same queue,
    asleep: float = 0.0         # and so many of these jobs are for later
    steady: float = 1.0         # the steady lane is open in so many turns
    slices: float = 0.0         # a follower's turn has applied enough after so many of the entries
    sync_s: float = 0.0         # what a sync takes usually; 0: nothing, unless a fault makes it slow
    fragments: bool = False     # most of what clients ask for goes into the log in fragments
    subscribed: bool = False    # there are subscribers to events: nodes learn of commits at once
    wrong_clocks: int = 1       # the wall clocks of so many nodes are set by somebody, at most all
    feed_keep_bytes: int = 0    # of the journal, for copies in other regions
    script: Callable[[Any], Iterator[float]] | None = None      # of a world: what happens instead of drawn faults


# Half a minute in which leaders fail again and again, and clients of groups take their time: such runs cost little.
SLOW_GROUPS: dict[str, Any] = {
    "grouped": True, "trouble_s": 30.0, "operations": 10**9, "fault_s": 2.0, "think_s": 1.0, "pipeline": (1, 3),
}

# Queues of a few jobs have runs, blocks, files of pages and pages on the disk.
PAGED: list[tuple[Any, str, Any]] = [
    (ready, "UNSPLIT_JOBS_MAX", 0),
    (job_list, "BLOCK_JOBS_MAX", 2),
    (paged_run, "BLOCK_JOBS_MAX", 2),
    (file_space, "SEGMENT_BYTES", 400),
    (file_space, "WRITE_BYTES", 1),
]


def draw(seed: int, **fixed: Any) -> Plan:
    """Draw the plan of a seed; `fixed` overrides fields of it."""
    rng = random.Random(seed)
    nodes = rng.choice((1, 3, 3, 3, 3, 3, 3, 3, 5, 5))
    changing = rng.random() < CHANGING
    kinds = MACHINES + (NETWORK + LOSSES if nodes > 1 or changing else ())
    weights = {kind: rng.choice((0.0, 1.0, 1.0, 3.0)) for kind in kinds}
    weights |= {kind: rng.choice((0.0, 2.0, 6.0)) * (3 if kind == "add again" else 1) for kind in CHANGES if changing}
    plan = Plan(
        nodes=nodes,
        spares=rng.choice((1, 2)) if changing else 0,
        segment_bytes=rng.choice((4 << 10, 8 << 10, 32 << 10)),
        window_bytes=rng.choice((500, 5000, 1 << 20)),
        heartbeat_ms=rng.choice((50, 100, 150)),
        grace_ms=rng.choice((0, 300, 10_000)),
        expire_default=rng.choice((Then.LATER, Then.DONE)),
        clients=rng.choice((2, 3, 5)),
        think_s=rng.choice((0.05, 0.15)),
        pipeline=rng.choice(((1, 2), (1, 5), (3, 8))),
        clones=rng.choice((0.0, 0.0, 0.0, 0.01)),
        fault_s=rng.choice((0.08, 0.15, 0.3)),
        calm_s=rng.choice((0.0, 0.5, 0.8)),
        drift=rng.choice((0.0, 0.001, DRIFT_MAX)),
        bytes_per_s=rng.choice((1e8, float("inf"))),
        fine_turns=rng.random() < 0.03,
        child_s=rng.choice(((0.0,), (0.0, 0.02, 0.5))),
        weights=weights,
        constants=_constants(rng),
        sessions=rng.choice((0.0, 0.4, 0.7, 1.0)),
        extended=rng.choice((0.0, 0.2, 0.4, 0.8)),
    )
    plan.constants += [
        (limits, "BACKGROUND_SYNC_BYTES", rng.choice((0, 300, 256 << 10))),
        (limits, "COMPACTION_REST_S", rng.choice((0.0, 0.0, 0.5))),
    ]
    spent = rng.choice((1, 40, 8 << 20))
    if (limits, "ENTRIES_IN_FLIGHT_MAX", 1) in plan.constants:     # else what an entry leaves out could be overtaken
        plan.constants += spent_constants(spent)
    plan.subscribed = rng.random() < 0.5
    plan.passing = random.Random(f"passing {seed}").random() < 0.5
    plan.ended = random.Random(f"ended {seed}").random() < 0.5
    plan.paged = random.Random(f"paged {seed}").random() < 0.5
    plan.grouped = random.Random(f"grouped {seed}").random() < GROUPED
    later = random.Random(f"mistakes {seed}")       # drawn apart: what was drawn before stays as it was
    plan.upgraded = later.random() < UPGRADING
    weights |= {kind: later.choice((0.0, 1.0, 3.0)) for kind in MISTAKES if nodes > 1 or changing}
    weights |= {kind: later.choice((1.0, 4.0)) for kind in RELEASES if plan.upgraded}
    if plan.paged and (nodes > 1 or changing):
        weights |= {kind: random.Random(f"{kind} {seed}").choice((0.0, 6.0, 12.0)) for kind in PAGES}
    if nodes > 1 or changing:
        weights |= {kind: random.Random(f"{kind} {seed}").choice((0.0, 1.0, 2.0)) for kind in SIDES}
    plan.constants += overlapping(random.Random(f"overlapping {seed}").random() < OVERLAPPING)
    plan.steady = random.Random(f"steady {seed}").choice((0.0, 0.3, 0.7, 0.95, 1.0))
    plan.slices = random.Random(f"slices {seed}").choice((0.0, 0.0, 0.2, 0.5, 0.9))
    plan.sync_s = random.Random(f"syncs {seed}").choice((0.0, 0.0, 0.0, 0.0003, 0.002, 0.005))
    plan.fragments = random.Random(f"fragments {seed}").random() < FRAGMENTS
    plan.wrong_clocks = random.Random(f"clocks {seed}").choice((1, 1, 2, 3, 5))
    for name, value in fixed.items():
        setattr(plan, name, value)
    if plan.grouped:
        plan.sessions = plan.clones = 0.0
        plan.fragments = False
    if plan.fragments:
        plan.constants += fragmenting(random.Random(f"size of fragments {seed}"))
    if plan.paged:
        plan.constants += PAGED
        least = random.Random(f"bodies {seed}").choice((1, 4, 4096))
        plan.constants.append((core_limits, "BODY_BYTES_MIN", least))
        plan.deep = fixed.get("deep", random.Random(f"deep {seed}").choice((0.0, 0.2, 0.5, 0.8)))
        plan.asleep = fixed.get("asleep", random.Random(f"asleep {seed}").choice((0.0, 0.5, 0.9)))
    return plan


def overlapping(pays: bool) -> list[tuple[Any, str, Any]]:
    """Return patches that allow a second entry in flight, and a background sync, even for the smallest entries."""
    if not pays:
        return []
    return [
        (limits, "OVERLAP_OPERATIONS_MIN", 1), (limits, "SLOW_ANSWERS_S", 0.0),
        (limits, "SLUGGISH_SYNC_S", 0.0),
    ]


def fragmenting(rng: random.Random) -> list[tuple[Any, str, Any]]:
    """Cut data above these sizes into pieces of this many bytes.

    The largest jobs become some 50 fragments, as many as the product makes of its largest operation. With many more, a
    client repeats a request before the first one, which its node still executes, has ended, and so on for ever.
    """
    return [(limits, "WHOLE_BYTES_MAX", rng.choice((64, 90, 200))), (limits, "FRAGMENT_BYTES", rng.choice((60, 150)))]


def spent_constants(spent: int) -> list[tuple[Any, str, Any]]:
    """Patch the limit of bytes that one entry may hand out."""
    return [
        *((module, "SPENT_MAX", spent) for module in (core_limits, model)),
        (core_limits, "STEP", 512 if spent > 40 else 0),
        (core_limits, "HANDED_BYTES_MAX", 2 * spent),
        (model_give, "PICK_BYTES", 2 * spent),
    ]


def _constants(rng: random.Random) -> list[tuple[Any, str, Any]]:
    """Patch the product's sizes to be so small that short runs reach them."""
    choke = rng.choice((2000, 20_000, 8 << 20))
    return [
        (limits, "COMPACTION_BYTES_MIN", rng.choice((1000, 3000, 10_000, 64 << 20))),
        (limits, "COMPACTION_FACTOR", rng.choice((0, 0, 1))),
        (limits, "BALLAST_STEP_BYTES", rng.choice((1000, 20_000, 1 << 40))),
        (limits, "RESERVE_BYTES", 2000),
        (limits, "APPEND_BYTES", rng.choice((1000, 4000, 1 << 20))),
        (limits, "CHOKE_BYTES", choke),
        (limits, "UNCHOKE_BYTES", min(rng.choice((0, 1000, 1 << 20)), choke)),
        (limits, "SNAPSHOT_CHUNK_BYTES", rng.choice((500, 2000, 256 << 10))),
        (limits, "SNAPSHOT_WINDOW_BYTES", rng.choice((1, 2000, 2 << 20))),
        (limits, "ENTRIES_IN_FLIGHT_MAX", rng.choice((1, 1, 4))),
        (limits, "ENTRY_OPERATIONS_MAX", rng.choice((1, 5, 640, 640, 640))),
        *_session_constants(rng),
    ]


def _session_constants(rng: random.Random) -> list[tuple[Any, str, Any]]:
    """Patch the sizes of sessions, which the model of the queue has to know as well."""
    window, ttl_ms = rng.choice((8, 64)), rng.choice((100, 1000))
    return [
        (core_limits, "REQUEST_WINDOW", window),
        (model_sessions, "WINDOW", window),
        (core_limits, "SESSION_TTL_MS_MIN", ttl_ms),
        (model_sessions, "SECOND_MS", ttl_ms),
    ]


def _same_hash(node: PeerNode) -> int:
    return 0


_check_version_once = functools.cache(pysyncobj_adapter.check_version)     # it reads files at each start of a node


@contextlib.contextmanager
def surroundings(seed: int, plan: Plan) -> Iterator[None]:
    """The plan's constants, and nothing that differs from process to process.

    pysyncobj iterates over sets of nodes, whose order follows their hash: with equal ones it is the order in which they
    were put in. What the product takes from the operating system's randomness comes from the seed.
    """
    rng = random.Random(seed + 1)
    changes: list[tuple[Any, str, Any]] = [
        *plan.constants,
        (PeerNode, "__hash__", _same_hash),
        (driver, "check_version", _check_version_once),
        (proposer, "_random", rng),
        (leadership, "os", SimpleNamespace(urandom=rng.randbytes)),
    ]
    if plan.upgraded:
        changes.append((dispatch, "LEVELS", {Later: NEW_LEVEL}))
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    state = random.getstate()
    random.seed(seed)
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        random.setstate(state)
        for owner, name, value in before:
            setattr(owner, name, value)
