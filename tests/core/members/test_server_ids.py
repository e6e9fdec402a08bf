"""Server ids (spec/cluster 5)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sockpqd.core import ChangeMember, Joined, Lead, Machine, MemberChange
from tests.core.helpers.logs import LAW, MEMBERS, ask, lead, restored, run, snapshot_of


def elect(machine: Machine, node: str, members: tuple[str, ...] = ("a", "b", "c")) -> dict[str, int]:
    """Return the ids after `node` became leader."""
    run(machine, Lead(node, machine.term + 1, members, b"id", 0))
    return machine.server_ids


def test_first_leader_gets_one_and_the_others_follow_in_name_order() -> None:
    assert elect(Machine(), "a") == {"a": 1, "b": 2, "c": 3}
    assert elect(Machine(), "b") == {"b": 1, "a": 2, "c": 3}
    assert elect(Machine(), "c", ("c", "b", "a")) == {"c": 1, "a": 2, "b": 3}


def test_nodes_below_the_new_leader_move_past_all_others() -> None:
    machine = Machine()
    elect(machine, "a")
    assert elect(machine, "c") == {"a": 4, "b": 5, "c": 3}
    assert machine.max_id == 5


def test_same_leader_again_changes_nothing() -> None:
    machine = Machine()
    before = dict(elect(machine, "b"))
    assert elect(machine, "b") == before
    assert machine.max_id == 3


def test_new_member_gets_the_next_id() -> None:
    machine = Machine()
    elect(machine, "a")
    assert ask(machine, ChangeMember("d", MemberChange.JOIN)) == [Joined(4)]
    assert elect(machine, "a") == {"a": 1, "b": 2, "c": 3, "d": 4}
    elect(machine, "b")                                             # a gets 5
    ask(machine, ChangeMember("d", MemberChange.REMOVE, 0))
    assert ask(machine, ChangeMember("e", MemberChange.JOIN)) == [Joined(6)]


def test_members_told_by_a_later_leader_get_no_id() -> None:
    machine = Machine()
    elect(machine, "a")
    assert elect(machine, "b", ("b", "x")) == {"b": 2, "c": 3, "a": 4}


def test_id_of_a_removed_member_is_forgotten_and_never_given_again() -> None:
    machine = Machine()
    elect(machine, "a")
    ask(machine, ChangeMember("c", MemberChange.REMOVE, 0))
    assert machine.server_ids == {"a": 1, "b": 2}
    assert ask(machine, ChangeMember("c", MemberChange.JOIN)) == [Joined(4)]


def test_leader_that_was_removed_changes_no_id() -> None:
    machine = Machine()
    elect(machine, "a")
    ask(machine, ChangeMember("a", MemberChange.REMOVE, 0))
    assert elect(machine, "a") == {"b": 2, "c": 3}
    assert elect(machine, "c") == {"c": 3, "b": 4}


def test_leader_outside_its_own_members_is_one() -> None:
    machine = Machine()
    assert elect(machine, "d") == {"d": 1, "a": 2, "b": 3, "c": 4}
    assert machine.membership.voters == ("a", "b", "c", "d")


def test_new_member_that_leads_is_the_minimum() -> None:
    machine = Machine()
    elect(machine, "a")
    ask(machine, ChangeMember("d", MemberChange.JOIN), ChangeMember("d", MemberChange.PROMOTE, 0))
    ids = elect(machine, "d")
    assert ids == {"d": 4, "a": 5, "b": 6, "c": 7}


def test_ids_survive_a_snapshot() -> None:
    machine = Machine()
    elect(machine, "a")
    elect(machine, "c")
    copy = restored(snapshot_of(machine))
    assert copy.server_ids == {"a": 4, "b": 5, "c": 3}
    assert elect(copy, "b") == elect(machine, "b")


@LAW
@given(st.lists(st.sampled_from(MEMBERS), min_size=1, max_size=20))
def test_the_leader_has_the_smallest_id_and_no_id_is_given_twice(leaders: list[str]) -> None:
    machine = Machine()
    owners: dict[int, str] = {}
    for term, node in enumerate(leaders, start=1):
        run(machine, lead(node, term))
        ids = machine.server_ids
        assert ids[node] == min(ids.values())
        assert sorted(ids) == sorted(MEMBERS)
        assert max(ids.values()) <= machine.max_id
        for name, number in ids.items():
            assert owners.setdefault(number, name) == name
