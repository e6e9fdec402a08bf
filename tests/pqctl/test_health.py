"""The verdict on hand-made views, which servers do not give easily."""

from __future__ import annotations

import pytest
from sockpq import Busy, NodeStatus, ServerView, Unavailable, Untrusted

from sockpqd.pqctl import health as judgement
from sockpqd.pqctl.doctor.cluster_checks import servers_answer
from sockpqd.pqctl.health import DEGRADED, HEALTHY, NOT_SERVING, Health, complaint
from sockpqd.pqctl.report import headline


def line(name: str, server_id: int | None, role: str, *, term: int = 7, online: bool | None = True) -> NodeStatus:
    return NodeStatus(server_id, name, f"10.0.0.{name[1:]}:11361", role, online, term, 100, 0, "0.1.0")


def view(name: str, own_id: int, *lines: NodeStatus) -> ServerView:
    return ServerView(f"{name}.example:11361", f"10.0.0.{name[1:]}:11361", own_id, list(lines), None)


def assess(views: list[ServerView]) -> Health:
    return judgement.assess(views, len(views))


def no_view(server: str) -> ServerView:
    return ServerView(server, None, None, [], Unavailable("refused"))


def test_a_node_cut_off_from_its_leader_answers_but_does_not_count() -> None:
    seen_by_leader = (line("n1", 1, "LEADER"), line("n2", 2, "FOLLOWER"), line("n3", 3, "DOWN"))
    seen_by_n3 = (line("n1", 1, "DOWN", term=6), line("n2", 2, "DOWN", term=6), line("n3", 3, "CANDIDATE", term=6))
    cut_off = view("n3", 2**31 - 1, *seen_by_n3)
    health = assess([view("n1", 1, *seen_by_leader), view("n2", 2, *seen_by_leader), cut_off])
    assert [node.role for node in health.nodes] == ["LEADER", "FOLLOWER", "CANDIDATE"]
    assert (health.up, health.can_lose, health.exit_code) == (2, 0, DEGRADED)
    assert any("n3" in note for note in health.notes)


def test_of_two_that_claim_to_lead_the_newer_term_counts() -> None:
    old = (line("n1", 1, "LEADER", term=6), line("n2", 2, "DOWN", term=6), line("n3", 3, "DOWN", term=6))
    new = (line("n3", 3, "LEADER"), line("n1", 4, "DOWN"), line("n2", 5, "FOLLOWER"))
    health = assess([view("n1", 1, *old), view("n2", 5, *new), view("n3", 3, *new)])
    assert health.leader is not None
    assert health.leader.name == "n3"
    assert [(node.name, node.id) for node in health.nodes] == [("n3", 3), ("n1", 4), ("n2", 5)]
    assert health.exit_code == DEGRADED


def test_a_node_that_was_switched_off_degrades() -> None:
    lines = (line("n1", 1, "LEADER"), line("n2", 2, "FOLLOWER"), line("n3", 3, "FOLLOWER", online=False))
    health = assess([view("n1", 1, *lines), view("n2", 2, *lines), view("n3", 3, *lines)])
    assert (health.up, health.can_lose, health.exit_code) == (3, 1, DEGRADED)


def test_five_nodes_can_lose_two() -> None:
    lines = tuple(line(f"n{number}", number, "LEADER" if number == 1 else "FOLLOWER") for number in range(1, 6))
    views = [view(f"n{number}", number, *lines) for number in range(1, 6)]
    assert assess(views).can_lose == 2
    assert assess([*views[:4], no_view("10.0.0.5:11361")]).can_lose == 1
    assert assess([*views[:2], *(no_view(f"10.0.0.{number}:11361") for number in (3, 4, 5))]).can_lose == 0


def test_the_first_line_names_the_nodes_that_make_it_less_than_healthy() -> None:
    lines = (line("n1", 1, "LEADER"), line("n2", 2, "FOLLOWER"), line("n3", 3, "FOLLOWER", online=False))
    health = assess([view(node.name, node.id or 0, *lines) for node in lines])
    assert health.exit_code == DEGRADED
    assert headline(health) == (
        "DEGRADED, but serving: n1 leads; 3 of 3 nodes up, can lose 1 more node; n3 switched offline")


def test_a_member_whose_certificate_is_refused_is_named_with_the_reason() -> None:
    lines = (line("n1", 1, "LEADER"), line("n2", 2, "FOLLOWER"))
    reason = Untrusted("10.0.0.2:11361: its certificate is not for the address 10.0.0.2")
    health = assess([view("n1", 1, *lines), ServerView("10.0.0.2:11361", None, None, [], reason)])
    assert health.notes == [str(reason)]
    assert "n2" in health.missing


def with_learner(*, up: int = 3, role: str = "LEARNER", term: int | None = 7) -> tuple[NodeStatus, ...]:
    """Return n1's lines on three voters, the first `up` of which are there, and on a node that was added."""
    voters = (line(f"n{number}", number, "LEADER" if number == 1 else "FOLLOWER") for number in (1, 2, 3))
    down = (voter if number <= up else voter._replace(role="DOWN", online=None, term=None)
            for number, voter in enumerate(voters, start=1))
    return *down, line("n4", 4, role)._replace(term=term, online=None if term is None else True)


