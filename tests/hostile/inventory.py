"""Compares the jobs at the end with the answers to the ordinary client."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import sockpq

from tests.hostile.ordinary import QUEUE, Report
from tests.oracles.inventory import differences

LEASE_S = 600.0             # no job that was taken to be counted comes back before the end
AT_ONCE = 1000
LEFT_MAX = 10_000
CALL_S = 10.0
HASH_S = 10.0
EQUAL_S = 30.0            # what clients had sent before they left is executed first
LOOK_S = 0.05


def found(servers: list[str], ca: str | None) -> list[int]:
    """Return the numbers of all jobs that the ordinary client has left, waiting or running. Raises SockpqError."""
    with sockpq.Client(servers, sessions=False, timeout=CALL_S, tls=ca) as client:
        while client.get_many(AT_ONCE, QUEUE, expire=LEASE_S):
            pass                # now all of them run, and none is on its way from one state to another
        return [int(job.data) for job in client.peek_queue(QUEUE, "running", LEFT_MAX)]


def wrongs(report: Report, left: Iterable[int]) -> list[str]:
    """Return the differences between the remaining jobs and the answers to the client."""
    return differences(
        left, report.acknowledged, maybe_put=report.maybe_put,
        finished=report.finished, maybe_finished=report.maybe_finished,
    )


class Hashed(Protocol):
    """Nodes that report which entry they have executed last, and the hash of their state after it."""

    names: Sequence[str]

    def say(self, name: str, command: str, timeout: float = ...) -> str | None:
        """Send this to the node; returns the first line of the answer."""


def disagreement(cluster: Hashed) -> str:
    """Return how the nodes' states differ after the same entry; empty when they agree.

    They need not be asked at the same time, as entries are still applied: forty thousand queues are deleted one by one.
    """
    until = time.monotonic() + EQUAL_S
    states: dict[str, dict[str, str]] = {}          # by entry: the state of each node after it
    while True:
        said = {name: cluster.say(name, "CLUSTER HASH", HASH_S) for name in cluster.names}
        for name, answer in said.items():
            if answer is None or not answer.startswith("200 OK "):
                continue
            entry, _, state = answer.removeprefix("200 OK ").partition(" ")
            after = states.setdefault(entry, {})
            after[name] = state
            if len(after) == len(cluster.names) or len(set(after.values())) > 1:
                same = len(set(after.values())) == 1
                return "" if same else _differing({one: f"{entry} {what}" for one, what in after.items()})
        if time.monotonic() > until:
            return _differing(said)
        time.sleep(LOOK_S)


def _differing(said: Mapping[str, str | None]) -> str:
    return "the nodes do not agree: " + ", ".join(f"{name} {value}" for name, value in said.items())
