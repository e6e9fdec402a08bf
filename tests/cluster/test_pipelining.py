"""Tests when a second entry in flight pays off."""

from __future__ import annotations

from sockpqd.cluster.leader.pipelining import Pipelining
from sockpqd.cluster.limits import PIPELINING_S, SLOW_ANSWERS_S
from sockpqd.core import Stored, SwitchService
from tests.cluster.helpers.small_cluster import Outcome
from tests.cluster.test_proposer import Log


class Measured(Log):
    """A log that a Pipelining observes."""

    def __init__(self) -> None:
        super().__init__()
        self.pipelining = Pipelining(self.proposer)

    def send(self) -> None:
        self.put()
        self.proposer.flush(self.now)
        self.pipelining.sent()

    def answer(self, waited_s: float) -> None:
        """Note that the leader has waited this long when the oldest entry is executed."""
        self.pipelining.waited(waited_s)
        self.now += 1.0
        self.land(Stored())
        self.pipelining.committed(self.now)

    @property
    def overlaps(self) -> bool:
        return self.pipelining.overlaps(self.now)


def test_nothing_pays_before_it_was_measured() -> None:
    log = Measured()
    assert not log.overlaps


def test_a_second_entry_pays_for_a_while_after_one_that_waited_long() -> None:
    log = Measured()
    log.send()
    log.answer(0.9 * SLOW_ANSWERS_S)
    assert not log.overlaps
    log.send()
    log.answer(1.1 * SLOW_ANSWERS_S)
    assert log.overlaps
    log.now += 1.01 * PIPELINING_S
    assert not log.overlaps


def test_what_it_waited_before_an_entry_has_left_does_not_count() -> None:
    log = Measured()
    log.put()
    log.proposer.flush(log.now)
    log.pipelining.waited(10 * SLOW_ANSWERS_S)
    log.pipelining.sent()
    log.answer(0.5 * SLOW_ANSWERS_S)
    assert not log.overlaps


def test_a_sync_in_the_loop_is_waiting_as_well() -> None:
    log = Measured()
    log.send()
    log.pipelining.waited(0.6 * SLOW_ANSWERS_S)
    log.answer(0.6 * SLOW_ANSWERS_S)
    assert log.overlaps


def test_what_was_not_alone_under_way_is_not_measured() -> None:
    log = Measured()
    log.send()
    log.proposer.propose_alone(SwitchService(online=True), Outcome(), log.now)
    log.pipelining.sent()
    log.answer(10 * SLOW_ANSWERS_S)
    log.answer(10 * SLOW_ANSWERS_S)
    assert not log.overlaps
