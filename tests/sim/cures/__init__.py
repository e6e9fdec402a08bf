"""Cures of the product, taken out one at a time: each must make some seed go red."""

from __future__ import annotations

from tests.sim.cures import jobs, levels, mistakes, raft, sessions, time
from tests.sim.cures.cure import Cure

__all__ = ["CURES", "Cure"]

CURES: tuple[Cure, ...] = (*raft.CURES, *sessions.CURES, *jobs.CURES, *time.CURES, *levels.CURES, *mistakes.CURES)
