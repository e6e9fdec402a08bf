"""`pqctl region drill`: another copy of a live cluster is made, compared, promoted, used and removed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from sockpq import Client, Refused, ReplicaStatus, SockpqError

from sockpqd.pqctl import replicas
from sockpqd.pqctl.actions.hashes import ANSWER_S, Comparison
from sockpqd.pqctl.actions.regions.compare import hashes, met
from sockpqd.pqctl.actions.regions.drill_node import DrillNode
from sockpqd.pqctl.actions.regions.following import feed
from sockpqd.pqctl.connect import Servers, cluster_of
from sockpqd.pqctl.doctor.check import FAIL
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, FILE_ERROR, REFUSED, UNREACHED, Failure
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import counted, sized

PAUSE_S = 0.02
LEVEL_S = 1.0           # a copy whose lag is below this is level with a cluster that goes on
QUEUE = "sockpqd_drill"

T = TypeVar("T")


def drill(call: Call, folder: str | None, hot_bytes: int | None) -> int:
    """Rehearse a promotion on this machine. Raises Failure; the node is removed in any case."""
    with cluster_of(call) as (client, servers):
        refused = feed([view for view in servers.views if view.error is None], call)
        if refused.state == FAIL:
            raise Failure(REFUSED, f"{refused.found}; {refused.advice}")
        with DrillNode(_addresses(servers), call.access, folder, hot_bytes) as node:
            found = _rehearse(call, client, servers, node)
    it_had = f"{counted(found['queues'], 'queue')} with {counted(found['jobs'], 'waiting job')}"
    call.answer(f"it had {it_had}, and " + ("is removed" if node.left is None else f"{node.left} is left"), found)
    return DONE if node.left is None else FILE_ERROR


def _addresses(servers: Servers) -> list[str]:
    """Return the addresses of all servers of the cluster, as far as they are known."""
    return sorted({line.client for view in servers.views for line in view.nodes if line.client is not None})


def _rehearse(call: Call, origin: Client, servers: Servers, node: DrillNode) -> dict[str, Any]:
    """Rehearse the promotion; returns the figures. Raises Failure."""
    begun = time.monotonic()
    access = node.access
    with Client(node.address, user=access.user, secret=access.secret, timeout=call.timeout,
                server_timeout=ANSWER_S) as copy:
        catching = _Catching(copy, node)
        status = _until(call, node, catching.level, "is not level with the cluster", lambda: catching.words)
        catch_up_s, taken_bytes = time.monotonic() - begun, node.data_bytes
        say(f"level at position {status.position} after {catch_up_s:.1f} s, with {sized(taken_bytes)} on the disk")

        comparison = Comparison()
        equal = _until(call, node, lambda: _compared(call, origin, servers, copy, node, comparison),
                       "was never seen at the same position as the cluster")
        if comparison.different is not None:
            raise Failure(REFUSED, f"DIFFERENT from the cluster at position {comparison.different}: call for help")
        say(f"equal at position {equal}")

        total = copy.total(server=node.address)
        begun = time.monotonic()
        promoted = copy.cluster_promote()
        _first_answer(copy)
        first_answer_s = time.monotonic() - begun
    say(f"promoted with all up to position {promoted}; its first answer came after {first_answer_s:.2f} s")
    return {
        "position": promoted, "catch_up_s": round(catch_up_s, 3), "disk_bytes": taken_bytes, "equal_at": equal,
        "first_answer_s": round(first_answer_s, 3), "queues": total.queues, "jobs": total.jobs,
    }


def _until(
    call: Call, node: DrillNode, look: Callable[[], T | None], complaint: str, why: Callable[[], str] = lambda: "",
) -> T:
    """Wait for an answer other than None. Raises Failure after the timeout, or when the node has ended."""
    until = time.monotonic() + call.timeout
    while (found := look()) is None:
        node.must_run()
        if time.monotonic() > until:
            raise Failure(UNREACHED, f"the copy {complaint} within {call.timeout:g} s{why()}; give a longer --timeout")
        time.sleep(PAUSE_S)
    return found


class _Catching:
    """A copy that catches up, and the problems that it reports meanwhile."""

    def __init__(self, copy: Client, node: DrillNode) -> None:
        self._copy = copy
        self._node = node
        self._problem = ""
        self.words = ""         # of the last answer, how it follows

    def level(self) -> ReplicaStatus | None:
        """Return how the node follows, once it lacks next to nothing; prints each new problem.

        Raises Failure if it has stopped following for good, like a node that leads and does not even try to follow.
        """
        try:
            status = self._copy.cluster_replica(self._node.address, timeout=ANSWER_S)
        except SockpqError as error:                    # it is starting
            self.words = f" ({error})"
            return None
        if status is None:
            return None
        self.words = f" ({replicas.in_words({'it': status})})"
        if status.problem and status.phase == replicas.IDLE:
            raise Failure(REFUSED, f"the copy does not follow the cluster: {status.problem}")
        if status.problem and status.problem != self._problem:
            say(f"the copy does not follow yet: {status.problem}")
        self._problem = status.problem
        level = status.phase == replicas.FOLLOWING and status.lag is not None and status.lag < LEVEL_S
        return status if level else None


def _compared(
    call: Call, origin: Client, servers: Servers, copy: Client, node: DrillNode, comparison: Comparison,
) -> int | None:
    """Ask both once; returns a position at which both have answered, or at which they differ."""
    for name, applied, value in hashes(call, origin, servers):
        comparison.add(f"{name} (origin)", applied, value)
    try:
        comparison.add("drill (replica)", *copy.cluster_hash(node.address, timeout=ANSWER_S))
    except SockpqError:
        return None
    return met(comparison) if comparison.different is None else comparison.different


def _first_answer(copy: Client) -> None:
    """Put a job; a refusal by the settings of the cluster is an answer, too."""
    try:
        copy.put(QUEUE, b"")
    except Refused:
        return
