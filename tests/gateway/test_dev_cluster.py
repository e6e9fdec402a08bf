"""`sockpqd --dev --nodes 3` and `make play`, as a user runs them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from devcluster.ports import free_ports
from sockpqd.gateway.dev import folder
from sockpqd.gateway.dev.child import how_ended
from sockpqd.gateway.dev.cluster import POLL_S
from sockpqd.gateway.dev.guide import guide, program
from sockpqd.gateway.dev.ports import HOST
from tests.gateway.helpers.program import PATIENCE_S, SOCKPQD, sockpqd
from tests.waiting import gone, until
from tests.worker.program.running import children_of

ROOT = Path(__file__).parents[2]
CLUSTER = (str(SOCKPQD), "--dev", "--nodes", "3")
PLAY = (sys.executable, "-c", "import bench.play; bench.play.TELL_EVERY_S = 1.0; bench.play.main()")


class Running:
    """A program that prints its progress; its lines are collected."""

    def __init__(self, *command: str, folder: Path, **variables: str) -> None:
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        )
        self.text = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, pattern: str) -> re.Match[str]:
        until = time.monotonic() + PATIENCE_S
        while True:
            if match := re.search(pattern, self.text, re.MULTILINE):
                return match
            assert time.monotonic() < until, f"no {pattern!r} in:\n{self.text}"
            time.sleep(0.05)

    def end(self, *signals: signal.Signals) -> int:
        for number in signals:
            if self.process.poll() is None:
                os.killpg(self.process.pid, number)
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            for line in self.process.stdout:
                self.text += line


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Running]:
    running = Running(*CLUSTER, folder=tmp_path)
    try:
        yield running
    finally:
        running.end(signal.SIGKILL)


def say(address: str, line: bytes) -> bytes:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.sendall(line)
        return connection.recv(1000)


def wait_until_gone(pids: list[int]) -> None:
    until(lambda: all(gone(pid) for pid in pids), "processes are left")


def nodes(running: Running) -> dict[str, tuple[str, int]]:
    """Return the client address and the process id of each node."""
    running.wait_for("Ctrl-C ends")
    return {name: (address, int(pid)) for name, address, pid
            in re.findall(r"^  (n\d)  clients (\S+)  dashboard \S+  pid (\d+)", running.text, re.MULTILINE)}


def test_an_idle_cluster_writes_nothing_to_the_log(cluster: Running) -> None:
    address = next(iter(nodes(cluster).values()))[0]

    def stand() -> list[bytes]:
        """Return the terms and the indexes of all nodes."""
        return [b" ".join(line.split()[6:9]) for line in say(address, b"CLUSTER STATUS\r\n").splitlines()[1:]]
    def nothing_happens() -> bool:
        """Return whether all nodes are level, and stay so while they are asked eight times."""
        before = stand()
        time.sleep(8 * POLL_S)
        return len(set(before)) == 1 and stand() == before

    until(nothing_happens, lambda: f"entries come: {stand()}")     # on a busy machine a leader may change in between


def test_a_killed_leader_is_replaced_and_started_again(cluster: Running, tmp_path: Path) -> None:
    cluster.wait_for(rf"\] starting 3 nodes, their data in {tmp_path / 'sockpqd-dev-3'}$")
    known = nodes(cluster)
    assert list(known) == ["n1", "n2", "n3"]
    leader = cluster.wait_for(r"^  (n\d) .*  leads$")[1]
    address, pid = known[leader]
    assert say(address, b"PUT mail 0 5\r\nhello") == b"200 OK\r\n"
    assert cluster.wait_for(r"kill -9 (\d+)")[1] == str(pid)
    os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    cluster.wait_for(rf"{leader} \(pid {pid}\) was killed by SIGKILL; it starts again in 3 s")
    successor = cluster.wait_for(r"\] (n\d) leads")[1]
    assert successor != leader
    assert say(known[successor][0], b"TOTAL mail\r\n").startswith(b"200 OK 1 ")
    again = int(cluster.wait_for(rf"{leader} runs again \(pid (\d+)\)")[1])
    assert time.monotonic() - killed > 2.9
    assert cluster.end(signal.SIGINT) == 0
    assert "all nodes have ended" in cluster.text
    wait_until_gone([again, *(pid for _, pid in known.values())])
    assert {path.name for path in tmp_path.iterdir()} == {"sockpqd-dev-3"}


def test_the_next_cluster_in_this_folder_goes_on_without_a_node_that_cannot_run(
    cluster: Running, tmp_path: Path
) -> None:
    first = nodes(cluster)
    leader = cluster.wait_for(r"^  (n\d) .*  leads$")[1]
    assert say(first[leader][0], b"PUT mail 0 5\r\nhello") == b"200 OK\r\n"
    second = sockpqd("--dev", "--nodes", "3", folder=tmp_path)
    assert second.returncode == 2
    assert re.search("another program listens on .*: is this cluster running already?", second.stderr)
    assert cluster.end(signal.SIGTERM) == 0
    config = tmp_path / "sockpqd-dev-3" / "n2.toml"
    users = tmp_path / "users.toml"
    users.write_text("[nobody]\nsecret = 'x'\n")
    users.chmod(0o600)
    config.write_text(f"auth.users_file = '{users}'\n{config.read_text()}")
    again = Running(*CLUSTER, folder=tmp_path)
    try:
        again.wait_for("n2 ended with exit code 2 and is not started again")
        again.wait_for("users.toml")
        running = nodes(again)
        assert {"n1", "n3"} <= {*running}
        assert {name: address for name, (address, _) in running.items()}.items() <= {
            name: address for name, (address, _) in first.items()}.items()
        leader = again.wait_for(r"^  (n\d) .*  leads$")[1]
        assert say(running[leader][0], b"GET mail\r\n").endswith(b"hello")
    finally:
        again.end(signal.SIGKILL)
    wait_until_gone([pid for _, pid in running.values()])       # no node outlives the program


def test_all_nodes_end_when_nobody_reads_what_is_said(tmp_path: Path) -> None:
    running = subprocess.Popen(CLUSTER, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        with running.stdout as lines:
            pids = [int(pid) for pid in re.findall(r"^  n\d .* pid (\d+)", "".join(until_ready(lines)), re.MULTILINE)]
        running.terminate()
        running.wait(PATIENCE_S)
    finally:
        running.kill()
        running.wait()
    assert len(pids) == 3
    wait_until_gone(pids)


def until_ready(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if "Ctrl-C ends" in line:
            return


@pytest.mark.parametrize("arguments", [["--nodes", "3"], ["--dev", "--nodes", "0"], ["--dev", "--nodes", "x"],
                                       ["--clusters", "2"], ["--dev", "--clusters", "5"],
                                       ["--dev", "--nodes", "3", "--bootstrap"], ["--dev", "--nodes", "10"]])
def test_wrong_arguments_are_refused(arguments: list[str], tmp_path: Path) -> None:
    run = sockpqd(*arguments, folder=tmp_path)
    assert run.returncode == 2
    assert "Error: " in run.stderr
    assert not list(tmp_path.iterdir())


def test_how_a_process_ended() -> None:
    assert how_ended(0) == "was shut down"
    assert how_ended(75) == "ended with exit code 75"
    assert how_ended(-9) == "was killed by SIGKILL"
    assert how_ended(-99) == "was killed by signal 99"


def test_another_program_is_named_so_that_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pqctl").write_text("")
    (tmp_path / "pqctl").chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "sockpqd")])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir("/")
    assert program("pqctl") == str(tmp_path / "pqctl").lstrip("/")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program("pqctl") == "pqctl"
    assert program("missing") == "missing"


def told(text: str) -> tuple[int, int]:
    """Return how many jobs were put and done, as the program printed last."""
    return max(((int(put), int(done)) for put, done in re.findall(
        r"producer: (\d+) jobs put into play; workers: (\d+) done\n", text)), default=(0, 0))


def test_a_cluster_on_other_ports_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "claim", lambda port: port != folder.CLIENT)
    monkeypatch.setattr(folder, "free", lambda port: True)
    nodes = folder.prepare(tmp_path, 1, {})
    assert nodes[0].config.listen.client == f"{HOST}:{folder.CLIENT + folder.OTHER_STEP}"
    assert f"go to {HOST}:{folder.CLIENT}, which is not this cluster" in guide(tmp_path, [nodes], {"n1": 5}, ["n1"])
    monkeypatch.setattr(folder, "claim", lambda port: True)
    nodes = folder.prepare(tmp_path / "usual", 1, {})
    assert "not this cluster" not in guide(tmp_path, [nodes], {"n1": 5}, ["n1"])


@pytest.mark.parametrize(("count", "words"), [
    (1, "the only node: it is started again"), (2, "one node of two cannot serve meanwhile"), (3, "another takes over"),
])
def test_what_follows_a_killed_leader_depends_on_how_many_nodes_are_left(
    count: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folder, "claim", lambda port: True)
    monkeypatch.setattr(folder, "free", lambda port: True)
    nodes = folder.prepare(tmp_path, count, {})
    (line,) = [line for line in guide(tmp_path, [nodes], {"n1": 5}, ["n1"]).splitlines() if "kill -9 5 " in line]
    assert words in line


def test_several_clusters_have_one_map(tmp_path: Path) -> None:
    command = (str(SOCKPQD), "--dev", "--clusters", "2")
    for first_time in (True, False):
        running = Running(*command, folder=tmp_path)
        try:
            running.wait_for("Ctrl-C ends")
            known = {name: (address, int(pid)) for name, address, pid in re.findall(
                r"^  ([ab]/n1)  clients (\S+)  dashboard \S+  pid (\d+)  leads", running.text, re.MULTILINE)}
            addresses = [address for address, _ in known.values()]
            assert list(known) == ["a/n1", "b/n1"]
            assert "1 node runs as each of the clusters a and b" in running.text
            names = [say(address, b"CLUSTER ID\r\n").split()[3] for address in addresses]
            assert names == [b"a", b"b"]
            maps = {say(address, b"MAP\r\n").split(b" ", 2)[2] for address in addresses}
            assert len(maps) == 1
            (text,) = maps
            assert text.startswith(b"1 " if first_time else b"2 ")
            changed = text.partition(b"\r\n")[2].partition(b"RULE")[0] + b"RULE film. b\n"
            for address in addresses:
                assert say(address, b"MAP SET 2 %d\r\n%b" % (len(changed), changed)) == b"200 OK\r\n"
            assert say(addresses[0], b"PUT film.in 0 1\r\nx") == b"409 Elsewhere b\r\n"
            os.kill(known["b/n1"][1], signal.SIGKILL)
            running.wait_for("no node of b answers as the leader")
        finally:
            running.end(signal.SIGTERM)
    assert {path.name for path in tmp_path.iterdir()} == {"sockpqd-dev-1x2"}


def test_play_with_two_clusters_works_in_both(tmp_path: Path) -> None:
    small = PLAY[2].replace("bench.play.main", "bench.play.NODES = 1; bench.play.main")
    running = Running(*PLAY[:2], small, "--clusters", "2", folder=tmp_path)
    try:
        for queue in ("play", "film.play"):
            running.wait_for(rf"jobs put into {re.escape(queue)}; workers: [1-9]\d* done")
        assert running.end(signal.SIGINT) == 0
    finally:
        running.end(signal.SIGTERM, signal.SIGKILL)


def test_play_with_sqs_has_a_producer_and_a_consumer_with_boto3(tmp_path: Path) -> None:
    address = f"{HOST}:{free_ports(1)[0]}"
    elsewhere = PLAY[2].replace("bench.play.main", f"bench.play.SQS_ADDRESS = '{address}'; bench.play.main")
    running = Running(*PLAY[:2], elsewhere, "--sqs", folder=tmp_path)
    try:
        running.wait_for(f"export AWS_ENDPOINT_URL_SQS=http://{address} ")
        running.wait_for(r"ben order 1 (?s:.)*ben order 4 ")
        assert running.end(signal.SIGINT) == 0
        assert "Traceback" not in running.text
    finally:
        running.end(signal.SIGTERM, signal.SIGKILL)


def test_play_has_a_producer_and_workers_and_goes_on_without_its_leader(tmp_path: Path) -> None:
    running = Running(*PLAY, folder=tmp_path)
    try:
        pid = int(running.wait_for(r"kill -9 (\d+)")[1])
        before = int(running.wait_for(r"workers: ([1-9]\d*) done")[1])
        os.kill(pid, signal.SIGKILL)
        running.wait_for("leads\n(?s:.)*runs again")
        behind = len(running.text)
        until(lambda: told(running.text[behind:])[1] > before, lambda: running.text)
        put, done = told(running.text)
        assert done <= put
        assert running.end(signal.SIGTERM) == 0
        assert "Traceback" not in running.text
    finally:
        running.end(signal.SIGKILL)


def test_play_does_not_look_at_the_configuration_of_its_user_s_own_cluster(tmp_path: Path) -> None:
    """Its cluster has no TLS and no users, but the user's file names a CA and a user."""
    file = tmp_path / "home" / "sockpq" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('servers = ["10.0.0.1:11361"]\nca = "ca.crt"\nuser = "ops"\nsecret_file = "ops.secret"\n')
    running = Running(*PLAY, folder=tmp_path, XDG_CONFIG_HOME=str(tmp_path / "home"), SOCKPQ_CA="ca.crt")
    try:
        running.wait_for(r"workers: [1-9]\d* done")
        assert running.end(signal.SIGINT) == 0
    finally:
        running.end(signal.SIGTERM, signal.SIGKILL)


def test_play_says_why_its_workers_have_ended(tmp_path: Path) -> None:
    broken = PLAY[2].replace("bench.play.main", "bench.play.WORKERS = 0; bench.play.main")
    running = Running(*PLAY[:2], broken, folder=tmp_path)
    try:
        running.wait_for(r"the workers of play have ended with exit code 64; their log ends:\n(?s:.)*-c")
        assert running.end(signal.SIGINT) == 0
    finally:
        running.end(signal.SIGTERM, signal.SIGKILL)


def test_play_ends_with_all_that_it_has_started(tmp_path: Path) -> None:
    running = Running(*PLAY, "--celery", folder=tmp_path)
    try:
        pids = [pid for _, pid in nodes(running).values()]
        running.wait_for("order 2")
        pids += children_of(running.process.pid)
        os.killpg(running.process.pid, signal.SIGINT)       # as Ctrl-C does
        assert running.process.wait(PATIENCE_S) == 0
        wait_until_gone(pids)
        assert "Traceback" not in running.text
        assert "no server" not in running.text              # workers end first
    finally:
        running.end(signal.SIGKILL)
