"""`pqctl doctor`: each check on made-up views and directories, and the whole with real nodes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sockpq import NodeStatus, ServerView, Untrusted
from sockpq.testing import Server

from devcluster.cluster import LocalCluster
from sockpqd.gateway.main import DEFAULT_FILE
from sockpqd.pqctl.doctor import cluster_checks, files, machine_checks
from sockpqd.pqctl.doctor.check import FAIL, OK, SKIP, WARN, Check, exit_code
from sockpqd.pqctl.health import Health, assess
from sockpqd.pqctl.report import headline
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.running import ask, run
from tests.pqctl.test_health import line, no_view, view, with_learner
from tests.waiting import until

THREE = (line("n1", 1, "LEADER"), line("n2", 2, "FOLLOWER"), line("n3", 3, "FOLLOWER"))


def views(*lines: NodeStatus) -> list[ServerView]:
    """Return views in which every node answers and reports the same."""
    return [view(node.name, node.id or 0, *lines) for node in lines]


def health(*lines: NodeStatus) -> Health:
    return assess(views(*lines), len(lines))


def states(told: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {check["name"]: check["state"] for check in told["checks"]}


# real nodes

def test_a_healthy_cluster_and_its_machine(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    def leads() -> bool:
        """Return whether there is a leader: a busy machine may be between two."""
        nonlocal code, told
        code, told = ask(capsys, nodes.servers, "doctor", "--data-dir", str(nodes.data_dir("n2")))
        return states(told)["leader"] == OK

    code, told = 0, dict[str, list[dict[str, str]]]()
    until(leads, "a leader")
    found = states(told)
    assert list(found) == ["servers", "leader", "members", "peers", "clocks", "versions", "online",
                           "file system", "fsync", "free space", "memory", "open files", "interpreter", "journal",
                           "snapshots", "disk size"]
    for name in ("servers", "leader", "members", "peers", "clocks", "versions", "online"):
        assert found[name] == OK, told
    assert [list(check) for check in told["checks"]] == [["state", "name", "found", "advice"]] * 16
    texts = {check["name"]: check["found"] for check in told["checks"]}
    assert f"process {nodes.pid('n2')} may open" in texts["open files"]
    assert "p99" in texts["fsync"]
    assert code == max({OK: 0, SKIP: 0, WARN: 1, FAIL: 2}[state] for state in found.values())
    assert not [name for name in os.listdir(nodes.data_dir("n2")) if "doctor" in name]


def test_each_check_is_one_line(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--servers", nodes.servers[0], "doctor")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [text.split()[:2] for text in lines[:-1]] == [
        ["OK", name] for name in ("servers", "leader", "members", "peers", "clocks", "versions", "online")]
    assert lines[-1].startswith(f"{SKIP}  this machine  ")
    assert "give --data-dir" in lines[-1]


def test_a_dead_node_is_missed_by_all(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    leader = nodes.wait_for_leader()
    dead, other = (name for name in nodes.names if name != leader)
    nodes.kill(dead)
    try:
        nodes.wait_until(lambda seen: all(
            node.role == "DOWN" for one in seen for node in one.nodes if node.name == dead), "all miss it")
        code, told = ask(capsys, nodes.servers, "doctor")
        assert code == 1
        assert states(told) == {"servers": WARN, "leader": OK, "members": WARN, "peers": WARN, "clocks": OK,
                                "versions": OK, "online": OK, "this machine": SKIP}
        texts = {check["name"]: check["found"] for check in told["checks"]}
        assert texts["peers"] == "; ".join(f"{name} does not see {dead}" for name in sorted([leader, other]))
        assert texts["members"] == f"{dead} missing; can lose no more"
    finally:
        nodes.restart(dead)
        nodes.wait_until_level()


# what servers say

def test_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = ask(capsys, ["127.0.0.1:1"], "doctor")
    assert code == 2
    assert states(told) == {"servers": FAIL, "leader": FAIL, "this machine": SKIP}
    assert all(check["advice"] for check in told["checks"])


def test_rubbish_is_a_failure_and_no_traceback(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.servers[2].fail("CLUSTER", Fault.RUBBISH, Fault.RUBBISH)
    code, told = ask(capsys, cluster.addresses, "doctor")
    assert (code, states(told)["servers"]) == (1, WARN)


def test_a_server_of_another_cluster_is_a_failure(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemoryCluster(1) as other:
        code, told = ask(capsys, [*cluster.addresses, *other.addresses], "doctor")
    assert (code, states(told)["servers"]) == (2, FAIL)
    assert other.addresses[0] in told["checks"][0]["found"]


@pytest.mark.parametrize(("lines", "state", "text"), [
    (THREE, OK, "n1 leads and serves, term 7"),
    (tuple(node._replace(online=False) for node in THREE), FAIL, "the whole service is switched offline"),
    ((line("n1", None, "CANDIDATE"), *THREE[1:]), FAIL, "no node serves, though a majority answers"),
])
def test_leader(lines: tuple[NodeStatus, ...], state: str, text: str) -> None:
    check = cluster_checks.leader(health(*lines))
    assert (check.state, check.found) == (state, text)


def test_expired_certificates_are_to_be_renewed_and_nothing_is_to_be_started() -> None:
    expired = ServerView("10.0.0.1:11361", None, None, [], Untrusted("10.0.0.1:11361: its certificate has expired"))
    check = cluster_checks.servers_answer([expired], [])
    assert (check.state, check.found) == (FAIL, "10.0.0.1:11361: its certificate has expired")
    assert "SIGHUP" in check.advice
    mixed = cluster_checks.servers_answer([expired, no_view("10.0.0.2:11361")], [])
    assert mixed.advice == "start them, or correct the list of servers"
    assert "certificates" in cluster_checks.leader(assess([expired], 1), untrusted=True).advice


def test_leader_without_a_majority() -> None:
    alone = view("n3", 2**31 - 1, *(node._replace(role="DOWN") for node in THREE[:2]), THREE[2])
    check = cluster_checks.leader(assess([alone, no_view("10.0.0.1:11361")], 2))
    assert (check.state, check.found) == (FAIL, "no node serves, only 1 of 3 nodes answers, 2 are needed")
    check = cluster_checks.leader(assess([no_view("10.0.0.1:11361")], 1))
    assert check.found == "no node serves, only 0 of 1 nodes answer, 1 is needed"


def test_a_cluster_that_waits_to_be_founded_is_told_from_one_without_a_leader() -> None:
    waiting = [line(name, None, "CANDIDATE", term=0) for name in ("n1", "n2")]
    silent = line("n3", None, "DOWN")._replace(term=None)
    founding = assess([view(node.name, 2**31 - 1, *waiting, silent) for node in waiting], 2)
    assert cluster_checks.leader(founding) == Check(
        FAIL, "leader", "no node serves: the cluster is not founded yet",
        "a new cluster needs all its nodes once: start n3")
    assert headline(founding) == (
        "NOT SERVING: 2 of 3 nodes up, not founded yet: a new cluster needs all its nodes once")
    first = assess([view("n1", 2**31 - 1, waiting[0], line("n2", None, "DOWN")._replace(term=None), silent)], 1)
    assert headline(first) == "NOT SERVING: 1 of 3 nodes up, 2 needed, all 3 if the cluster is new"
    assert cluster_checks.leader(first).advice == (
        "start nodes until there is a majority, or all of them if the cluster is new")
    later = [node._replace(term=1) for node in waiting]
    interrupted = assess([view(node.name, 2**31 - 1, *later, silent) for node in later], 2)
    assert cluster_checks.leader(interrupted).found == "no node serves, though a majority answers"


@pytest.mark.parametrize(("lines", "state", "text"), [
    (THREE, OK, "3 nodes up; can lose 1 more"),
    (THREE[:1], OK, "a single node: its disk has the only copy"),
    ((*THREE, line("n4", 4, "FOLLOWER")), WARN, "4 nodes survive no more losses than 3"),
    (with_learner(), WARN, "n4 has not caught up yet"),
])
def test_members(lines: tuple[NodeStatus, ...], state: str, text: str) -> None:
    check = cluster_checks.members(health(*lines))
    assert (check.state, check.found) == (state, text)


def test_clocks_are_compared_as_the_node_sees_them_that_sees_most() -> None:
    def told(*ahead: int | None) -> list[NodeStatus]:
        return [node._replace(ahead_ms=ms) for node, ms in zip(THREE, ahead, strict=True)]

    seen = [view("n1", 1, *told(0, None, None)), view("n2", 2, *told(-700, 0, 400))]
    assert cluster_checks.clocks(seen) == Check(
        WARN, "clocks", "n3 is 1.1 s ahead of n1", "let NTP set the clocks")
    assert cluster_checks.clocks([view("n1", 1, *told(0, 140, -200))]).found == "no two are further apart than 0.3 s"
    assert cluster_checks.clocks([view("n1", 1, *told(0, 3, 0))]).found == "no two are further apart than 0.1 s"
    assert cluster_checks.clocks(views(*THREE)).state == SKIP


def test_a_contact_that_is_broken_on_one_side_is_told_by_that_side() -> None:
    seen = views(*THREE)
    seen[1] = view("n2", 2, *THREE[:2], line("n3", 3, "DOWN")._replace(term=None))
    check = cluster_checks.peers(seen)
    assert (check.state, check.found) == (WARN, "n2 does not see n3")
    assert cluster_checks.peers(views(*THREE)).state == OK


def test_versions_that_differ() -> None:
    check = cluster_checks.versions(health(*THREE[:2], THREE[2]._replace(version="0.2.0")))
    assert (check.state, check.found) == (WARN, "n1, n2 run 0.1.0; n3 run 0.2.0")
    assert cluster_checks.versions(health(*THREE)) == Check(OK, "versions", "all run 0.1.0")


def test_a_node_that_was_switched_off_is_remembered() -> None:
    off = THREE[2]._replace(online=False)
    assert cluster_checks.switched_off(health(*THREE[:2], off)) == Check(
        WARN, "online", "n3 switched offline", "pqctl node online n3")


def test_nodes_that_are_all_switched_off_are_not_taken_for_the_service() -> None:
    off = [node._replace(online=False) for node in THREE]
    elsewhere = 2**31 - 1               # the number of a node that does not want to lead
    each = "pqctl node online n1; pqctl node online n2; pqctl node online n3"
    by_nodes = assess([view(node.name, elsewhere, *off) for node in off], 3)
    for check in (cluster_checks.leader(by_nodes), cluster_checks.switched_off(by_nodes)):
        assert (check.state, check.found) == (FAIL, "n1, n2, n3 switched offline, so no node may serve")
        assert check.advice == each
    by_service = cluster_checks.switched_off(health(*off))
    assert by_service == Check(FAIL, "online", "the whole service is switched offline", "pqctl cluster online")
    nobody = health(*(node._replace(role="FOLLOWER") for node in off))
    assert cluster_checks.switched_off(nobody).advice == f"pqctl cluster online; {each}"


def test_a_single_node_that_was_switched_off_is_switched_on_by_its_advice(
    capsys: pytest.CaptureFixture[str]
) -> None:
    with Server() as server:
        (name,) = [node["name"] for node in ask(capsys, [server.address], "cluster", "status")[1]["nodes"]]
        for switch, advice in ((("node", "offline", name), f"node online {name}"),
                               (("cluster", "offline"), "cluster online")):
            assert ask(capsys, [server.address], *switch)[0] == 0
            told = ask(capsys, [server.address], "doctor")[1]
            assert {check["advice"] for check in told["checks"] if check["state"] == FAIL} == {f"pqctl {advice}"}
            assert ask(capsys, [server.address], *advice.split())[0] == 0
            until(lambda: states(ask(capsys, [server.address], "doctor")[1])["leader"] == OK, "a leader")


# this machine

@pytest.mark.parametrize(("p99_ms", "state"), [(9.9, OK), (10.1, WARN), (100.1, FAIL)])
def test_a_slow_disk(p99_ms: float, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = [0.001] * 98 + [p99_ms / 1000] + [5.0]
    monkeypatch.setattr(machine_checks, "_fsyncs", lambda directory: iter(times))
    check = machine_checks.fsync(tmp_path)
    assert (check.state, bool(check.advice)) == (state, state != OK)
    assert check.found == f"p50 1.00 ms, p99 {p99_ms:.2f} ms, max 5000.00 ms (100 writes of 4 KiB)"


def test_the_disk_is_measured_with_real_syncs_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(os.readlink(f"/proc/self/fd/{file}")))
    machine_checks.fsync(tmp_path)
    assert len(synced) == machine_checks.FSYNCS
    assert {os.path.dirname(path) for path in synced} == {str(tmp_path)}
    assert os.listdir(tmp_path) == []


def test_a_disk_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, offset: int, length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    check = machine_checks.fsync(tmp_path)
    assert (check.state, check.found) == (WARN, "could not be measured: No space left on device")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("free", "size", "state"), [
    (300 << 30, 1000 << 30, OK), (90 << 30, 1000 << 30, WARN), (1 << 30, 4 << 30, WARN), (100 << 20, 1 << 30, FAIL),
])
def test_free_space(free: int, size: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = 4096
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(
        (block, block, size // block, free // block, free // block, 0, 0, 0, 0, 255)))
    assert machine_checks.free_space(tmp_path).state == state


@pytest.mark.parametrize(("limit", "state"), [(1024, WARN), (10_199, WARN), (10_200, OK), (float("inf"), OK)])
def test_open_files(limit: float, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_checks, "_open_files_max", lambda process: limit)
    (tmp_path / "journal").mkdir()
    with (tmp_path / "journal/lock").open("w"):
        check = machine_checks.open_files(tmp_path.resolve())
    assert check.state == state
    assert check.found.startswith(f"process {os.getpid()} may open")


@pytest.mark.parametrize(("available_kib", "state"), [(3 << 20, OK), (1 << 20, WARN)])
def test_memory_for_a_snapshot(
    available_kib: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine_checks, "_process_of", lambda data_dir: 7)
    monkeypatch.setattr(machine_checks, "_kib", lambda file, name: 2 << 20 if name == "VmRSS:" else available_kib)
    check = machine_checks.memory(tmp_path)
    assert check is not None
    assert check.state == state
    assert "process 7 uses 2.0 GiB, and may need as much again" in check.found


def test_what_sockpqd_finds_in_the_files_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "sockpqd"
    monkeypatch.setattr(files, "program", lambda: str(program))
    assert files.look(tmp_path / "missing")[0].state == WARN
    said = '{"state": "FAIL", "name": "pages", "found": "bad"}'
    program.write_text(f"#!/bin/sh\n[ $1 = --check-data ] && echo '{said}'")
    program.chmod(0o700)
    assert files.look(tmp_path) == [Check(FAIL, "pages", "bad")]
    program.write_text("#!/bin/sh\necho what >&2; exit 2")
    (check,) = files.look(tmp_path)
    assert (check.state, "what" in check.found) == (WARN, True)
    monkeypatch.setattr(files, "program", lambda: None)
    assert files.look(tmp_path)[0].state == SKIP


def test_what_a_node_needs_of_its_disk_is_asked_for_its_own_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = tmp_path / "sockpqd"
    program.write_text(
        """#!/bin/sh\necho '{"state": "OK", "name": "disk size", "found": "'$3 $4 $SOCKPQD_LIMITS_HOT_BYTES'"}'""")
    program.chmod(0o700)
    monkeypatch.setattr(files, "program", lambda: str(program))
    node = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", "--config", "n1.toml"], cwd=tmp_path,
        env={"SOCKPQD_LIMITS_HOT_BYTES": "7", "OTHER": "x"})
    other = subprocess.Popen(["sleep", "60"])
    try:
        until(lambda: files._configuration_of(node.pid) is not None)
        assert files.look(tmp_path, node.pid) == [Check(OK, "disk size", f"--check-config {tmp_path}/n1.toml 7")]
        (_, unknown) = files.look(tmp_path, other.pid)
        assert (unknown.state, unknown.name) == (SKIP, "disk size")
        assert str(other.pid) in unknown.found
    finally:
        for process in (node, other):
            process.kill()
            process.wait()


