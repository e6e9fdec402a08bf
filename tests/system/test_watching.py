"""Three real nodes are observed over HTTP while one of them goes, comes back, and reaches a mark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.system.test_operation import PlainClient
from tests.waiting import PATIENCE_S, until

Samples = dict[tuple[str, tuple[str, ...]], float]


def get(address: str, page: str) -> tuple[int, str]:
    """Return status and body of a page."""
    try:
        with urllib.request.urlopen(f"http://{address}/{page}", timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


def samples(address: str) -> Samples:
    """Return the metrics of a node, by name and values of labels."""
    status, body = get(address, "metrics")
    assert status == 200
    return {(sample.name, tuple(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(body) for sample in family.samples}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(3) as started:
        yield started


def test_every_node_tells_who_leads_and_how_far_it_is(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    cluster.wait_until_level()
    others = [name for name in cluster.names if name != leader]
    before = samples(cluster.http(leader))
    with Client(cluster.servers) as client:
        for number in range(20):
            client.put("q", b"x" * number)
    until(lambda: all(get(cluster.http(name), "readyz") == (200, "ready\n") for name in cluster.names), "all are ready")
    until(lambda: all(samples(cluster.http(name))["sockpqd_jobs", ("q", "waiting")] == 20 for name in others),
          "the followers have the jobs")
    seen = {name: samples(cluster.http(name)) for name in cluster.names}
    assert [name for name in cluster.names if seen[name]["sockpqd_serving", ()]] == [leader]
    assert [name for name in cluster.names if seen[name]["sockpqd_role", ("LEADER",)]] == [leader]
    now = seen[leader]
    assert now["sockpqd_commands_total", ("PUT",)] - before["sockpqd_commands_total", ("PUT",)] >= 20
    for name in ("sockpqd_commit_latency_seconds_count", "sockpqd_journal_sync_seconds_count"):
        assert now[name, ()] - before[name, ()] >= 20
    for name in others:
        assert now["sockpqd_peer_up", (name,)] == 1
        assert now["sockpqd_peer_lag_entries", (name,)] >= 0
        assert seen[name]["sockpqd_term", ()] == now["sockpqd_term", ()]
    assert now["sockpqd_memory_bytes", ()] > 1 << 20
    assert now["sockpqd_disk_free_bytes", ()] > 0


def test_readiness_follows_the_majority(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    first, last = [name for name in cluster.names if name != leader]
    changes = samples(cluster.http(last))["sockpqd_leader_changes_total", ()]
    cluster.kill(leader)
    until(lambda: cluster.leader() is not None, "another one leads")
    until(lambda: get(cluster.http(last), "readyz")[0] == 200, "it is ready again")
    assert samples(cluster.http(last))["sockpqd_leader_changes_total", ()] > changes
    cluster.kill(first)
    until(lambda: get(cluster.http(last), "readyz")[0] == 503, "alone it is not ready")
    assert get(cluster.http(last), "healthz") == (200, "ok\n")
    assert samples(cluster.http(last))["sockpqd_serving", ()] == 0
    cluster.restart(leader)
    cluster.restart(first)
    cluster.wait_until_level()
    until(lambda: all(get(cluster.http(name), "readyz")[0] == 200 for name in cluster.names), "all are ready")


def test_a_node_that_is_switched_offline_is_not_ready(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    follower = next(name for name in cluster.names if name != leader)
    client = PlainClient([cluster.direct(follower)])
    assert client.say("OFFLINE")[:2] == ["200", "OK"]
    assert get(cluster.http(follower), "readyz") == (
        503, f"this node is stopping, or switched offline (pqctl node online {follower})\n")
    assert client.say("ONLINE")[:2] == ["200", "OK"]
    until(lambda: get(cluster.http(follower), "readyz")[0] == 200, "it is ready again")
    client.wire.close()


@pytest.mark.parametrize("limits", [{"memory_mark": 1 << 20}, {"disk_free_bytes_min": 1 << 50}])
def test_a_mark_refuses_what_brings_jobs_only(limits: dict[str, int]) -> None:
    with LocalCluster(1, {"limits": limits}) as cluster:
        client = PlainClient(cluster.servers)
        for command, data in (("PUT q 0 1", b"x"), ("PUT q 0 1 NEW WAIT o", b"x"), ("CLONE 3", b"xyz")):
            assert client.say(command, data) == ["503", "Busy"]
        client.say("SESSION")
        assert client.say("REQ 1 PUT q 0 1", b"x") == ["503", "Busy"]
        assert client.say("GET q")[0] == "404"
        assert client.say("DONE 1")[0] == "404"
        client.wire.close()
        found = samples(cluster.http("n1"))
        assert found["sockpqd_full", ()] == 1
        mark = "memory" if "memory_mark" in limits else "disk"
        assert found["sockpqd_mark_reached", (mark,)] == 1
        assert found["sockpqd_errors_total", ("503",)] == 4
        cluster.wait_until_logged("n1", f"limits.{next(iter(limits))}")


def test_the_others_marks_count(tmp_path: Path) -> None:
    """Two of three nodes have reached a mark, the leader has not: a job would lack room on a majority."""
    with LocalCluster(3) as cluster:
        leader = cluster.wait_for_leader()
        for name in cluster.names:
            if name != leader:
                file = cluster.config_file(name)
                file.write_text(file.read_text().replace("[[cluster", "[limits]\nmemory_mark = 1\n[[cluster", 1))
                cluster.terminate(name)
                cluster.restart(name)
        until(lambda: samples(cluster.http(leader))["sockpqd_full", ()] == 1 or cluster.leader() != leader,
              "the leader knows")
        client = PlainClient([cluster.direct(cluster.wait_for_leader())])
        assert client.say("PUT q 0 1", b"x") == ["503", "Busy"]
        client.wire.close()


def test_the_last_line_of_a_fail_stop_arrives_although_nobody_reads_at_first(tmp_path: Path) -> None:
    file = tmp_path / "n1.toml"
    file.write_text(f'[node]\nname = "n1"\ndata_dir = "{tmp_path}/data"\n[listen]\nclient = "127.0.0.1:1"\n'
                    'peer = "127.0.0.1:2"\n[[cluster.members]]\nname = "n1"\nclient = "127.0.0.1:1"\n'
                    'peer = "127.0.0.1:2"\n')
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "journal").write_text("this is no directory")
    with subprocess.Popen([Path(sys.executable).parent / "sockpqd", "--config", file], stderr=subprocess.PIPE,
                          env={**os.environ}, text=True) as process:
        assert process.wait(PATIENCE_S) == 75
        assert process.stderr
        line = json.loads(process.stderr.read().splitlines()[-1])
    assert (line["level"], line["node"]) == ("critical", "n1")
    assert line["message"].startswith("the node cannot start: ")
