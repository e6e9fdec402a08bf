"""The facts about a run that the checker needs besides its history."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class Running(Struct, frozen=True):
    """A job that RUNLIST DATA shows at the end of the run."""

    id: int
    body: str


class Node(Struct, frozen=True):
    """The state that a node reports when all nodes are level: CLUSTER HASH and TOTAL."""

    name: str
    applied: int
    hash: str
    total: tuple[int, int, int, int]    # queues, priorities, waiting, running


class Facts(Struct, frozen=True, kw_only=True):
    """Times are in milliseconds, except `start_ns`. A missing field causes no accusation, if the clocks do not jump."""

    start_ns: int = 0               # of the run, on the clock of the records: for texts

    # How much sooner than it should a lease may end, because two leaders' clocks differ; None: whenever it likes.
    lease_slack_ms: int | None = 100
    # How much later than it should a lease may end: the failover grace and the longest outage. None: unknown.
    lease_late_ms: int | None = None

    wake_ms: int = 1000             # a job and a client that waits for it may coexist so long
    wake_slack_ms: int = 500        # what a command may need until it is at the server, and an answer until it is back
    serving_gap_ms: int = 250       # a server serves as long as its answers are not farther apart
    # Does a connection stand as long as its client does not notice its end? Then a wait without any answer counts too.
    connections_stand: bool = False

    cut_grace_ms: int = 2000        # after so long a node that reaches no majority has fallen silent

    # The run ended with a drain: everything left was taken and done, until nothing was there and all leases were over.
    # Then `running` must be what RUNLIST DATA shows after it (hand-outs without a lease to clients that never got
    # them), and `waiting` the waiting jobs that TOTAL counts.
    drained: bool = False
    running: tuple[Running, ...] = ()
    waiting: int = 0
    nodes: tuple[Node, ...] = ()

    rates: Mapping[str, tuple[int, float]] = field(default_factory=dict)    # of queues: jobs, in so many seconds
    tries: Mapping[str, int] = field(default_factory=dict)      # TRIES of the queues that have it
