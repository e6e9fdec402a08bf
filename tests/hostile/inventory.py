"""What is there in the end, compared with what the ordinary client was told."""

from __future__ import annotations

import time
from collections.abc import Iterable

import sockpq

from tests.hostile.cluster import HostileCluster
from tests.hostile.ordinary import QUEUE, Report
from tests.oracles.inventory import differences

LEASE_S = 600.0             # nothing that was taken to be counted comes back meanwhile
AT_ONCE = 1000
LEFT_MAX = 10_000
CALL_S = 10.0
HASH_S = 10.0
EQUAL_S = 30.0            # what clients had sent before they left is executed first


def found(servers: list[str], ca: str | None) -> list[int]:
    """The numbers of all jobs that the ordinary client has left, waiting or running. Raises SockpqError."""
    with sockpq.Client(servers, sessions=False, timeout=CALL_S, tls=ca) as client:
        while client.get_many(AT_ONCE, QUEUE, expire=LEASE_S):
            pass                # now all of them run, and none is on its way from one state to another
        return [int(job.data) for job in client.peek_queue(QUEUE, "running", LEFT_MAX)]


def wrongs(report: Report, left: Iterable[int]) -> list[str]:
    """Return how what is left differs from what the client was told."""
    return differences(
        left, report.acknowledged, maybe_put=report.maybe_put,
        finished=report.finished, maybe_finished=report.maybe_finished,
    )


def disagreement(cluster: HostileCluster) -> str:
    """Return how the nodes' states differ, once all have executed the same entries; empty when they agree."""
    until = time.monotonic() + EQUAL_S
    while True:
        hashes = {name: cluster.say(name, "CLUSTER HASH", HASH_S) for name in cluster.names}
        if len(set(hashes.values())) == 1 and None not in hashes.values():
            return ""
        if time.monotonic() > until:
            return "the nodes do not agree: " + ", ".join(f"{name} {value}" for name, value in hashes.items())
        time.sleep(0.2)
