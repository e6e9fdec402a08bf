"""`pqctl cluster status` against fake servers, and its judgement on hand-made views."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sockpq import NodeStatus, ServerView, Unavailable

from pqctl import cluster as judgement
from pqctl.cluster import DEGRADED, HEALTHY, NOT_SERVING, Health
from pqctl.main import main
from pqctl.report import headline
from tests.client.fake_server import FakeCluster, Fault

NODE_KEYS = ["id", "name", "client", "role", "online", "term", "applied", "lag", "version"]


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        yield cluster


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output, errors."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    captured = capsys.readouterr()
    assert isinstance(end.value.code, int)
    return end.value.code, captured.out, captured.err


def status(capsys: pytest.CaptureFixture[str], servers: list[str]) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON; the form of the JSON is checked each time."""
    code, out, err = run(capsys, "--servers", ",".join(servers), "cluster", "status", "--json")
    assert err == ""
    told = json.loads(out)
    assert list(told) == ["serving", "leader", "can_lose", "nodes"]
    assert all(list(node) == NODE_KEYS for node in told["nodes"])
    return code, told


def roles(told: dict[str, Any]) -> dict[str, str]:
    return {node["name"]: node["role"] for node in told["nodes"]}


def test_a_healthy_cluster(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = status(capsys, cluster.addresses)
    assert code == HEALTHY
    assert (told["serving"], told["leader"], told["can_lose"]) == (True, "n1", 1)
    assert told["nodes"][0] == {
        "id": 1, "name": "n1", "client": cluster.addresses[0], "role": "LEADER",
        "online": True, "term": 7, "applied": 100, "lag": 0, "version": "0.1.0",
    }
    assert roles(told) == {"n1": "LEADER", "n2": "FOLLOWER", "n3": "FOLLOWER"}


def test_one_server_is_enough_to_find_the_others(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = status(capsys, cluster.addresses[2:])
    assert code == HEALTHY
    assert told["leader"] == "n1"


def test_a_dead_follower_degrades(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.servers[1].stop()
    code, told = status(capsys, cluster.addresses)
    assert code == DEGRADED
    assert (told["serving"], told["can_lose"]) == (True, 0)
    dead = told["nodes"][1]
    assert (dead["name"], dead["role"]) == ("n2", "DOWN")
    assert [dead[key] for key in ("online", "term", "applied", "lag", "version")] == [None] * 5


def test_a_node_that_died_before_its_leader_noticed_is_down(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [cluster.servers[0].status_line(server) for server in cluster.servers]
    cluster.servers[1].stop()
    cluster.servers[0].status_lines = lines
    code, told = status(capsys, cluster.addresses)
    assert code == DEGRADED
    assert roles(told)["n2"] == "DOWN"


def test_no_leader(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.servers[0].stop()
    code, told = status(capsys, cluster.addresses)
    assert code == NOT_SERVING
    assert (told["serving"], told["leader"], told["can_lose"]) == (False, None, 0)
    assert roles(told) == {"n1": "DOWN", "n2": "FOLLOWER", "n3": "FOLLOWER"}


def test_followers_that_still_believe_in_a_dead_leader_do_not_convince(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [cluster.servers[0].status_line(server) for server in cluster.servers]
    cluster.servers[0].stop()
    for server in cluster.servers:
        server.status_lines = lines
    code, told = status(capsys, cluster.addresses)
    assert code == NOT_SERVING
    assert roles(told)["n1"] == "DOWN"


def test_a_leader_that_does_not_serve_is_none(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [cluster.servers[0].status_line(server) for server in cluster.servers]
    for server in cluster.servers:
        server.status_lines = lines
    cluster.servers[0].id = 2_147_483_647       # its answer to INTERCONNECT: it knows no leader
    code, told = status(capsys, cluster.addresses)
    assert code == NOT_SERVING
    assert roles(told)["n1"] == "LEADER"        # its own words


def test_nobody_answers(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    for server in cluster.servers:
        server.stop()
    code, told = status(capsys, cluster.addresses)
    assert code == NOT_SERVING
    assert [node["role"] for node in told["nodes"]] == ["DOWN"] * 3
    assert [node["client"] for node in told["nodes"]] == cluster.addresses


def test_a_server_that_says_nothing_is_down_and_does_not_hold_up(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.servers[2].fail("INTERCONNECT", Fault.STALL)
    begun = time.monotonic()
    code, told = status(capsys, cluster.addresses)
    assert time.monotonic() - begun < 1.5
    assert code == DEGRADED
    assert roles(told)["n3"] == "DOWN"


def test_rubbish_from_a_server_is_no_traceback(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.servers[2].fail("CLUSTER", Fault.RUBBISH, Fault.RUBBISH)
    code, told = status(capsys, cluster.addresses)
    assert code == DEGRADED
    assert roles(told)["n3"] == "DOWN"


def test_servers_of_another_cluster_and_no_servers_at_all_do_not_confuse(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeCluster(1) as other:
        strangers = [other.addresses[0], "127.0.0.1:1"]
        code, told = status(capsys, [*strangers, *cluster.addresses])
        assert code == HEALTHY
        assert (told["leader"], told["can_lose"], len(told["nodes"])) == ("n1", 1, 3)
        code, out, _ = run(capsys, "--servers", ",".join([*cluster.addresses, *strangers]), "cluster", "status")
    assert code == HEALTHY
    assert f"{strangers[0]} belongs to another cluster" in out
    assert f"{strangers[1]} does not answer" in out


def test_of_two_clusters_the_one_named_first_is_shown(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeCluster(1) as other:
        code, told = status(capsys, [other.addresses[0], cluster.addresses[0]])
        assert (code, len(told["nodes"])) == (HEALTHY, 1)
        code, told = status(capsys, [cluster.addresses[0], other.addresses[0]])
        assert (code, len(told["nodes"])) == (HEALTHY, 3)


def test_the_table_is_for_people(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--servers", ",".join(cluster.addresses), "cluster", "status")
    head, columns, first, *_ = out.splitlines()
    assert head == "serving: n1 leads; 3 of 3 nodes up, can lose 1 more node"
    assert columns.split() == ["node", "role", "id", "client", "online", "term", "applied", "lag", "version"]
    assert first.split() == ["n1", "LEADER", "1", cluster.addresses[0], "yes", "7", "100", "0", "0.1.0"]
    cluster.servers[1].stop()
    _, out, _ = run(capsys, "--servers", ",".join(cluster.addresses), "cluster", "status")
    assert out.startswith("DEGRADED, but serving: n1 leads; 2 of 3 nodes up, can lose no more nodes")
    cluster.servers[0].stop()
    _, out, _ = run(capsys, "--servers", ",".join(cluster.addresses), "cluster", "status")
    assert out.startswith("NOT SERVING: 1 of 3 nodes up, 2 needed")


def test_the_servers_can_come_from_the_environment(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOCKPQ_SERVERS", cluster.addresses[0])
    code, _, _ = run(capsys, "cluster", "status")
    assert code == HEALTHY


@pytest.mark.parametrize(
    "arguments",
    [
        ["cluster", "status"],
        ["--servers", "", "cluster", "status"],
        ["--servers", "a:b", "cluster", "status"],
        ["--servers", ",", "cluster", "status"],
        ["--servers", "a:1", "cluster", "status", "--timeout", "0"],
        ["--servers", "a:1", "cluster", "stattus"],
        ["--servers", "a:1", "cluster", "status", "--jsno"],
        ["--servers"],
        [],
    ],
)
def test_wrong_usage_has_an_exit_code_of_its_own(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOCKPQ_SERVERS", raising=False)
    code, out, err = run(capsys, *arguments)
    assert code == 64
    assert out == ""
    assert "Usage:" in err or "Error:" in err


@pytest.mark.parametrize("arguments", [["--help"], ["cluster", "status", "--help"]])
def test_help_tells_the_exit_codes(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "0 healthy; 1 degraded but serving; 2 not serving; 64 wrong usage" in out


def test_the_console_script_is_installed(cluster: FakeCluster) -> None:
    script = Path(sys.executable).parent / "pqctl"
    ended = subprocess.run(
        [script, "--servers", cluster.addresses[1], "cluster", "status", "--json"],
        capture_output=True, text=True, check=True,
    )
    assert json.loads(ended.stdout)["serving"] is True


# views that fake servers do not make easily

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


def with_learner(*, up: int = 3, role: str = "LEARNER", term: int | None = 7) -> tuple[NodeStatus, ...]:
    """What the leader n1 says of three voters, the first `up` of which are there, and of a node that was added."""
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


def test_a_node_without_a_known_address_does_no_harm(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.learners.append("4 n4 - - LEARNER ONLINE 7 50 50 0.1.0")
    code, told = status(capsys, cluster.addresses)
    assert code == DEGRADED         # nobody can ask it
    assert (told["nodes"][3]["client"], told["nodes"][3]["role"], told["can_lose"]) == (None, "DOWN", 1)
    _, out, _ = run(capsys, "--servers", cluster.addresses[0], "cluster", "status")
    assert out.splitlines()[-2].split() == ["n4", "DOWN", "4", *"------"]


def test_a_service_that_is_switched_offline_is_called_so(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.online = False
    code, told = status(capsys, cluster.addresses)
    assert code == NOT_SERVING
    assert [node["online"] for node in told["nodes"]] == [False] * 3
    _, out, _ = run(capsys, "--servers", cluster.addresses[0], "cluster", "status")
    assert out.startswith("NOT SERVING: 3 of 3 nodes up, all switched offline")


def test_a_new_cluster_without_ids_is_electing() -> None:
    lines = (line("n1", None, "CANDIDATE"), line("n2", None, "FOLLOWER"), line("n3", None, "FOLLOWER"))
    health = assess([view(f"n{number}", 2**31 - 1, *lines) for number in (1, 2, 3)])
    assert health.exit_code == NOT_SERVING
    assert headline(health) == "NOT SERVING: 3 of 3 nodes up, no leader yet"
    assert health.can_lose == 1
