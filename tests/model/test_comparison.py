"""Simulated nodes, which are the product, do what the model allows; without a cure they do not (spec/model 4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.comparison import compared_run
from tests.sim.cures.cure import Cure
from tests.sim.cures.raft import CURES

SEEDS = range(6)
PLAIN: dict[str, Any] = {"passing": False, "ended": False, "upgraded": False, "grouped": False}

# What the comparison says when a cure is taken out of the product.
FORBIDDEN = {
    "compare_nothing": "it cuts its log where that does not differ",
    "append_behind_any_entry": "the entries before are not its leader's",
    "believe_stale_answers": "no majority has this entry on its disk",
    "send_before_sync": "its disk does not know of this vote",
    "release_before_sync": "this is not on its disk",
    "lead_in_a_term_that_may_be_forgotten": "it has led in this term before",
    "count_what_is_being_synced": "no majority has this entry on its disk",
    "believe_the_page_cache": "the disk holds what was not there",
    "vote_with_an_empty_disk": "it must not vote for this node",
    "believe_commit_indexes": "this was not committed",
    "leave_the_journal_unaligned": "for a snapshot it gives up a log",
    "vote_for_anybody": "it must not vote for this node",
    "forget_the_promise": "another node was elected",
    "vote_again": "it must not vote for this node",
    "write_no_term": "its disk does not know of this vote",
    "admit_at_once": "it lacks a committed entry",
    "count_answers_of_the_forgetful": "this was not committed",
    "change_two_voters_at_once": "it lacks a committed entry",
    "change_on_when_removed": "a leader that was removed changes the members",
}
CAUGHT = {cure.name: cure for cure in CURES if cure.name in FORBIDDEN}
SHORT = ("compare_nothing", "release_before_sync", "admit_at_once", "change_on_when_removed", "forget_the_promise")


@pytest.mark.parametrize("seed", SEEDS)
def test_the_model_allows_what_nodes_do(seed: int) -> None:
    steps, forbidden = compared_run(seed)
    assert forbidden == ""
    assert steps > 100


@pytest.mark.parametrize("name", SHORT)
def test_the_model_allows_what_nodes_do_in_a_script(name: str) -> None:
    cure = CAUGHT[name]
    assert compared_run(cure.red or 0, **PLAIN | dict(cure.fixed))[1] == ""


@pytest.mark.parametrize("cure", CAUGHT.values(), ids=CAUGHT)
def test_the_model_forbids_what_nodes_do_without_a_cure(cure: Cure, monkeypatch: pytest.MonkeyPatch) -> None:
    cure.remove(monkeypatch)
    _, forbidden = compared_run(cure.red or 0, broken=True, **PLAIN | dict(cure.fixed))
    assert FORBIDDEN[cure.name] in forbidden
