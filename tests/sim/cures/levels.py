"""Takes out of the product what keeps nodes of several releases together."""

from __future__ import annotations

import pytest

from sockpqd.cluster.leader.feature_level import FeatureLevel
from tests.sim.cures.cure import Cure, only, scripted
from tests.sim.scenarios import levels
from tests.sim.scenarios.levels import SCRIPTED


def raise_the_level_without_asking(patch: pytest.MonkeyPatch) -> None:
    """Let a leader raise the level to its own, whatever the others know."""
    patch.setattr(FeatureLevel, "_allowed_by", lambda self, name: self.raise_to)


def refuse_nothing(patch: pytest.MonkeyPatch) -> None:
    """Let a leader propose operations above the level of the cluster."""
    patch.setattr(FeatureLevel, "_refuses", lambda self, operation: False)


_UPGRADE = scripted(SCRIPTED, levels.a_cluster_is_upgraded_node_by_node)

_RELEASES = {"nodes": 3, "upgraded": True, "weights": only("other release", "crash"), "fault_s": 0.6}

CURES = (
    Cure(raise_the_level_without_asking, _RELEASES, red=2),
    Cure(raise_the_level_without_asking, _UPGRADE, red=0),
    Cure(refuse_nothing, _UPGRADE, red=0),
)
