"""`pqctl node ..` with real nodes, and the commands of the cluster that change it."""

from __future__ import annotations

import pytest

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNREACHED
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.running import Terminal, ask, run
from tests.waiting import until


def test_a_leader_that_is_switched_offline_gives_leadership_away(
    nodes: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    leader = nodes.wait_for_leader()
    servers = [nodes.server(next(name for name in nodes.names if name != leader))]
    assert ask(capsys, servers, "node", "offline", leader) == (DONE, {"name": leader, "online": False})
    assert nodes.wait_for_leader() != leader
    assert ask(capsys, servers, "node", "online", leader) == (DONE, {"name": leader, "online": True})
    nodes.wait_until(lambda views: all(node.online for view in views for node in view.nodes), "all online")
    nodes.wait_until_level()
    code, told = ask(capsys, servers, "cluster", "transfer", leader)
    assert (code, told.get("name")) == (DONE, leader), told
    assert nodes.wait_for_leader() == leader


def test_a_node_writes_a_snapshot(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("node", "snapshot", "n3"), ("cluster", "snapshot", "n3")):
        code, told = ask(capsys, nodes.servers[:1], *arguments)
        assert (code, told["name"]) == (DONE, "n3")
        assert list((nodes.data_dir("n3") / "snapshots").glob(f"*{told['applied']}"))


def test_a_node_is_shut_down_after_a_yes(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    follower = next(name for name in nodes.names if name != nodes.wait_for_leader())
    terminal = Terminal(nodes.servers, "node", "shutdown", follower)
    terminal.wait_for("[y/N]")
    assert "The cluster goes on with 2 of 3 nodes." in " ".join(terminal.text.split())
    terminal.type("n\n")
    assert terminal.end() == REFUSED
    assert nodes.running(follower)
    assert ask(capsys, nodes.servers, "node", "shutdown", follower, "--yes") == (DONE, {"name": follower})
    until(lambda: not nodes.running(follower))
    other = next(name for name in nodes.names if name not in (follower, nodes.wait_for_leader()))
    terminal = Terminal([nodes.server(other)], "node", "shutdown", other)
    terminal.wait_for("[y/N]")
    assert "THE CLUSTER CANNOT SERVE WITHOUT IT." in " ".join(terminal.text.split())
    terminal.type("\n")
    assert terminal.end() == REFUSED
    assert ask(capsys, nodes.servers, "node", "online", follower)[0] == UNREACHED
    nodes.restart(follower)
    nodes.wait_until_level()


def test_a_node_is_added_and_removed(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    new = nodes.spare()
    nodes.restart(new)
    code, told = ask(capsys, nodes.servers[:1], "cluster", "add", new, nodes.peer(new), nodes.server(new))
    assert (code, told["name"]) == (DONE, new)
    nodes.wait_until(lambda views: all(
        any(node.name == new and node.role == "FOLLOWER" for node in view.nodes) for view in views), "it counts")
    assert ask(capsys, nodes.servers[:1], "cluster", "remove", new) == (DONE, {"name": new})
    assert ask(capsys, nodes.servers[:1], "cluster", "remove", new)[0] == REFUSED
    assert nodes.terminate(new) == 0


@pytest.mark.parametrize("command", ["offline", "online", "shutdown", "snapshot"])
def test_a_node_that_is_not_there(
    command: str, cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--yes"] if command == "shutdown" else []
    assert run(capsys, "--servers", cluster.addresses[0], "node", command, "n9", *arguments) == (
        REFUSED, "", "there is no node 'n9'; there are: n1, n2, n3\n")
    cluster.servers[2].stop()
    assert run(capsys, "--servers", cluster.addresses[0], "node", command, "n3", *arguments) == (
        UNREACHED, "", "n3 does not answer\n")
