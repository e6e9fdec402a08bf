"""Signatures, what their operators make of them, and the plan that is put: stages, levels, items. No server."""

from __future__ import annotations

from typing import Any

import pytest
from sockpq import BadArguments
from sockpq.worker import App, chain, group
from sockpq.worker.flows.plan import WAITED_ITEMS_MAX, Plan

app = App("127.0.0.1:1")


@app.task("q", name="a", result=True)
def a(*args: object) -> object:
    return args


@app.task("q", name="b", result=True)
def b(one: object) -> object:
    return one


@app.task("q", name="kept", retain=60)
def kept(*args: object) -> None: ...


@app.task("q", name="plain")
def plain(*args: object) -> None: ...


def test_the_operators_make_edges() -> None:
    canvas = a.s(1) >> (a.s(2) | a.s(3) >> a.s(4)) >> a.s(5)
    assert [(step.args, step.parents, step.joined) for step in canvas.steps] == [
        ((1,), (), False), ((2,), (0,), False), ((3,), (0,), False), ((4,), (2,), False), ((5,), (1, 3), True),
    ]
    assert (canvas.first, canvas.last, canvas.joined) == ((0,), (4,), False)


def test_a_canvas_does_not_change_and_each_mention_is_a_step_of_its_own() -> None:
    one = a.s(1)
    twice = one >> one
    assert [step.parents for step in twice.steps] == [(), (0,)]
    assert [step.parents for step in (twice | twice).steps] == [(), (0,), (), (2,)]
    assert len(one.steps) == 1


def test_group_and_chain_take_many_and_are_the_operators() -> None:
    signatures = [a.s(n) for n in range(3)]
    assert group(signatures).steps == (signatures[0] | signatures[1] | signatures[2]).steps
    assert chain(signatures).steps == (signatures[0] >> signatures[1] >> signatures[2]).steps
    single = group([a.s(1)]) >> a.s(2)      # a group of one gives a list, as one of two does
    assert single.steps[1].joined
    for make in (group, chain):
        with pytest.raises(BadArguments):
            make([])
    other: Any = b
    with pytest.raises(TypeError):
        a.s(1) >> other
    with pytest.raises(TypeError):
        a.s(1) | other


def test_the_members_of_a_group_share_an_item() -> None:
    plan = Plan(a.s(1) >> group(a.s(n) for n in range(1000)) >> a.s() >> a.s(), "f")
    assert [len(stage.steps) for stage in plan.stages] == [1, 1000, 1, 1]
    around = [(stage.before, stage.after) for stage in plan.stages]
    assert around == [((), (1,)), ((0,), (2,)), ((1,), (3,)), ((2,), ())]
    assert plan.waits_for(plan.stage(1001)) == (["f/1"], "done")
    assert [len(level) for level in plan.levels()] == [1, 1000, 1, 1]
    assert list(plan.watched()) == [[("f/0", ["f/1"]), ("f/1", ["f/2"]), ("f/2", ["f/3"])]]
    assert [stage.item for stage in plan.last] == ["f/3"]


def test_what_may_fail_has_an_item_of_its_own_and_is_waited_for_until_its_end() -> None:
    plan = Plan((a.s(1) | a.s(2).continue_on_failure()) >> a.s(3), "f")
    assert [stage.optional for stage in plan.stages] == [False, True, False]
    assert plan.waits_for(plan.stage(2)) == (["f/0", "f/1"], "end")
    parents = plan.parents_of(2, [7, 8, 9])
    assert parents is not None
    assert (parents.numbers, parents.optional, parents.taken, parents.joined) == ([7, 8], [False, True], True, True)
    assert list(plan.watched()) == [[("f/0", ["f/2"])]]


def test_parents_are_named_only_where_somebody_looks_at_them() -> None:
    assert Plan(a.s(1) >> a.s(2), "f").names_parents
    assert not Plan(a.s(1) >> a.si(2), "f").names_parents
    assert not Plan(a.s(1).continue_on_failure() >> a.si(2), "f").names_parents
    mixed = Plan((a.s(1) | a.s(2).continue_on_failure()) >> a.si(3), "f")
    parents = mixed.parents_of(2, [1, 2, 3])
    assert parents is not None
    assert not parents.taken


def test_what_does_not_fit_is_refused_before_anything_is_sent() -> None:
    for wrong, why in (
        (a.s() >> plain.s(), "retain="), (kept.s() >> a.s(), "takes the result of kept, which needs"),
    ):
        with pytest.raises(BadArguments, match=why):
            Plan(wrong, "f")
    Plan(kept.s() >> a.si(), "f")
    for canvas in (a.s() >> b.s(1), a.s() >> b.si(), b.s()):
        with pytest.raises(TypeError, match=r"b\(\)"):
            Plan(canvas, "f")


def test_what_comes_after_many_chains_comes_after_joins_of_a_hundred() -> None:
    chains = 100 * WAITED_ITEMS_MAX + 1
    plan = Plan(group(a.s(1) >> a.s(2) for _ in range(chains)) >> a.s(), "f")
    last = plan.stage(2 * chains)
    assert all(len(stage.before) <= WAITED_ITEMS_MAX for stage in plan.stages)
    joins = plan.joins_before([2 * chains])
    assert sorted(len(stage.before) for stage in joins) == [1, 1, *[100] * 101]
    places = {stage.item: place for place, stage in enumerate(plan.stages)}
    put = set(range(2 * chains))
    for stage in joins:             # each comes after what it waits for
        assert put.issuperset(stage.before)
        put.add(places[stage.item])
    assert put.issuperset(last.before)
    followers = dict(pair for portion in plan.watched() for pair in portion)
    assert len(followers) == 2 * chains         # each chain's first and last step; no join can fail
    assert all(len(after) == 1 for after in followers.values())
