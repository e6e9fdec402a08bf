"""`pqctl snapshot save` and `restore`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from pqctl.output.exit_codes import DONE, FILE_ERROR, INTERRUPTED, REFUSED, UNREACHED
from tests.client.fake_server import FakeCluster, Fault
from tests.pqctl.running import Terminal, ask, run


def save(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], file: Path, *options: str
) -> tuple[int, str, str]:
    return run(capsys, "--servers", ",".join(cluster.addresses), "snapshot", "save", str(file), *options,
               "--timeout", "5")


def test_what_was_saved_comes_back(nodes: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state"
    servers = ["--servers", nodes.servers[2]]
    run(capsys, *servers, "job", "put", "mail", "kept")
    code, told = ask(capsys, nodes.servers[:1], "snapshot", "save", str(file))
    assert (code, told) == (DONE, {"file": str(file), "bytes": file.stat().st_size, "name": nodes.wait_for_leader()})
    number = ask(capsys, nodes.servers, "job", "get", "mail")[1]["job"]["id"]
    run(capsys, *servers, "job", "done", str(number))
    run(capsys, *servers, "job", "put", "mail", "gone")
    terminal = Terminal(nodes.servers[:1], "snapshot", "restore", str(file))
    terminal.wait_for("[y/N]")
    assert "Replace the cluster's 1 waiting job and 0 running jobs in 1 queue by" in " ".join(terminal.text.split())
    terminal.type("y\n")
    assert terminal.end() == DONE
    told = ask(capsys, nodes.servers, "job", "get", "mail")[1]["job"]
    assert told["data_base64"] == "a2VwdA=="        # "kept"
    run(capsys, *servers, "job", "done", str(told["id"]))
    assert ask(capsys, nodes.servers, "queue", "stat")[1]["queues"] == 0


def test_a_node_can_be_asked_when_no_majority_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with LocalCluster(3) as nodes:
        run(capsys, "--servers", nodes.servers[0], "job", "put", "mail", "kept")
        with Client(nodes.servers) as client:       # a follower executes an entry a moment after the leader
            until = time.monotonic() + 60
            while not client.total("mail", server=nodes.server("n3")).jobs:
                assert time.monotonic() < until
                time.sleep(0.01)
        for name in ("n1", "n2"):
            nodes.kill(name)
        code, told = ask(capsys, nodes.servers, "snapshot", "save", str(tmp_path / "a"), "--timeout", "1")
        while code == DONE:                         # the leader has not noticed yet
            code, told = ask(capsys, nodes.servers, "snapshot", "save", str(tmp_path / "a"), "--force",
                             "--timeout", "1")
        assert (code, told["message"]) == (UNREACHED, "no server leads")
        code, told = ask(capsys, nodes.servers, "snapshot", "save", str(tmp_path / "b"), "--node", "n3")
        assert (code, told["name"]) == (DONE, "n3")
        assert b"kept" in (tmp_path / "b").read_bytes()
        code, told = ask(capsys, nodes.servers, "queue", "stat", "mail")
        assert (code, told["waiting"]) == (DONE, 1)


def test_a_file_that_exists_is_left_alone_without_force(
    cluster: FakeCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "state"
    file.write_text("precious")
    code, out, err = save(cluster, capsys, file)
    assert (code, out) == (64, "")
    assert f"{file} exists; --force overwrites it" in err
    assert file.read_text() == "precious"
    assert not any("SNAPSHOT" in server.received for server in cluster.servers)
    assert save(cluster, capsys, file, "--force")[0] == DONE
    assert (file.read_bytes(), os.listdir(tmp_path)) == (b"snapshot", ["state"])
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/null", path)], ids=["pipe", "device"])
def test_what_is_no_file_is_not_replaced_by_one(
    make: Callable[[Path], None], cluster: FakeCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    special = tmp_path / "special"
    make(special)
    code, _, err = save(cluster, capsys, special, "--force")
    assert (code, "is not a regular file" in err) == (64, True)
    assert not special.is_file()
    assert not any("SNAPSHOT" in server.received for server in cluster.servers)


def test_the_file_a_link_points_to_is_the_one_that_is_overwritten(
    cluster: FakeCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    (disk / "state").write_text("old")
    link = tmp_path / "latest"
    link.symlink_to("disk/state")
    assert save(cluster, capsys, link)[0] == 64
    assert save(cluster, capsys, link, "--force")[0] == DONE
    assert (link.is_symlink(), os.listdir(disk), (disk / "state").read_bytes()) == (True, ["state"], b"snapshot")


def test_a_file_that_appears_meanwhile_is_left_alone(
    cluster: FakeCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state"
    monkeypatch.setattr("sockpq.Client.snapshot", lambda *_, **__: file.write_text("precious").to_bytes(1, "big"))
    assert save(cluster, capsys, file)[0] == 64
    assert (file.read_text(), os.listdir(tmp_path)) == ("precious", ["state"])


def test_nothing_is_left_when_the_disk_fails(
    cluster: FakeCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def fsync(file: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{file}"))
        raise OSError(28, "No space left on device")

    file = tmp_path / "state"
    file.write_text("precious")
    monkeypatch.setattr(os, "fsync", fsync)
    code, out, err = save(cluster, capsys, file, "--force")
    assert (code, out, err) == (FILE_ERROR, "", f"cannot write {file}: No space left on device\n")
    assert (file.read_text(), os.listdir(tmp_path)) == ("precious", ["state"])
    assert synced[0].startswith(f"{tmp_path}/.state.")


def test_the_file_gets_its_name_after_its_bytes_are_on_disk_and_then_the_directory_is_synced(
    cluster: FakeCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def note_sync(file: int) -> None:
        calls.append("directory" if os.readlink(f"/proc/self/fd/{file}") == str(tmp_path) else "file")
        fsync(file)

    def note_replace(old: Path, new: Path) -> None:
        calls.append("name")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    assert save(cluster, capsys, tmp_path / "state")[0] == DONE
    assert calls == ["file", "name", "directory"]


def test_an_answer_that_breaks_off_leaves_no_file(
    cluster: FakeCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.servers[0].fail("SNAPSHOT", Fault.HALF_ANSWER)
    code, out, _ = save(cluster, capsys, tmp_path / "state")
    assert (code, out, os.listdir(tmp_path)) == (UNREACHED, "", [])


def test_what_is_no_snapshot_changes_nothing(
    cluster: FakeCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "state"
    file.write_text("something else")
    code, told = ask(capsys, cluster.addresses, "snapshot", "restore", str(file), "--yes")
    assert (code, told["error"]) == (REFUSED, "refused")
    file.write_text("snapshot")
    code, told = ask(capsys, cluster.addresses, "snapshot", "restore", str(file), "--yes")
    assert (code, told) == (DONE, {"file": str(file), "bytes": 8})


@pytest.mark.parametrize(("keys", "code"), [("n\n", REFUSED), ("\n", REFUSED), ("\x03", INTERRUPTED)])
def test_without_a_yes_nothing_is_restored(keys: str, code: int, cluster: FakeCluster, tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_text("snapshot")
    terminal = Terminal(cluster.addresses, "snapshot", "restore", str(file))
    terminal.wait_for("[y/N]")
    if keys == "\x03":
        time.sleep(0.3)             # between the question and reading the answer a signal is kept for the next key
        terminal.signal(2)          # what the terminal makes of the key for its foreground process
    else:
        terminal.type(keys)
    assert terminal.end() == code
    assert not any(line.startswith("CLONE") for server in cluster.servers for line in server.received)
