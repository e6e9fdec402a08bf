"""Entries wait for clients that are about to come back."""

from __future__ import annotations

from sockpqd.cluster.leader.commit_delay import CommitDelay
from sockpqd.cluster.limits import COMMIT_DELAY_RESTS_MAX, COMMIT_DELAY_S_MAX, COMMIT_DELAY_SHARE, ENTRY_OPERATIONS_MAX
from sockpqd.core import Reply, Stored
from tests.cluster.test_proposer import Log

FLIGHT_S = 0.001


class Gathered(Log):
    """A log whose proposer is observed between entries."""

    def __init__(self) -> None:
        super().__init__()
        self.gathering = CommitDelay(self.proposer, lambda: self.now)

    def round(self, operations: int) -> None:
        """Propose and answer an entry with this many operations."""
        for _ in range(operations):
            self.put()
        self.proposer.flush(self.now)
        self.now += FLIGHT_S
        self.land(*[Stored()] * operations)

    def land(self, *replies: Reply) -> None:
        """End the turn that gave these answers."""
        super().land(*replies)
        self.gathering.turned(self.now)

    def put_many(self, count: int) -> None:
        for _ in range(count):
            self.put()


def test_the_first_command_waits_for_nobody() -> None:
    log = Gathered()
    log.put()
    assert not log.gathering.should_wait()


def test_an_entry_waits_until_everybody_is_back() -> None:
    log = Gathered()
    log.round(3)
    log.put()
    assert log.gathering.should_wait()
    log.put()
    assert log.gathering.should_wait()
    log.put()
    assert not log.gathering.should_wait()
    assert not log.gathering.should_wait(), "and it does not begin again before the next is answered"


def test_who_was_queued_meanwhile_is_not_taken_for_one_who_came_back() -> None:
    log = Gathered()
    log.put_many(2)
    log.proposer.flush(log.now)
    log.put_many(5)
    log.now += FLIGHT_S
    log.land(Stored(), Stored())
    assert log.gathering.should_wait()
    log.put_many(2)
    assert not log.gathering.should_wait()


def test_it_does_not_wait_long() -> None:
    log = Gathered()
    log.round(4)
    log.put()
    assert log.gathering.should_wait()
    log.now += COMMIT_DELAY_SHARE * FLIGHT_S
    assert not log.gathering.should_wait()
    log.proposer.flush(log.now)
    log.now += 1.0
    log.land(Stored())
    log.put()
    assert not log.gathering.should_wait(), "the one that was answered is back"
    log.round(1)
    assert log.entries == []
    log.gathering.should_wait()
    log.now += COMMIT_DELAY_S_MAX
    assert not log.gathering.should_wait()


def test_the_time_to_give_out_the_answers_does_not_count() -> None:
    log = Gathered()
    log.put_many(4)
    log.proposer.flush(log.now)
    log.now += FLIGHT_S
    Log.land(log, *[Stored()] * 4)
    log.put()
    log.now += 2 * COMMIT_DELAY_S_MAX
    log.gathering.turned(log.now)
    assert log.gathering.should_wait()


def test_a_full_entry_waits_for_nobody() -> None:
    log = Gathered()
    log.put_many(10)
    log.proposer.flush(log.now)
    log.put_many(ENTRY_OPERATIONS_MAX - 2)
    log.now += FLIGHT_S
    log.land(*[Stored()] * 10)
    log.put()
    assert log.gathering.should_wait()
    log.put()
    assert not log.gathering.should_wait()


def test_a_worker_that_comes_back_alone_at_once_does_not_wait_every_time() -> None:
    """A producer pauses between jobs: of the PUT and the GET of an entry only the worker comes back, at once."""
    log = Gathered()
    waited = 0
    for _ in range(100):
        log.round(2)
        log.put()
        if log.gathering.should_wait():
            waited += 1
            log.now += COMMIT_DELAY_S_MAX
            assert not log.gathering.should_wait()
        log.proposer.flush(log.now)
        log.now += FLIGHT_S
        log.land(Stored())
        log.now += 0.01
    assert 0 < waited < 10


def test_what_brings_nothing_is_tried_more_and_more_seldom_and_again_when_it_does() -> None:
    log = Gathered()
    rests: list[int] = []
    passed = 0
    while len(rests) < 9:
        log.round(4)
        log.put()
        if log.gathering.should_wait():
            rests.append(passed)
            passed = 0
            log.now += COMMIT_DELAY_S_MAX
            assert not log.gathering.should_wait()
        else:
            passed += 1
        log.proposer.flush(log.now)
        log.land(Stored())
        log.gathering.should_wait()
    assert rests[0] == 0
    assert sorted(rests) == rests
    assert rests[-1] >= COMMIT_DELAY_RESTS_MAX // 4
    log.put_many(4)
    log.proposer.flush(log.now)
    for _ in range(2 * COMMIT_DELAY_RESTS_MAX):
        log.now += FLIGHT_S
        log.land(*[Stored()] * 4)
        log.put()
        if log.gathering.should_wait():
            break
        log.put_many(3)
        log.proposer.flush(log.now)
    log.put_many(3)
    assert not log.gathering.should_wait(), "this time they came"
    log.proposer.flush(log.now)
    log.now += FLIGHT_S
    log.land(*[Stored()] * 4)
    log.put()
    assert log.gathering.should_wait(), "so the next entry waits as well"
    log.now += COMMIT_DELAY_S_MAX
    assert not log.gathering.should_wait()
    log.put_many(3)
    for waits in (False, True):
        log.proposer.flush(log.now)
        log.now += FLIGHT_S
        log.land(*[Stored()] * 4)
        log.put()
        assert log.gathering.should_wait() is waits, "and one failure does not make it give up again"
        log.put_many(3)