def test_a_node_that_names_no_file_has_the_usual_one(tmp_path: Path) -> None:
    program = tmp_path / "sockpqd"
    program.write_text("import time\ntime.sleep(60)\n")
    node = subprocess.Popen([sys.executable, program], cwd=tmp_path, env={})       # as the unit does
    dev = subprocess.Popen([sys.executable, program, "--dev"], cwd=tmp_path)
    try:
        until(lambda: files._configuration_of(node.pid) is not None)
        assert files._configuration_of(node.pid) == (str(DEFAULT_FILE), {})
        assert files._configuration_of(dev.pid) is None
        until(lambda: files._unknown_needs(dev.pid).advice is None)         # its user cannot see more
        assert files._unknown_needs(node.pid).advice is not None
    finally:
        for process in (node, dev):
            process.kill()
            process.wait()


def test_a_node_that_does_not_run_here_is_told(tmp_path: Path) -> None:
    check = machine_checks.open_files(tmp_path)
    assert (check.state, check.found) == (WARN, f"no running node uses {tmp_path}")
    with (tmp_path / "somebody's.log").open("w"):
        assert machine_checks.open_files(tmp_path) == check


@pytest.mark.parametrize(("kind", "state"), [("tmpfs", FAIL), ("ext4", OK)])
def test_a_directory_in_memory(kind: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_checks, "_file_system_of", lambda path: kind)
    check = machine_checks.file_system(tmp_path)
    assert check is not None
    assert check.state == state


def test_the_exit_code_is_that_of_the_worst() -> None:
    ok, warn, fail, skip = (Check(state, "x", "y") for state in (OK, WARN, FAIL, SKIP))
    assert exit_code([ok, skip]) == 0
    assert exit_code([ok, warn, skip]) == 1
    assert exit_code([fail, warn]) == 2
