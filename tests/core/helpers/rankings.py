"""The ways in which a queue keeps its groups: compared one by one, ranked, or listed as they are in many queues."""

from __future__ import annotations

from sockpqd.core.fair.first_jobs import WIDE
from sockpqd.core.fair.queue_groups import FEW

# From how many groups of a queue on they are ranked, and from how many queues of a group on it is not.
RANKINGS = (FEW, WIDE), (1, WIDE), (1, 1)
RANKING_NAMES = "few groups", "many groups", "wide groups"
