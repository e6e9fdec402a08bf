"""The pulses that are named in the metrics: a bounded number, those of the user that gave most grants."""

from __future__ import annotations

import heapq

from sockpqd.cluster.api import Cluster
from sockpqd.core import OWN_PREFIX, Pulse

PULSES_NAMED_MAX = 100


def busiest_pulses(cluster: Cluster, named: tuple[str, ...]) -> list[Pulse]:
    """The pulses with the most grants so far, of those whose names, or those of their queues, start with a prefix in
    `named`. Each keeps its place while no other overtakes it.
    """
    pulses = [one for one in cluster.machine.pulses.values() if one.name.removeprefix(OWN_PREFIX).startswith(named)]
    return heapq.nlargest(PULSES_NAMED_MAX, pulses, key=lambda pulse: (pulse.granted, pulse.name))
