"""The groups named in the metrics: a bounded number of groups with settings, those with the most READY jobs."""

from __future__ import annotations

import asyncio
import heapq

from sockpqd.cluster.api import Cluster
from sockpqd.core import GroupCounts

GROUPS_NAMED_MAX = 100          # those with the most READY jobs
GROUPS_PER_PIECE = 500          # looked at before clients get their turn: half a millisecond


async def fullest_groups(cluster: Cluster, named: tuple[str, ...]) -> list[tuple[str, GroupCounts]]:
    """Return the groups with settings that have the most READY jobs, with their figures as of one moment. Works in
    slices.

    Only groups whose names start with a prefix in `named` are among them.
    """
    machine = cluster.machine
    names = machine.groups_with_settings()
    fullest: list[tuple[int, str]] = []
    for at in range(0, len(names), GROUPS_PER_PIECE):
        found = [
            (counts.ready, name) for name in names[at:at + GROUPS_PER_PIECE]
            if name.startswith(named) and (counts := machine.group_counts(name)) is not None
        ]
        fullest = heapq.nlargest(GROUPS_NAMED_MAX, fullest + found)
        await asyncio.sleep(0)
    return [(name, counts) for _, name in fullest if (counts := machine.group_counts(name)) is not None]
