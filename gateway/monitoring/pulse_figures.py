"""The pulses named in the metrics: a bounded number of the user's pulses, those with the most grants."""

from __future__ import annotations

import heapq

from sockpqd.cluster.api import Cluster
from sockpqd.core import OWN_PREFIX, Pulse

PULSES_NAMED_MAX = 100


def busiest_pulses(cluster: Cluster, named: tuple[str, ...]) -> list[Pulse]:
    """The pulses with the most grants so far whose names, or whose queues' names, start with a prefix in `named`.

    Each keeps its place until another one overtakes it.
    """
    pulses = [one for one in cluster.machine.pulses.values() if one.name.removeprefix(OWN_PREFIX).startswith(named)]
    return heapq.nlargest(PULSES_NAMED_MAX, pulses, key=lambda pulse: (pulse.granted, pulse.name))
