"""The pulses that are named in the metrics: a bounded number, those that gave most grants."""

from __future__ import annotations

import heapq

from cluster.api import Cluster
from core import Pulse

PULSES_NAMED_MAX = 100


def busiest_pulses(cluster: Cluster) -> list[Pulse]:
    """The pulses with the most grants so far; each keeps its place while no other overtakes it."""
    pulses = cluster.machine.pulses.values()
    return heapq.nlargest(PULSES_NAMED_MAX, pulses, key=lambda pulse: (pulse.granted, pulse.name))
