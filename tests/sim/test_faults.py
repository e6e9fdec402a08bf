"""The simulation does what it says: every kind of fault fires, and what it sees is worth looking at."""

from __future__ import annotations

import pytest

from tests.sim import campaign
from tests.sim.faults.kinds import KINDS
from tests.sim.world import plan

SEEDS = range(150)
pytestmark = pytest.mark.timeout(900)       # the first test does all the runs


@pytest.fixture(scope="module")
def report() -> campaign.Report:
    *_, report = campaign.run(SEEDS)
    return report


def test_no_promise_is_broken(report: campaign.Report) -> None:
    assert not report.failures, "\n".join([*report.failures.values(), *report.lines()])


def test_every_kind_of_fault_has_a_function() -> None:
    assert set(KINDS) == {
        *plan.NETWORK, *plan.SIDES, *plan.MACHINES, *plan.LOSSES, *plan.PAGES, *plan.CHANGES, *plan.MISTAKES,
        *plan.RELEASES,
    }


def test_every_kind_of_fault_fires(report: campaign.Report) -> None:
    assert set(report.faults) == set(KINDS)
    assert min(report.faults.values()) >= 3


@pytest.mark.parametrize(
    "what", [
        "crashes between two steps", "stopped by its disk", "damaged nodes that rejoined", "errors survived", "clones",
        "twins refused", "older copies found", "levels raised", "starts with pages of before",
        "lost", "AddLearner Joined", "RemoveMember Accepted", "transfer done", "SwitchService Accepted",
    ],
)
def test_faults_have_consequences(report: campaign.Report, what: str) -> None:
    assert report.seen[what]


@pytest.mark.parametrize(
    "what", [
        "OpenSession SessionOpened", "sessions that ended", "CloseSession Accepted", "bound jobs returned",
        "answers cut off", "Stored again", "Handed again", "Request SessionNotFound", "Request RequestTooOld",
        "Request RequestMismatch",
    ],
)
def test_sessions_are_worked_in(report: campaign.Report, what: str) -> None:
    assert report.seen[what] >= 5


@pytest.mark.parametrize(
    "what", [
        "PutWith.when", "reply Rearmed", "event DEAD", "Kick Removed", "PurgeQueue Removed", "Move Finished",
        "MoveJobs Moved", "Change Accepted", "PutWith JobReplaced", "PutWith JobExists", "Touch Leased",
        "GetWith HandedMany", "Batch Results", "Batch Aborted",
    ],
)
def test_time_keys_and_transactions_are_used(report: campaign.Report, what: str) -> None:
    assert report.seen[what] >= 5


@pytest.mark.parametrize("what", ["events heard", "events continued", "events in a gap"])
def test_events_are_heard_through_faults(report: campaign.Report, what: str) -> None:
    assert report.seen[what] >= 5


def test_leaders_change_and_clients_are_served(report: campaign.Report) -> None:
    assert report.seen["leaderships"] > 1.5 * report.runs
    assert report.acknowledged > 50 * report.runs
    assert report.void < report.runs / 10


def test_sizes_of_the_product_are_restored() -> None:
    chosen = plan.draw(3)
    before = [getattr(owner, name) for owner, name, _ in chosen.constants]
    with plan.surroundings(3, chosen):
        during = [getattr(owner, name) for owner, name, _ in chosen.constants]
    assert [getattr(owner, name) for owner, name, _ in chosen.constants] == before
    assert during != before
