"""What notices the mistakes of operators, taken out of the product."""

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
    """A node does not care what others know of its log."""
    patch.setattr(Driver, "_check_end_of_log", lambda self, name, hello: None)


def ask_nobody(patch: pytest.MonkeyPatch) -> None:
    """A voter that is started again votes and counts at once."""
    patch.setattr(VotingRight, "started", lambda self: None)


def forget_what_others_acknowledged(patch: pytest.MonkeyPatch) -> None:
    """A node knows of the logs of others what it has seen since it was started."""
    patch.setattr(Journal, "_acknowledgements", lambda self: [])


def let_twins_in(patch: pytest.MonkeyPatch) -> None:
    """The process that comes last with the name of a node takes its place."""
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
