"""The simulation does what it says: every kind of fault fires, and what it sees is worth looking at."""

from __future__ import annotations

import pytest

from tests.sim import campaign
from tests.sim.faults.kinds import KINDS
from tests.sim.world import plan

SEEDS = range(150)
SEEN_MIN = {        # how often each of these happens in all runs together, at least
    **dict.fromkeys((
        # consequences of faults
        "crashes between two steps", "stopped by its disk", "damaged nodes that rejoined", "errors survived", "clones",
        "twins refused", "older copies found", "levels raised", "starts with pages of before",
        "lost", "ChangeMember Joined", "ChangeMember Accepted", "transfer done", "SwitchService Accepted",
    ), 1),
    **dict.fromkeys((
        # sessions
        "OpenSession SessionOpened", "sessions that ended", "CloseSession Accepted", "bound jobs returned",
        "answers cut off", "Stored again", "Handed again", "Request SessionNotFound", "Request RequestTooOld",
        "Request RequestMismatch",
        # time, keys and transactions
        "PutWith.when", "reply Rearmed", "event DEAD", "Kick Removed", "PurgeQueue Removed", "Move Finished",
        "MoveJobs Moved", "Change Accepted", "PutWith JobReplaced", "PutWith JobExists", "Touch Leased",
        "GetWith HandedMany", "Batch Results", "Batch Aborted",
        # events through faults
        "events heard", "events continued", "events in a gap",
    ), 5),
}


@pytest.mark.timeout(900)
def test_no_promise_is_broken_and_all_is_seen_that_is_worth_looking_at() -> None:
    """One test, as several in two processes would each do all the runs."""
    *_, report = campaign.run(SEEDS)
    assert not report.failures, "\n".join([*report.failures.values(), *report.lines()])
    assert set(report.faults) == set(KINDS)
    assert min(report.faults.values()) >= 3
    assert {what: report.seen[what] for what, least in SEEN_MIN.items() if report.seen[what] < least} == {}
    assert report.seen["leaderships"] > 1.5 * report.runs       # leaders change, and clients are served
    assert report.acknowledged > 50 * report.runs
    assert report.void < report.runs / 10


def test_every_kind_of_fault_has_a_function() -> None:
    assert set(KINDS) == {
        *plan.NETWORK, *plan.SIDES, *plan.MACHINES, *plan.LOSSES, *plan.PAGES, *plan.CHANGES, *plan.MISTAKES,
        *plan.RELEASES,
    }


def test_sizes_of_the_product_are_restored() -> None:
    chosen = plan.draw(3)
    before = [getattr(owner, name) for owner, name, _ in chosen.constants]
    with plan.surroundings(3, chosen):
        during = [getattr(owner, name) for owner, name, _ in chosen.constants]
    assert [getattr(owner, name) for owner, name, _ in chosen.constants] == before
    assert during != before
