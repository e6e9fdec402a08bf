"""Operations on real nodes: stop, replace, damage, inspect."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sockpq

from devcluster.cluster import LocalCluster, say
from tests.system.load import Producer, check, drain
from tests.wire import Broken, Wire

PROGRAM = Path(sys.executable).parent / "sockpqd"

ANSWER_S = 30.0             # a safety limit


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Three nodes that the tests of this file share; each test leaves them all running."""
    with LocalCluster(3) as running:
        yield running


def test_an_orderly_stop_of_the_leader_hands_over_and_ends_with_0(cluster: LocalCluster) -> None:
    producer = Producer(cluster.servers, "stop")
    producer.start()
    leader = cluster.wait_for_leader()
    assert cluster.terminate(leader) == 0
    cluster.wait_until_logged(leader, "handing leadership over")
    assert cluster.wait_for_leader() != leader
    cluster.restart(leader)
    producer.finish()
    check([producer], drain(cluster))


def numbers_of(cluster: LocalCluster) -> dict[str, int]:
    """Return each node's answer to INTERCONNECT."""
    answers = {name: say(cluster.server(name), "INTERCONNECT", ANSWER_S) for name in cluster.names}
    return {name: int((answer or "").split()[2]) for name, answer in answers.items()}


def test_interconnect_leads_to_the_leader_while_the_service_is_switched_offline(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    cluster.wait_until_level()
    before = numbers_of(cluster)
    with sockpq.Client(cluster.servers) as client:
        client.cluster_offline()
        try:
            assert cluster.leader() is None
            cluster.wait_until(lambda views: all(node.online is False for view in views for node in view.nodes), "off")
            assert numbers_of(cluster) == before
            assert min(before, key=lambda name: before[name]) == leader
        finally:
            client.cluster_online()


def test_followers_answer_500_and_interconnect_leads_to_the_leader(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    cluster.wait_until_level()
    numbers = numbers_of(cluster)
    for name in cluster.names:
        expected = "404 Queue Empty" if name == leader else "500 Offline Mode"
        assert say(cluster.server(name), "GET nothing_here", ANSWER_S) == expected
    assert min(numbers, key=lambda name: numbers[name]) == leader
    assert len(set(numbers.values())) == 3


def test_a_wiped_node_is_brought_up_to_date_before_it_votes(cluster: LocalCluster) -> None:
    with sockpq.Client(cluster.servers) as client:
        for k in range(20):
            client.put("kept", b"%d" % k)
    wiped = next(name for name in cluster.names if name != cluster.wait_for_leader())
    cluster.kill(wiped)
    cluster.wipe(wiped)
    before = len(cluster.logs(wiped))
    cluster.restart(wiped)
    cluster.wait_until_logged(wiped, "this node votes from now on", before)
    other = next(name for name in cluster.names if name not in (wiped, cluster.wait_for_leader()))
    cluster.kill(other)
    cluster.kill(cluster.names[3 - cluster.names.index(wiped) - cluster.names.index(other)])
    cluster.restart(other)      # the wiped node and this one are the majority now
    assert drain(cluster, "kept") == [b"%d" % k for k in range(20)]
    for name in cluster.names:
        if not cluster.running(name):
            cluster.restart(name)
    cluster.wait_until_logged(wiped, "brought up to date")


def test_a_damaged_journal_is_refused_with_a_sentence_and_exit_code_70_if_so_configured(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    victim = next(name for name in cluster.names if name != cluster.wait_for_leader())
    assert cluster.terminate(victim) == 0
    segment = max((cluster.data_dir(victim) / "journal").glob("*"), key=lambda path: path.stat().st_size)
    original = segment.read_bytes()
    damaged = bytearray(original)
    damaged[700] ^= 0x10
    segment.write_bytes(damaged)
    config = cluster.config_file(victim).read_text()
    (tmp_path / "stop.toml").write_text(config.replace("[node]\n", '[node]\non_damage = "stop"\n'))
    command = [PROGRAM, "--config", tmp_path / "stop.toml"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 70
    assert segment.name in ended.stderr
    assert "Traceback" not in ended.stderr
    segment.write_bytes(original)
    cluster.restart(victim)


def test_garbage_on_all_ports_changes_nothing_and_the_next_client_is_served(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    config = cluster.config_file(leader).read_text()
    peer_port = int(config.split('peer = "127.0.0.1:')[1].split('"')[0])
    client_port = int(cluster.server(leader).rsplit(":", 1)[1])
    before = [say(cluster.server(leader), "TOTAL", ANSWER_S), rss_mb(cluster.pid(leader))]
    knocks = [
        b"\0" * 100_000, b"\xff" * 100_000, b"A" * 200_000, b"PUT q 0 -1\r\n", b"PUT q 0 99999999999999999999\r\n",
        b"PUT q 0 1000\r\nhalf", b"GET " + b"q|" * 40_000 + b"\r\n", b"\x80\x04\x95", b"DONE 1 2 x\r\n" * 10_000,
        b"PUT q 99999999999999999999 1\r\nx", b"CLONE 1000000\r\nPQRAFT1\n", b"NONSENSE\r\n" * 20_000,
    ]
    for port in (client_port, peer_port):
        for knock in knocks * 3:
            with socket.create_connection(("127.0.0.1", port), 5.0) as connection:
                connection.settimeout(0.2)
                with contextlib.suppress(OSError):
                    connection.sendall(knock)
                    connection.recv(1000)
    assert say(cluster.server(leader), "TOTAL", ANSWER_S) == before[0]
    assert cluster.wait_for_leader() == leader
    after = rss_mb(cluster.pid(leader))
    assert after - float(before[1] or 0) < 60, "memory grew"
    for name in cluster.names:
        assert "Traceback" not in cluster.logs(name)


def rss_mb(pid: int | None) -> float:
    """Return the resident memory of a process, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def test_all_nodes_have_the_same_hash(cluster: LocalCluster) -> None:
    cluster.wait_until_level()
    with sockpq.Client(cluster.servers) as client:
        client.put("hashed", b"x")
    for _ in range(100):
        answers = {say(cluster.server(name), "CLUSTER HASH", ANSWER_S) for name in cluster.names}
        if len(answers) == 1:
            break
        time.sleep(0.05)    # followers execute an entry a heartbeat later
    assert len(answers) == 1
    assert len(answers.pop().split()[3]) == 32


class PlainClient:
    """A client as an author would write it first: connects to all, INTERCONNECT, stays with the smallest number."""

    def __init__(self, servers: list[str]) -> None:
        answers: list[tuple[int, Wire]] = []
        for server in servers:
            try:
                wire = Wire(server, ANSWER_S)
            except Broken:
                continue
            answers.append((int(wire.say("INTERCONNECT").split()[2]), wire))
        _, self.wire = min(answers, key=lambda answer: answer[0])
        for _, wire in answers:
            if wire is not self.wire:
                wire.close()

    def say(self, line: str, data: bytes = b"") -> list[str]:
        """Send a line; returns the words of the answer's line."""
        return self.wire.say(line, data).split()


def test_a_client_written_only_from_the_protocol_works_through_a_failover(cluster: LocalCluster) -> None:
    client = PlainClient(cluster.servers)
    assert client.say("PUT work 5 3 NEW", b"abc")[:3] == ["200", "OK", "IS"]
    client.wire.close()
    victim = cluster.wait_for_leader()
    cluster.kill(victim)
    cluster.wait_for_leader()
    client = PlainClient(cluster.servers)
    words = client.say("GET work EXPIRE 60 THEN LATER")
    assert words[:3] == ["200", "OK", "work"]
    assert words[4:6] == ["5", "3"]
    assert client.wire.exactly(3) == b"abc"
    assert client.say(f"DONE {words[3]}") == ["200", "OK", "FINQ", "FINI"]
    client.wire.close()
    cluster.restart(victim)
