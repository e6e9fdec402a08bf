"""The members of the cluster, and the laws of their changes (spec/cluster 7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sockpqd.core import (
    Accepted,
    Address,
    ChangeInProgress,
    ChangeMember,
    Joined,
    LastNode,
    Lead,
    Machine,
    MemberChange,
    Membership,
    NodeExists,
    Operation,
    Reply,
    SwitchService,
    UnknownNode,
)
from tests.core.handlers.test_clone import clone_of
from tests.core.helpers.logs import (
    CLUSTER,
    LAW,
    MEMBERS,
    NODES,
    LogEntry,
    ask,
    lead,
    logs,
    play,
    restored,
    run,
    snapshot_of,
)

NEW = ChangeMember("n4", MemberChange.JOIN, peer="h4:1", client="h4:2")
REFUSALS = (NodeExists, ChangeInProgress, UnknownNode, LastNode)


@pytest.fixture
def machine() -> Machine:
    """Return a machine of a cluster with three voters."""
    machine = Machine()
    run(machine, lead())
    return machine


def told(*names: str, host: str = "h") -> Lead:
    """Return a Lead with the addresses of these nodes."""
    addresses = tuple(Address(name, f"{host}:1", f"{host}:2") for name in names)
    return Lead("n1", 2, MEMBERS, CLUSTER, 0, addresses=addresses)


# --- case by case

def test_there_are_no_members_before_the_first_lead() -> None:
    machine = Machine()
    replies = ask(machine, NEW, ChangeMember("n4", MemberChange.PROMOTE, 0), ChangeMember("n4", MemberChange.REMOVE, 0))
    assert replies == [ChangeInProgress(), ChangeInProgress(), UnknownNode()]
    assert machine.membership == Membership()
    assert machine.membership.voters == ()


def test_first_lead_names_the_voters_and_later_ones_do_not(machine: Machine) -> None:
    assert machine.membership.voters == MEMBERS
    assert (machine.membership.learner, machine.membership.configuration) == (None, 0)
    before = machine.membership
    run(machine, Lead("n9", 2, ("n1", "n9"), CLUSTER, 0))
    assert machine.membership is before


def test_first_lead_tells_addresses_of_members_only() -> None:
    machine = Machine()
    run(machine, told("n2", "n9"))
    assert machine.membership.addresses == {
        "n1": Address("n1", "", ""), "n2": Address("n2", "h:1", "h:2"), "n3": Address("n3", "", ""),
    }


def test_later_leads_tell_addresses_not_known_yet(machine: Machine) -> None:
    run(machine, told("n1", host="old"))
    ask(machine, ChangeMember("n4", MemberChange.JOIN, client="own:2"))
    run(machine, told("n1", "n2", "n4", "n9", host="new"))
    before = machine.membership
    assert list(before.addresses.values()) == [
        Address("n1", "old:1", "old:2"), Address("n2", "new:1", "new:2"), Address("n3", "", ""),
        Address("n4", "new:1", "own:2"),
    ]
    run(machine, told("n1", "n2", "n4", host="newer"))
    assert machine.membership is before


def test_new_node_learns_and_is_promoted(machine: Machine) -> None:
    assert ask(machine, NEW) == [Joined(4)]
    assert machine.membership.voters == MEMBERS
    assert (machine.membership.learner, machine.membership.configuration) == ("n4", 0)
    assert ask(machine, ChangeMember("n4", MemberChange.PROMOTE, 0)) == [Accepted()]
    assert machine.membership.voters == (*MEMBERS, "n4")
    assert (machine.membership.learner, machine.membership.configuration) == (None, 1)
    assert machine.membership.addresses["n4"] == Address("n4", "h4:1", "h4:2")


def test_members_stand_in_name_order(machine: Machine) -> None:
    ask(machine, ChangeMember("n0", MemberChange.JOIN), ChangeMember("n0", MemberChange.PROMOTE, 0))
    assert machine.membership.voters == ("n0", *MEMBERS)


@pytest.mark.parametrize(
    ("before", "operation", "reply"),
    [
        ([], ChangeMember("n2", MemberChange.JOIN), NodeExists()),
        ([NEW], NEW, NodeExists()),
        ([NEW], ChangeMember("n5", MemberChange.JOIN), ChangeInProgress()),
        ([], ChangeMember("n4", MemberChange.PROMOTE, 0), ChangeInProgress()),
        ([], ChangeMember("n1", MemberChange.PROMOTE, 0), ChangeInProgress()),
        ([NEW], ChangeMember("n4", MemberChange.PROMOTE, 1), ChangeInProgress()),
        ([NEW], ChangeMember("n1", MemberChange.PROMOTE, 0), ChangeInProgress()),
        ([], ChangeMember("n4", MemberChange.REMOVE, 0), UnknownNode()),
        ([], ChangeMember("n1", MemberChange.REMOVE, 1), ChangeInProgress()),
        ([], ChangeMember("n1", MemberChange.REMOVE, -1), ChangeInProgress()),
        ([NEW], ChangeMember("n1", MemberChange.REMOVE, 0), ChangeInProgress()),
        ([NEW], ChangeMember("n5", MemberChange.REMOVE, 0), UnknownNode()),
        (
            [ChangeMember("n1", MemberChange.REMOVE, 0), ChangeMember("n2", MemberChange.REMOVE, 1)],
            ChangeMember("n3", MemberChange.REMOVE, 2), LastNode(),
        ),
        (
            [ChangeMember("n1", MemberChange.REMOVE, 0), ChangeMember("n2", MemberChange.REMOVE, 1)],
            ChangeMember("n3", MemberChange.REMOVE, 1), ChangeInProgress(),
        ),
        (
            [ChangeMember("n1", MemberChange.REMOVE, 0), ChangeMember("n2", MemberChange.REMOVE, 1), NEW],
            ChangeMember("n3", MemberChange.REMOVE, 2), ChangeInProgress(),
        ),
    ],
)
def test_change_that_cannot_be_is_refused(
    machine: Machine, before: list[Operation], operation: Operation, reply: Reply
) -> None:
    assert not any(isinstance(other, REFUSALS) for other in ask(machine, *before))
    membership, ids, max_id = machine.membership, dict(machine.server_ids), machine.max_id
    assert ask(machine, operation) == [reply]
    assert machine.membership is membership
    assert (machine.server_ids, machine.max_id) == (ids, max_id)


def test_voter_is_removed(machine: Machine) -> None:
    assert ask(machine, ChangeMember("n2", MemberChange.REMOVE, 0)) == [Accepted()]
    assert machine.membership.voters == ("n1", "n3")
    assert machine.membership.configuration == 1


@pytest.mark.parametrize("configuration", [0, 1, -7])
def test_learner_is_removed_whatever_the_configuration(machine: Machine, configuration: int) -> None:
    assert ask(machine, NEW, ChangeMember("n4", MemberChange.REMOVE, configuration)) == [Joined(4), Accepted()]
    assert machine.membership.voters == MEMBERS
    assert (machine.membership.learner, machine.membership.configuration) == (None, 0)
    assert "n4" not in machine.server_ids


def test_two_removals_for_one_configuration_do_not_both_happen(machine: Machine) -> None:
    assert ask(
        machine, ChangeMember("n1", MemberChange.REMOVE, 0), ChangeMember("n2", MemberChange.REMOVE, 0),
    ) == [Accepted(), ChangeInProgress()]
    assert machine.membership.voters == ("n2", "n3")


def test_removed_node_may_come_back(machine: Machine) -> None:
    replies = ask(
        machine, ChangeMember("n2", MemberChange.REMOVE, 0), ChangeMember("n2", MemberChange.JOIN),
        ChangeMember("n2", MemberChange.PROMOTE, 1),
    )
    assert replies == [Accepted(), Joined(4), Accepted()]
    assert machine.membership.voters == MEMBERS
    assert machine.membership.configuration == 2


def test_service_is_switched_off_and_on_and_stays_so_over_a_lead(machine: Machine) -> None:
    assert machine.online
    assert ask(machine, SwitchService(False)) == [Accepted()]
    run(machine, lead("n2", 2))
    assert not machine.online
    assert not restored(snapshot_of(machine)).online
    ask(machine, SwitchService(True))
    assert machine.online


# --- laws

Change = tuple[str, str, int]       # kind, node, how much the number of the configuration is wrong

_changes = st.lists(
    st.tuples(
        st.sampled_from(["add", "promote", "promote learner", "remove", "remove", "lead"]),
        st.sampled_from(NODES),
        st.sampled_from([0, 0, 0, 0, -1, 1]),
    ),
    min_size=1,
    max_size=4,
)
histories = st.lists(_changes, max_size=25)


def operation_of(membership: Membership, kind: str, node: str, offset: int) -> Operation:
    """Return an operation as a node with this membership proposes it, or with another number of the configuration."""
    configuration = membership.configuration + offset
    match kind:
        case "add":
            return ChangeMember(node, MemberChange.JOIN, peer=f"{node}:1")
        case "promote":
            return ChangeMember(node, MemberChange.PROMOTE, configuration)
        case "promote learner":
            return ChangeMember(membership.learner or node, MemberChange.PROMOTE, configuration)
        case "remove":
            return ChangeMember(node, MemberChange.REMOVE, configuration)
        case _:
            return Lead(node, 1, (node,), CLUSTER, 0, addresses=(Address(node, f"{node}:1", f"{node}:2"),))


def machine_after(history: list[list[Change]]) -> Machine:
    """Return a machine that has applied these changes, an entry for each list of them."""
    machine = Machine()
    for changes in history:
        run(machine, *[operation_of(machine.membership, *change) for change in changes])
    return machine


def assert_one_step(machine: Machine, before: Membership, reply: Reply) -> None:
    """Assert what holds from the membership `before` an operation to the one behind it."""
    after = machine.membership
    if before.voters:
        assert after.voters
        changed = set(before.voters) ^ set(after.voters)
        assert len(changed) <= 1
        assert after.configuration == before.configuration + len(changed)
    assert sorted(machine.server_ids) == list(after.addresses)
    learners = [] if after.learner is None else [after.learner]
    assert sorted([*after.voters, *learners]) == list(after.addresses)
    assert (after is before) == (after == before)
    if isinstance(reply, REFUSALS):
        assert after is before


@LAW
@given(histories)
def test_voters_change_one_by_one(history: list[list[Change]]) -> None:
    machine = Machine()
    for changes in history:
        for change in changes:
            before = machine.membership
            (reply,) = ask(machine, operation_of(before, *change))
            assert_one_step(machine, before, reply)


@LAW
@given(logs)
def test_voters_change_one_by_one_whatever_else_is_done(log: list[LogEntry]) -> None:
    machine = Machine()
    for now_ms, seed, operations in log:
        for operation in operations:
            before = machine.membership
            (reply,) = ask(machine, operation, now_ms=now_ms, seed=seed)
            assert_one_step(machine, before, reply)


@LAW
@given(histories)
def test_each_configuration_is_changed_once(history: list[list[Change]]) -> None:
    machine = Machine()
    learner: str | None = None
    changed: list[int] = []         # configurations for which a change of the voters was accepted
    for changes in history:
        # All of an entry are proposed for one membership.
        operations = [operation_of(machine.membership, *change) for change in changes]
        for operation, reply in zip(operations, ask(machine, *operations), strict=True):
            if isinstance(reply, Joined):
                learner = operation.node        # type: ignore[union-attr]
            elif isinstance(operation, ChangeMember) and isinstance(reply, Accepted):
                if operation.change is MemberChange.PROMOTE or operation.node != learner:
                    changed.append(operation.configuration)
                if operation.node == learner:
                    learner = None
    assert changed == list(range(machine.membership.configuration))


@LAW
@given(histories, histories, st.booleans())
def test_clone_changes_no_member(here: list[list[Change]], there: list[list[Change]], online: bool) -> None:
    machine, other = machine_after(here), machine_after(there)
    ask(machine, SwitchService(online))
    ask(other, SwitchService(not online))
    before, ids, max_id = machine.membership, dict(machine.server_ids), machine.max_id
    assert ask(machine, *clone_of(snapshot_of(other)))[-1] == Accepted()
    assert machine.membership is before
    assert (machine.online, machine.server_ids, machine.max_id) == (online, ids, max_id)


@LAW
@given(histories, st.booleans())
def test_restored_members_are_the_same_and_go_on_the_same(history: list[list[Change]], online: bool) -> None:
    machine = machine_after(history)
    ask(machine, SwitchService(online))
    copy = restored(snapshot_of(machine))
    assert (copy.membership, copy.online) == (machine.membership, machine.online)
    assert list(copy.membership.addresses) == list(machine.membership.addresses)
    assert (copy.server_ids, copy.max_id) == (machine.server_ids, machine.max_id)
    further = [operation_of(machine.membership, *change) for changes in history for change in changes]
    entries = [LogEntry(0, 0, further)]
    assert list(play(copy, entries)) == list(play(machine, entries))
    assert snapshot_of(copy) == snapshot_of(machine)
