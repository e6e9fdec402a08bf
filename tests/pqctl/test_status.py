"""`pqctl cluster status` against servers in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sockpqd.pqctl.health import DEGRADED, HEALTHY, NOT_SERVING
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.running import run
from tests.waiting import at_most

NODE_KEYS = ["id", "name", "client", "role", "online", "term", "applied", "lag", "version", "level", "cluster_level"]


def status(capsys: pytest.CaptureFixture[str], servers: list[str]) -> tuple[int, dict[str, Any]]:
    """Return exit code and JSON; the form of the JSON is checked each time."""
    code, out, err = run(capsys, "--servers", ",".join(servers), "cluster", "status", "--json")
    assert err == ""
    told = json.loads(out)
    assert list(told) == ["cluster", "serving", "leader", "can_lose", "nodes", "copy", "fenced_for"]
    assert all(list(node) == NODE_KEYS for node in told["nodes"])
    return code, told


def roles(told: dict[str, Any]) -> dict[str, str]:
    return {node["name"]: node["role"] for node in told["nodes"]}


def test_a_healthy_cluster(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = status(capsys, cluster.addresses)
    assert code == HEALTHY
    assert (told["serving"], told["leader"], told["can_lose"]) == (True, "n1", 1)
    assert told["nodes"][0] == {
        "id": 1, "name": "n1", "client": cluster.addresses[0], "role": "LEADER",
        "online": True, "term": 1, "applied": 1, "lag": 0, "version": "1.0.0",
        "level": 1, "cluster_level": 1,
    }
    assert roles(told) == {"n1": "LEADER", "n2": "FOLLOWER", "n3": "FOLLOWER"}


def test_one_server_is_enough_to_find_the_others(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = status(capsys, cluster.addresses[2:])
    assert code == HEALTHY
    assert told["leader"] == "n1"


def test_a_dead_follower_degrades(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.servers[1].stop()
    code, told = status(capsys, cluster.addresses)
    assert code == DEGRADED
    assert (told["serving"], told["can_lose"]) == (True, 0)
    dead = told["nodes"][1]
    assert (dead["name"], dead["role"]) == ("n2", "DOWN")
    assert [dead[key] for key in ("online", "term", "applied", "lag", "version")] == [None] * 5


def test_a_node_that_died_before_its_leader_noticed_is_down(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = cluster.status_lines()
    cluster.servers[1].stop()
    cluster.servers[0].show_status(lines)
    code, told = status(capsys, cluster.addresses)
    assert code == DEGRADED
    assert roles(told)["n2"] == "DOWN"


def test_no_leader(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.servers[0].stop()
    code, told = status(capsys, cluster.addresses)
    assert code == NOT_SERVING
    assert (told["serving"], told["leader"], told["can_lose"]) == (False, None, 0)
    assert roles(told) == {"n1": "DOWN", "n2": "FOLLOWER", "n3": "FOLLOWER"}


def test_followers_that_still_believe_in_a_dead_leader_do_not_convince(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = cluster.status_lines()
    cluster.servers[0].stop()
    for server in cluster.servers:
        server.show_status(lines)
    code, told = status(capsys, cluster.addresses)
    assert code == NOT_SERVING
    assert roles(told)["n1"] == "DOWN"


def test_a_leader_that_does_not_serve_is_none(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    lines = cluster.status_lines()
    for server in cluster.servers:
        server.show_status(lines)
    cluster.servers[0].script.answers["INTERCONNECT"] = b"200 OK 2147483647\r\n"       # it knows no leader
    code, told = status(capsys, cluster.addresses)
    assert code == NOT_SERVING
    assert roles(told)["n1"] == "LEADER"        # its own words


def test_nobody_answers(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    for server in cluster.servers:
        server.stop()
    code, told = status(capsys, cluster.addresses)
    assert code == NOT_SERVING
    assert [node["role"] for node in told["nodes"]] == ["DOWN"] * 3
    assert [node["client"] for node in told["nodes"]] == cluster.addresses


def test_a_server_that_says_nothing_is_down_and_does_not_hold_up(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.servers[2].fail("INTERCONNECT", Fault.STALL)
    with at_most(15):
        code, told = status(capsys, cluster.addresses)
    assert code == DEGRADED
    assert roles(told)["n3"] == "DOWN"


def test_rubbish_from_a_server_is_no_traceback(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.servers[2].fail("CLUSTER", Fault.RUBBISH, Fault.RUBBISH)
    code, told = status(capsys, cluster.addresses)
    assert code == DEGRADED
    assert roles(told)["n3"] == "DOWN"


def test_servers_of_another_cluster_and_no_servers_at_all_do_not_confuse(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemoryCluster(1) as other:
        strangers = [other.addresses[0], "127.0.0.1:1"]
        code, told = status(capsys, [*strangers, *cluster.addresses])
        assert code == HEALTHY
        assert (told["leader"], told["can_lose"], len(told["nodes"])) == ("n1", 1, 3)
        code, out, _ = run(capsys, "--servers", ",".join([*cluster.addresses, *strangers]), "cluster", "status")
    assert code == HEALTHY
    assert f"{strangers[0]} belongs to another cluster" in out
    assert f"{strangers[1]} does not answer" in out


def test_of_two_clusters_the_one_named_first_is_shown(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemoryCluster(1) as other:
        code, told = status(capsys, [other.addresses[0], cluster.addresses[0]])
        assert (code, len(told["nodes"])) == (HEALTHY, 1)
        code, told = status(capsys, [cluster.addresses[0], other.addresses[0]])
        assert (code, len(told["nodes"])) == (HEALTHY, 3)


def test_the_table_is_for_people(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--servers", ",".join(cluster.addresses), "cluster", "status")
    head, columns, first, *_ = out.splitlines()
    assert head == "serving: n1 leads; 3 of 3 nodes up, can lose 1 more node"
    assert columns.split() == ["node", "role", "id", "client", "online", "term", "applied", "lag", "version", "level"]
    assert first.split() == ["n1", "LEADER", "1", cluster.addresses[0], "yes", "1", "1", "0", "1.0.0", "1"]
    cluster.servers[1].stop()
    _, out, _ = run(capsys, "--servers", ",".join(cluster.addresses), "cluster", "status")
    assert out.startswith("DEGRADED, but serving: n1 leads; 2 of 3 nodes up, can lose no more nodes")
    cluster.servers[0].stop()
    _, out, _ = run(capsys, "--servers", ",".join(cluster.addresses), "cluster", "status")
    assert out.startswith("NOT SERVING: 1 of 3 nodes up, 2 needed")
    code, out, _ = run(capsys, "--servers", cluster.addresses[0], "cluster", "status")     # the others may well serve
    assert (code, out.splitlines()[0]) == (
        NOT_SERVING, "NOT REACHED: no answer from 1 server; name others of the cluster by --servers")


def test_the_servers_can_come_from_the_environment(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOCKPQ_SERVERS", cluster.addresses[0])
    code, _, _ = run(capsys, "cluster", "status")
    assert code == HEALTHY


def test_the_console_script_is_installed(cluster: MemoryCluster) -> None:
    script = Path(sys.executable).parent / "pqctl"
    ended = subprocess.run(
        [script, "--servers", cluster.addresses[1], "cluster", "status", "--json"],
        capture_output=True, text=True, check=True,
    )
    assert json.loads(ended.stdout)["serving"] is True


def test_a_node_without_a_known_address_does_no_harm(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [*cluster.status_lines(), "4 n4 - - LEARNER ONLINE 7 50 50 0.1.0"]
    for server in cluster.servers:
        server.show_status(lines)
    code, told = status(capsys, cluster.addresses)
    assert code == DEGRADED         # nobody can ask it
    assert (told["nodes"][3]["client"], told["nodes"][3]["role"], told["can_lose"]) == (None, "DOWN", 1)
    _, out, _ = run(capsys, "--servers", cluster.addresses[0], "cluster", "status")
    assert out.splitlines()[-3].split() == ["n4", "DOWN", "4", *"-------"]


def test_a_leader_that_was_just_switched_offline_does_not_serve(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = cluster.status_lines()
    cluster.servers[0].show_status([line.replace("ONLINE", "OFFLINE") for line in lines])
    code, told = status(capsys, cluster.addresses)      # its INTERCONNECT number is still the smallest
    assert (code, told["serving"]) == (NOT_SERVING, False)


def test_a_service_that_is_switched_offline_is_called_so(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.switch(online=False)
    code, told = status(capsys, cluster.addresses)
    assert code == NOT_SERVING
    assert [node["online"] for node in told["nodes"]] == [False] * 3
    _, out, _ = run(capsys, "--servers", cluster.addresses[0], "cluster", "status")
    assert out.startswith("NOT SERVING: 3 of 3 nodes up, all switched offline")
