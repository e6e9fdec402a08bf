"""Takes out of the product what notices the mistakes of operators."""

from __future__ import annotations

import pytest

from sockpqd.cluster.driver import Driver
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.raft.voting_right import VotingRight
from sockpqd.cluster.wire import duplicate_nodes
from tests.sim.cures.cure import Cure, only, scripted
from tests.sim.scenarios import damage
from tests.sim.scenarios.members import SCRIPTED


def believe_the_end_of_the_log(patch: pytest.MonkeyPatch) -> None:
    """Let a node ignore what others know about its log."""
    patch.setattr(Driver, "_check_end_of_log", lambda self, name, hello: None)


def ask_nobody(patch: pytest.MonkeyPatch) -> None:
    """Let a voter that is started again vote and count at once."""
    patch.setattr(VotingRight, "started", lambda self: None)


def forget_what_others_acknowledged(patch: pytest.MonkeyPatch) -> None:
    """Let a node know only what it has seen of others' logs since it was started."""
    patch.setattr(Journal, "_acknowledgements", lambda self: [])


def let_twins_in(patch: pytest.MonkeyPatch) -> None:
    """Let the last process with the name of a node take its place."""
    patch.setattr(duplicate_nodes, "refused_duplicate", lambda connection, hello, link, now: "")


COPIES = {"nodes": 3, "weights": only("older copy", "crash", "isolated leader", "snapshot")}

TOLD = scripted(SCRIPTED, damage.an_older_copy_is_put_back)

STOPPED = scripted(SCRIPTED, damage.an_older_copy_is_put_back_while_all_are_down)

CURES = (
    Cure(ask_nobody, COPIES, red=69),
    Cure(believe_the_end_of_the_log, TOLD, red=0),
    Cure(forget_what_others_acknowledged, STOPPED, red=0),
    Cure(let_twins_in, {"nodes": 3, "weights": only("twin", "connection lost", "pause")}, red=0),
)
