"""The account of what disks hold excuses what was on a lost one, and what left a node binds it."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from sockpqd.cluster.wire.messages import Ack
from tests.sim import campaign
from tests.sim.oracles.durability import Durability
from tests.sim.scenarios.members import SCRIPTED, others, served_by, until
from tests.sim.world.events import Events
from tests.sim.world.trace import Violation
from tests.sim.world.world import World

SYNC_S = 0.25
NOTHING_COMMITTED = SimpleNamespace(terms={}, model=SimpleNamespace(index=0))


def a_voter_is_wiped_and_stays_away(world: World) -> Iterator[float]:
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    victim = others(world, leader)[0]
    yield from until(world, lambda: victim.has_durably(*world.commits[-1][1:]))
    before = world.commits[-1]
    victim.crash(power=True)
    victim.wipe()
    yield from until(world, lambda: world.commits[-1][1] > before[1] + 5)
    later = world.commits[-1]
    assert victim.has_durably(*before[1:])
    assert not victim.has_durably(*later[1:])
    victim.start()
    yield from until(world, lambda: victim.voter)
    yield from until(world, lambda: victim.has_durably(*later[1:]))
    world.trace.fault("script", "it votes again")


def test_a_lost_disk_is_excused_for_what_it_had() -> None:
    world, failure = campaign.one(0, script=a_voter_is_wiped_and_stays_away, **SCRIPTED)
    assert not failure, failure
    assert world.trace.faults["script"]


class OldJournal:
    """The part of a journal that the account asks: entries 1 to `last_index`, all of term 1."""

    first_index, last_term, voter = 1, 1, True

    def __init__(self, last_index: int, term: int) -> None:
        self.last_index, self.term = last_index, term

    def term_at(self, index: int) -> int | None:
        return 1 if 1 <= index <= self.last_index else None

    def getCurrentTerm(self) -> int:  # noqa: N802
        return self.term

    def getVotedForNodeId(self) -> None:  # noqa: N802
        return None


@pytest.fixture
def memory() -> Durability:
    """Return the account of a node with five entries on its disk, in term 1."""
    checks: Any = NOTHING_COMMITTED
    memory = Durability("n1", Events(), checks)
    journal: Any = OldJournal(5, 1)
    memory.found(journal)
    return memory


def found(memory: Durability, last_index: int, term: int) -> None:
    journal: Any = OldJournal(last_index, term)
    memory.found(journal)


def ack(last_index: int, term: int = 1) -> Ack:
    return Ack(term, 1, 0.0, last_index + 1, False, True)


def test_a_node_has_one_vote_in_a_term(memory: Durability) -> None:
    memory.votes(2, "n2")
    memory.votes(2, "n2")
    memory.votes(3, "n3")
    with pytest.raises(Violation, match="n1 votes for n3 in term 2, and it voted for n2"):
        memory.votes(2, "n3")


def test_a_node_that_answered_a_leader_does_not_vote_in_an_older_term(memory: Durability) -> None:
    memory.acknowledges(ack(5, term=4), 0.0)
    memory.votes(4, "n2")
    with pytest.raises(Violation, match="votes in term 3, and it answered a leader of term 4"):
        memory.votes(3, "n2")


def test_what_is_acknowledged_is_on_the_disk(memory: Durability) -> None:
    memory.acknowledges(ack(5), 0.0)
    with pytest.raises(Violation, match="acknowledges entry 6, which is not on its disk"):
        memory.acknowledges(ack(6), 0.0)


def test_it_may_be_there_when_the_acknowledgement_leaves(memory: Durability) -> None:
    journal: Any = OldJournal(7, 1)
    memory.synced(journal, SYNC_S, damaged=False)
    memory.acknowledges(ack(7), SYNC_S)
    with pytest.raises(Violation, match="acknowledges entry 7, which is not on its disk"):
        memory.acknowledges(ack(7), SYNC_S / 2)


def test_an_acknowledged_entry_is_remembered_also_after_a_crash_in_a_sync(memory: Durability) -> None:
    memory.acknowledges(ack(5), 0.0)
    memory.syncing = True
    with pytest.raises(Violation, match="acknowledged entry 5 of term 1 and has forgotten it"):
        found(memory, 4, 1)


def test_a_term_is_remembered(memory: Durability) -> None:
    memory.votes(2, "n2")
    with pytest.raises(Violation, match="took part in term 2 and remembers 1"):
        found(memory, 5, 1)


def test_what_a_leader_cuts_off_is_not_missed(memory: Durability) -> None:
    memory.acknowledges(ack(5), 0.0)
    memory.loses(5)
    memory.syncing = True
    found(memory, 4, 1)
