"""`pqctl backup`, `verify` and `restore`."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.core import FEATURE_LEVEL
from sockpqd.pqctl.output.exit_codes import DONE, FILE_ERROR, INTERRUPTED, REFUSED, UNREACHED
from sockpqd.pqctl.snapshot_file import users_in
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.backup_file import CLUSTER, snapshot
from tests.pqctl.running import Terminal, ask, run
from tests.waiting import until

MIB = 1 << 20


@pytest.fixture(scope="module")
def node() -> Iterator[LocalCluster]:
    """A single node: what it has acknowledged is in its next backup, while a follower executes it a moment later."""
    with LocalCluster(1) as node:
        yield node


def lines(cluster: MemoryCluster, verb: str) -> list[str]:
    return [line for server in cluster.servers for line in server.received if line.startswith(verb)]


def test_what_was_saved_comes_back(nodes: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    servers = ["--servers", nodes.servers[2]]
    leader = nodes.wait_for_leader()
    run(capsys, *servers, "job", "put", "mail", "kept")
    with Client(nodes.servers) as client:           # a follower executes an entry a moment after the leader
        for name in nodes.names:
            server = nodes.server(name)
            until(lambda server=server: client.total("mail", server=server).jobs)
    code, told = ask(capsys, nodes.servers[:1], "backup", str(tmp_path))
    file = Path(told["file"])
    assert (code, told["bytes"], told["removed"]) == (DONE, file.stat().st_size, [])
    assert told["name"] in set(nodes.names) - {leader}
    assert file.name.startswith(f"sockpqd-{told['cluster'][:8]}-")
    assert file.stat().st_mode & 0o777 == 0o600
    code, good = ask(capsys, [], "verify", str(file))
    assert (code, good["checksum"], good["cluster"]) == (DONE, told["checksum"], told["cluster"])
    number = ask(capsys, nodes.servers, "job", "get", "mail")[1]["job"]["id"]
    run(capsys, *servers, "job", "done", str(number))
    run(capsys, *servers, "job", "put", "mail", "gone")
    code, dry = ask(capsys, nodes.servers, "restore", str(file), "--dry-run")
    assert (code, dry["restored"], dry["replaced"]) == (DONE, False, {"waiting": 1, "running": 0, "queues": 1})
    terminal = Terminal(nodes.servers[:1], "restore", str(file))
    terminal.wait_for("[y/N]")
    told_there = " ".join(terminal.text.split())
    assert f"Replace the 1 waiting job and 0 running jobs in 1 queue of cluster {good['cluster'][:16]} by" in told_there
    assert "ANOTHER CLUSTER" not in told_there
    terminal.type("y\n")
    assert terminal.end() == DONE
    job = ask(capsys, nodes.servers, "job", "get", "mail")[1]["job"]
    assert job["data_base64"] == "a2VwdA=="         # "kept": what came later is gone, and --dry-run had done nothing
    run(capsys, *servers, "job", "done", str(job["id"]))
    assert ask(capsys, nodes.servers, "queue", "stat")[1]["queues"] == 0


def test_a_backup_of_another_cluster_is_told_from_one_of_this(
    node: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "state"
    file.write_bytes(snapshot(level=1))
    own = ask(capsys, node.servers, "cluster", "status")[1]["cluster"]
    code, out, _ = run(capsys, "--servers", *node.servers, "restore", str(file), "--dry-run")
    assert code == DONE
    assert f"cluster {CLUSTER.hex()[:16]}, " in out
    assert f"; THE FILE IS OF ANOTHER CLUSTER than this one, {own}; it would replace" in out


def test_users_are_saved_and_set_again_if_somebody_says_so(
    node: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    servers, secret = ["--servers", *node.servers], tmp_path / "secret"
    secret.write_text("secret-of-the-mailer")
    for name in ("mail", "print"):
        assert run(capsys, *servers, "user", "set", name, "--rights", f"put:{name}*", "--secret-file",
                   str(secret))[0] == DONE
    plain = ask(capsys, node.servers, "backup", str(tmp_path), "--node", "n1")[1]
    code, full = ask(capsys, node.servers, "backup", str(tmp_path), "--with-users")
    assert (code, plain["users"], full["users"]) == (DONE, 0, 2)
    assert ask(capsys, [], "verify", full["file"])[1]["users"] == 2
    keys = [b"secret-of-the-mailer" in Path(told["file"]).read_bytes() for told in (plain, full)]
    assert keys == [False, True]
    for name in ("mail", "print"):
        assert run(capsys, *servers, "user", "delete", name)[0] == DONE
    assert ask(capsys, node.servers, "restore", full["file"], "--yes")[0] == DONE
    assert ask(capsys, node.servers, "user", "list")[1]["users"] == []
    code, told = ask(capsys, node.servers, "restore", plain["file"], "--yes", "--with-users")
    assert (code, "no users are in" in told["message"]) == (FILE_ERROR, True)
    code, out, _ = run(capsys, *servers, "restore", full["file"], "--yes", "--with-users")
    assert (code, "and its 2 users" in " ".join(out.split())) == (DONE, True)
    again = ask(capsys, node.servers, "backup", str(tmp_path), "--with-users")[1]
    with Path(again["file"]).open("rb") as file:
        assert [*users_in(file)] == [(name, f"put:{name}*", b"secret-of-the-mailer") for name in ("mail", "print")]


def test_a_node_can_be_asked_when_no_majority_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with LocalCluster(3) as nodes:
        run(capsys, "--servers", nodes.servers[0], "job", "put", "mail", "kept")
        with Client(nodes.servers) as client:
            until(lambda: client.total("mail", server=nodes.server("n3")).jobs)
        for name in ("n1", "n2"):
            nodes.kill(name)
        code, told = ask(capsys, nodes.servers, "backup", str(tmp_path), "--timeout", "1")
        while code == DONE:                         # the leader has not noticed yet
            code, told = ask(capsys, nodes.servers, "backup", str(tmp_path), "--timeout", "1")
        assert (code, told["message"]) == (UNREACHED, "no server leads: name the node whose state to save, by --node "
                                                      "NAME; those that answer: n3")
        code, told = ask(capsys, nodes.servers, "backup", str(tmp_path), "--node", "n3")
        assert (code, told["name"]) == (DONE, "n3")
        assert b"kept" in Path(told["file"]).read_bytes()


def test_old_ones_of_this_cluster_are_thinned_and_nothing_else(
    cluster: MemoryCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    others = {"sockpqd-ffffffff-20200101T000000.000Z.snapshot", "notes", "sockpqd-01234567-20200101.snapshot"}
    for name in others:
        (tmp_path / name).touch()
    cluster.show_snapshot(snapshot())
    made = []
    for _ in range(4):
        code, told = ask(capsys, cluster.addresses, "backup", str(tmp_path), "--keep", "2")
        assert code == DONE
        made.append(Path(told["file"]).name)
        assert told["removed"] == made[-3:-2]
    assert set(os.listdir(tmp_path)) == others | set(made[-2:])


def test_a_snapshot_that_came_damaged_is_not_kept(
    cluster: MemoryCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    cluster.show_snapshot(snapshot()[:-1] + b"x")
    code, told = ask(capsys, cluster.addresses, "backup", str(tmp_path))
    assert (code, "is damaged: its checksum is wrong" in told["message"], os.listdir(tmp_path)) == (
        FILE_ERROR, True, [])


def test_an_answer_that_breaks_off_leaves_no_file(
    cluster: MemoryCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    for server in cluster.servers:
        server.fail("SNAPSHOT", Fault.HALF_ANSWER)
    code, out, _ = run(capsys, "--servers", ",".join(cluster.addresses), "backup", str(tmp_path), "--timeout", "5")
    assert (code, out, os.listdir(tmp_path)) == (UNREACHED, "", [])


def test_nothing_is_left_when_the_disk_fails(
    cluster: MemoryCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    synced: list[str] = []

    def fsync(file: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{file}"))
        raise OSError(errno.ENOSPC, "No space left on device")

    cluster.show_snapshot(snapshot())
    monkeypatch.setattr(os, "fsync", fsync)
    code, out, err = run(capsys, "--servers", cluster.addresses[0], "backup", str(tmp_path))
    assert (code, out, err) == (FILE_ERROR, "", f"cannot write to {tmp_path}: No space left on device\n")
    assert (len(synced), os.listdir(tmp_path)) == (1, [])


def test_the_file_gets_its_name_after_its_bytes_are_on_disk_and_then_the_directory_is_synced(
    cluster: MemoryCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def note_sync(file: int) -> None:
        calls.append("directory" if os.readlink(f"/proc/self/fd/{file}") == str(tmp_path) else "file")
        fsync(file)

    def note_replace(old: Path, new: Path) -> None:
        calls.append("name")
        replace(old, new)

    cluster.show_snapshot(snapshot())
    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    assert run(capsys, "--servers", cluster.addresses[0], "backup", str(tmp_path))[0] == DONE
    assert calls == ["file", "name", "directory"]


def test_verify_says_what_a_file_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state"
    file.write_bytes(snapshot(level=3))
    code, told = ask(capsys, [], "verify", str(file))
    assert code == DONE
    assert {key: told[key] for key in ("cluster", "level", "format", "applied", "time")} == {
        "cluster": CLUSTER.hex(), "level": 3, "format": 6, "applied": 815, "time": 1_700_000_000.0}
    code, out, _ = run(capsys, "verify", str(file))
    assert (code, "as of 2023-11-14 22:13:20 UTC" in out) == (DONE, True)
    file.write_bytes(snapshot(cluster=None))
    assert "cluster without identity" in run(capsys, "verify", str(file))[1]


GOOD = snapshot(rest=b"x" * 5000)


@pytest.mark.parametrize("data", [
    b"", b"something else" * 10, GOOD[:-1], GOOD[:40], GOOD + b"x", GOOD[:8] + b"\1" + GOOD[9:],
    *[GOOD[:at] + bytes([GOOD[at] ^ 1]) + GOOD[at + 1:] for at in (0, 9, 13, 20, 60, 2000, len(GOOD) - 1)],
], ids=lambda data: f"{len(data)} bytes")
def test_a_file_that_is_not_whole_is_told_and_changes_nothing(
    data: bytes, cluster: MemoryCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "state"
    file.write_bytes(data)
    for arguments in (["verify", str(file)], ["restore", str(file), "--yes"], ["restore", str(file), "--dry-run"]):
        code, told = ask(capsys, cluster.addresses, *arguments)
        assert (code, "is damaged or no backup" in told["message"]) == (FILE_ERROR, True)
    assert lines(cluster, "CLONE") == []


def test_what_the_servers_refuse_changes_nothing(
    cluster: MemoryCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "state"
    file.write_bytes(snapshot())
    code, told = ask(capsys, cluster.addresses, "restore", str(file), "--yes")
    assert (code, told["error"]) == (REFUSED, "refused")
    with Client(cluster.addresses) as client:
        state = client.snapshot()
    file.write_bytes(state)
    code, told = ask(capsys, cluster.addresses, "restore", str(file), "--yes")
    assert (code, told["restored"], told["bytes"]) == (DONE, True, len(state))


def test_dry_run_asks_nothing_and_changes_nothing(
    cluster: MemoryCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "state"
    file.write_bytes(snapshot())
    cluster.show_snapshot(snapshot())
    code, out, _ = run(capsys, "--servers", cluster.addresses[0], "restore", str(file), "--dry-run")
    assert (code, "Nothing was done." in out, lines(cluster, "CLONE")) == (DONE, True, [])


def test_a_level_that_the_cluster_does_not_have_yet_is_told(
    node: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "state"
    file.write_bytes(snapshot(level=99))
    code, told = ask(capsys, node.servers, "restore", str(file), "--dry-run")
    levels = f"needs a cluster of feature level 99, and this one has {FEATURE_LEVEL}"
    assert (code, levels in told["message"]) == (REFUSED, True)


@pytest.mark.parametrize(("keys", "code"), [("n\n", REFUSED), ("\n", REFUSED), ("\x03", INTERRUPTED)])
def test_without_a_yes_nothing_is_restored(keys: str, code: int, cluster: MemoryCluster, tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(snapshot())
    terminal = Terminal(cluster.addresses, "restore", str(file))
    terminal.wait_for("[y/N]")
    if keys == "\x03":
        time.sleep(0.3)             # between the question and reading the answer a signal is kept for the next key
        terminal.signal(2)          # what the terminal makes of the key for its foreground process
    else:
        terminal.type(keys)
    assert terminal.end() == code
    assert lines(cluster, "CLONE") == []


def peak_bytes(*arguments: str) -> int:
    """Return the most memory that a run of pqctl has used, without mapped files."""
    program = ("import sys\nfrom sockpqd.pqctl.program import run\ncode = run(sys.argv[1:])\n"
               "status = dict(line.split(':') for line in open('/proc/self/status'))\n"
               "sys.stderr.write(status['VmData'])\nsys.exit(code)")
    ended = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return int(ended.stderr.split()[-2]) * 1024


def test_neither_way_holds_the_state_in_memory(cluster: MemoryCluster, tmp_path: Path) -> None:
    servers = ["--servers", cluster.addresses[0], "--timeout", "200"]
    peaks = []
    for size in (MIB, 60 * MIB):        # twice what is allowed
        cluster.show_snapshot(snapshot(rest=size.to_bytes(4, "big") + bytes(size)))      # one long frame
        cluster.say("CLONE", b"200 OK\r\n")
        folder = tmp_path / str(size)
        folder.mkdir()
        back = peak_bytes("backup", str(folder), *servers)
        file = next(folder.iterdir())
        peaks.append((back, peak_bytes("restore", str(file), "--yes", *servers), peak_bytes("verify", str(file))))
    assert all(large < small + 30 * MIB for small, large in zip(*peaks, strict=True)), peaks


def test_a_restore_that_is_refused_says_so(
    cluster: MemoryCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "state"
    file.write_bytes(snapshot())
    for server in cluster.servers:
        server.fail("CLONE", *[Fault.REFUSE] * 1000)
    code, told = ask(capsys, cluster.addresses, "restore", str(file), "--yes", "--timeout", "1")
    assert code == UNREACHED, told
