"""The local cluster: real nodes come up, are killed, come back, and nothing stays behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from sockpq import Client, survey

from devcluster.cluster import ASK_S, LocalCluster, say, serves
from devcluster.node import NodeError
from devcluster.ports import HOST
from tests.waiting import gone, until


def test_to_ask_who_leads_writes_nothing_to_the_log() -> None:
    with LocalCluster(nodes=3) as cluster:
        leader = cluster.wait_for_leader()
        cluster.wait_until_level()

        def stands() -> set[tuple[int | None, int | None]]:
            return {(line.term, line.applied) for view in survey(cluster.servers, ASK_S) for line in view.nodes}
        until(lambda: len(stands()) == 1, "all nodes have applied the same entries")
        before = stands()
        found = [cluster.leader() for _ in range(30)]
        assert leader in found
        assert stands() == before


def test_a_killed_leader_is_replaced_and_comes_back() -> None:
    with LocalCluster(nodes=3, config={"raft": {"failover_grace_ms": 1000}}) as cluster:
        leader = cluster.wait_for_leader()
        assert [view.server for view in survey(cluster.servers, ASK_S) if serves(view)] == [cluster.server(leader)]
        with Client(cluster.servers) as client:
            client.put("q", b"before")
            cluster.kill(leader)
            assert not cluster.running(leader)
            client.put("q", b"after", retry_unknown=True)
            assert cluster.wait_for_leader() != leader
            cluster.restart(leader)
            cluster.wait_until_level()
            assert client.total("q").jobs == 2
        folder = cluster.folder
        assert "failover_grace_ms = 1000" in cluster.config_file(leader).read_text()
        assert cluster.logs(leader)
        assert set(cluster.stop().values()) == {0}
    assert not folder.exists()


def test_a_paused_node_neither_answers_nor_ends() -> None:
    with LocalCluster(nodes=1) as cluster:
        cluster.pause("n1")
        assert say(cluster.server("n1"), "PING", 0.3) is None
        assert cluster.leader() is None
        cluster.resume("n1")
        assert cluster.wait_for_leader() == "n1"


def test_a_node_that_cannot_start_is_an_error_with_its_output() -> None:
    cluster = LocalCluster(nodes=1, config={"raft": {"lease_ms": 0}})
    with pytest.raises(NodeError, match="lease_ms"):
        cluster.start()
    assert not cluster.folder.exists()


def test_a_node_whose_port_is_taken_while_it_is_down_comes_back_when_that_is_free() -> None:
    with LocalCluster(nodes=3) as cluster:
        cluster.kill("n3")
        taken = int(cluster.peer("n3").rpartition(":")[2])
        with socket.create_server((HOST, taken)):
            cluster.restart("n3", wait=False)
            until(lambda: cluster.shut_out("n3"), lambda: cluster.logs("n3"))
        cluster.wait_until_level()


def test_an_error_shows_what_each_node_answers_and_what_it_logged_last() -> None:
    with LocalCluster(nodes=1) as cluster, pytest.raises(NodeError) as caught:
        cluster.wait_until(lambda _: False, "it is never so", timeout=0)
    message = str(caught.value)
    assert message.startswith("after 0 s still not: it is never so\nServerView(")
    assert "role='LEADER'" in message
    assert "the end of the output of n1 (running):\n" in message
    assert "clients on 127.0.0.1" in message


def test_nothing_survives_the_death_of_the_program_that_started_it() -> None:
    program = (
        "from devcluster.cluster import LocalCluster\n"
        "import sys, time\n"
        "cluster = LocalCluster(nodes=1)\n"
        "cluster.start()\n"
        "print(cluster.pid('n1'), cluster.folder, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        pid, folder = process.stdout.readline().split()
        process.send_signal(signal.SIGKILL)
    until(lambda: gone(int(pid)) and not Path(folder).exists(), "the guardian left something behind")
