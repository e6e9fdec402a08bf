"""The judgement of workers' runs: good ones next to bad ones, nearly the same."""

from __future__ import annotations

import pytest

from tests.chaos.pools.hand_outs import again_after_the_end, leases_lost, runs_of, two_at_a_time

RECORD = [
    "begin a 1 p 10 1.0", "end a 1 p 10 5.0",
    "begin a 2 q 20 4.0", "end a 2 q 20 6.0",
    "begin b 3 q 21 4.0", "end b 3 q 21 4.5",
    "begin b 4 q 21 4.5", "end b 4 q 21 5.0",
]


@pytest.mark.parametrize(("ended_by", "wrong"), [("EXPIRED", 0), ("LATER", 1), (None, 1)])
def test_two_runs_at_a_time_need_a_lease_that_has_ended(ended_by: str, wrong: int) -> None:
    ends = {1: ended_by, 2: "DONE", 3: "LATER", 4: "DONE"}
    assert len(list(two_at_a_time(runs_of(RECORD, {}), ends))) == wrong


def test_a_run_that_was_killed_ends_there() -> None:
    record = ["begin a 1 p 10 1.0", "begin a 2 q 20 4.0", "end a 2 q 20 5.0"]
    assert not list(two_at_a_time(runs_of(record, {10: 3.9}), {1: "LATER"}))
    assert list(two_at_a_time(runs_of(record, {10: 4.1}), {1: "LATER"}))
    assert not list(two_at_a_time(runs_of(record, {}), {1: "LATER"}))


def test_a_pool_that_could_renew_its_leases_loses_none() -> None:
    runs = runs_of(RECORD, {})
    assert len(list(leases_lost(runs, {1: "EXPIRED"}, ("p",)))) == 1
    assert not list(leases_lost(runs, {1: "EXPIRED"}, ("q",)))
    assert not list(leases_lost(runs, {1: "LATER"}, ("p",)))


def test_nothing_runs_again_that_was_done() -> None:
    runs = runs_of(RECORD, {})
    assert len(list(again_after_the_end(runs, {3: "DONE", 4: "DONE"}))) == 1
    assert not list(again_after_the_end(runs, {1: "EXPIRED", 3: "LATER", 2: "DONE", 4: "DONE"}))