def test_a_learner_counts_for_nothing() -> None:
    lines = with_learner()
    views = [view(f"n{number}", number, *lines) for number in (1, 2, 3, 4)]
    health = assess(views)
    assert [node.role for node in health.nodes] == ["LEADER", "FOLLOWER", "FOLLOWER", "LEARNER"]
    assert (health.voters, health.up, health.can_lose, health.exit_code) == (3, 3, 1, HEALTHY)
    assert headline(health) == "serving: n1 leads; 3 of 3 nodes up, can lose 1 more node"
    two = with_learner(up=2)
    health = assess([view(f"n{number}", number, *two) for number in (1, 2, 4)])
    assert (health.voters, health.up, health.can_lose, health.exit_code) == (3, 2, 0, DEGRADED)


def test_a_learner_that_does_not_answer_degrades_and_takes_nothing_from_what_can_be_lost() -> None:
    lines = with_learner(term=None)
    health = assess([*(view(f"n{number}", number, *lines) for number in (1, 2, 3)), no_view("10.0.0.4:11361")])
    assert [node.role for node in health.nodes] == ["LEADER", "FOLLOWER", "FOLLOWER", "DOWN"]
    assert (health.voters, health.up, health.can_lose, health.exit_code) == (3, 3, 1, DEGRADED)
    assert health.notes == ["n4 was added and does not answer: it does not count yet"]


@pytest.mark.parametrize(("role", "term"), [("LEARNER", None), ("DOWN", None)])
def test_a_learner_the_leader_is_not_in_contact_with_is_told(role: str, term: int | None) -> None:
    lines, own = with_learner(role=role, term=term), with_learner()
    views = [*(view(f"n{number}", number, *lines) for number in (1, 2, 3)), view("n4", 4, *own)]
    health = assess(views)
    assert (health.voters, health.up, health.can_lose, health.exit_code) == (3, 3, 1, DEGRADED)
    assert health.notes == ["n4 answers, but is not in contact with the leader"]


def test_nodes_that_have_not_heard_of_a_change_yet_belong_to_the_same_cluster() -> None:
    new, old = with_learner(), with_learner()[:3]
    views = [view("n2", 2, *old), view("n3", 3, *old), view("n1", 1, *new), view("n4", 4, *new)]
    health = assess(views)
    assert [node.name for node in health.nodes] == ["n1", "n2", "n3", "n4"]
    assert (health.voters, health.up, health.exit_code, health.notes) == (3, 3, HEALTHY, [])


def test_a_node_that_was_removed_and_still_runs_is_told() -> None:
    before = tuple(line(f"n{number}", number, "LEADER" if number == 1 else "FOLLOWER") for number in (1, 2, 3))
    views = [view("n1", 1, *before[:2]), view("n2", 2, *before[:2]), view("n3", 3, *before)]
    health = assess(views)
    assert [node.name for node in health.nodes] == ["n1", "n2"]
    assert (health.voters, health.up, health.can_lose, health.exit_code) == (2, 2, 0, HEALTHY)
    assert health.notes == ["n3 answers, but is not a member of the cluster"]


def test_without_a_leader_the_newest_view_of_the_members_counts() -> None:
    old = tuple(line(f"n{number}", number, "FOLLOWER") for number in (1, 2, 3))
    new = tuple(node._replace(applied=101) for node in (*old[:2], line("n4", 4, "FOLLOWER")))
    health = assess([view("n1", 2**31 - 1, *old), view("n2", 2**31 - 1, *new)])
    assert [node.name for node in health.nodes] == ["n1", "n2", "n4"]


def test_a_new_cluster_without_ids_is_electing() -> None:
    lines = (line("n1", None, "CANDIDATE"), line("n2", None, "FOLLOWER"), line("n3", None, "FOLLOWER"))
    health = assess([view(f"n{number}", 2**31 - 1, *lines) for number in (1, 2, 3)])
    assert health.exit_code == NOT_SERVING
    assert headline(health) == "NOT SERVING: 3 of 3 nodes up, no leader yet"
    assert health.can_lose == 1


def full(server: str) -> ServerView:
    return ServerView(server, None, None, [], Busy("503 Busy"))


def test_a_node_without_a_place_for_us_is_full_and_not_down() -> None:
    lines = tuple(line(f"n{number}", number, "LEADER" if number == 1 else "FOLLOWER") for number in (1, 2, 3))
    health = assess([full("10.0.0.1:11361"), view("n2", 2, *lines), view("n3", 3, *lines)])
    assert [node.role for node in health.nodes] == ["FULL", "FOLLOWER", "FOLLOWER"]
    assert health.leader is not None
    assert (health.leader.name, health.up, health.exit_code) == ("n1", 3, DEGRADED)
    health = assess([view("n1", 1, *lines), full("10.0.0.2:11361"), view("n3", 3, *lines)])
    assert (health.nodes[1].role, health.up, health.exit_code) == ("FULL", 3, DEGRADED)
    health = assess([full(f"10.0.0.{number}:11361") for number in (1, 2, 3)])
    assert {node.role for node in health.nodes} == {"FULL"}
    assert headline(health) == "NOT SERVING: 3 of 3 nodes up, 3 full: no further connections are taken"
    check = servers_answer([full("10.0.0.1:11361")], [])
    assert (check.state, check.found) == ("FAIL", "10.0.0.1:11361 is full: it takes no further connections")


@pytest.mark.parametrize(("error", "told"), [
    ("a:1: the server closed the connection", "a:1: the server closed the connection (does it expect TLS? give --ca "
                                              "FILE or --tls; or is this its port for other nodes?)"),
    ("a:1: nobody listens there (connection refused)", "a:1: nobody listens there (connection refused)"),
])
def test_a_server_that_may_expect_tls_is_asked_for_it(error: str, told: str) -> None:
    assert complaint(no_view("a:1")._replace(error=Unavailable(error))) == told
