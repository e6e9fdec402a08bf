"""The program: its arguments, how it starts and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from devcluster.ports import free_ports
from sockpqd.gateway import main as main_module
from sockpqd.gateway.dev import alone, ports
from sockpqd.gateway.dev.ports import HOST, any_port
from tests.gateway.helpers.program import Dev, read_all, sockpqd, write_config


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Dev]:
    node = Dev(tmp_path)
    try:
        yield node
    finally:
        node.process.kill()
        node.process.wait()
        assert node.process.stdout is not None
        node.process.stdout.close()


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore after the test what this process claims."""
    made: list[socket.socket] = []
    monkeypatch.setattr(ports, "_claims", made)
    yield
    for claim in made:
        claim.close()


def test_dev_works_keeps_its_jobs_over_sigterm_and_writes_only_below_its_folder(dev: Dev, tmp_path: Path) -> None:
    assert dev.talk(b"PUT mail 0 5\r\nhelloINTERCONNECT\r\n") == b"200 OK\r\n200 OK 1\r\n"
    assert b" dev 127.0.0.1 " in dev.talk(b"CLUSTER STATUS\r\n")
    head, _, snapshot = dev.talk(b"SNAPSHOT\r\n").partition(b"\r\n")
    assert head == b"200 OK %d" % len(snapshot)
    dev.process.send_signal(signal.SIGTERM)
    assert dev.wait() == 0
    again = Dev(tmp_path)
    try:
        assert again.talk(b"GET mail\r\n") == b"200 OK mail 1 0 5\r\nhello"
    finally:
        again.process.send_signal(signal.SIGINT)
        assert again.wait() == 0
        assert again.process.stdout is not None
        again.process.stdout.close()
    assert {path.name for path in tmp_path.iterdir()} == {"sockpqd-dev", "log"}
    assert "hello" not in (tmp_path / "log").read_text()
    assert not list((tmp_path / "sockpqd-dev" / "exports").iterdir())


def test_a_request_is_answered_as_before_when_the_node_was_killed(dev: Dev, tmp_path: Path) -> None:
    words = b"REQ 1 PUT q 0 1 NEW\r\nxREQ 2 GET q BOUND\r\nREQ 3 PUT w 0 1 NEW WAIT o\r\ny"
    answer = b"200 OK IS i1\r\n200 OK q 1 0 1 IS i1\r\nx206 Wait for output IS i2\r\n"
    head, _, first = dev.talk(b"SESSION\r\n" + words).partition(b"\r\n")
    assert first == answer
    sid = head.split()[3]
    assert re.fullmatch(rb"1_[0-9a-f]{16}", sid)
    dev.process.kill()
    dev.wait()
    again = Dev(tmp_path)
    try:
        head, _, second = again.talk(b"SESSION %s\r\n" % sid + words).partition(b"\r\n")
        assert head == b"200 OK SESSION %s TTL 900 LAST 3" % sid
        assert second == answer
        assert again.talk(b"TOTAL\r\nSESSION %s\r\nTAKEN\r\n" % sid) == (
            b"200 OK 2 1 1 1\r\n200 OK SESSION %s TTL 900 LAST 3\r\n200 OK 1\r\n1 q 0\r\n" % sid
        )
    finally:
        again.process.kill()
        again.process.wait()
        assert again.process.stdout is not None
        again.process.stdout.close()


def test_dev_is_ready_soon(tmp_path: Path) -> None:
    node = Dev(tmp_path)
    node.process.kill()
    _, _, used = os.wait4(node.process.pid, 0)
    node.process.returncode = -signal.SIGKILL
    assert node.process.stdout is not None
    node.process.stdout.close()
    # two seconds are promised; of its own work, as others may be busy at the same time
    assert used.ru_utime + used.ru_stime < 4


def test_shutdown_answers_ends_the_waits_and_exits_with_zero(dev: Dev) -> None:
    with dev.connect() as waiter, dev.connect() as idle:
        waiter.sendall(b"GETB q\r\n")
        idle.sendall(b"PING\r\n")
        assert idle.recv(100) == b"200 OK\r\n"
        assert dev.talk(b"SHUTDOWN\r\n", end=False) == b"221 Shutting Down\r\n"
        assert read_all(waiter) == b"500 Offline Mode\r\n"
        assert read_all(idle) == b""
    assert dev.wait() == 0


def test_nobody_else_can_read_the_data(dev: Dev, tmp_path: Path) -> None:
    folders = [path for path in tmp_path.rglob("*") if path.name in ("journal", "snapshots", "exports")]
    assert len(folders) == 3
    for path in folders:
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path


def test_a_second_dev_takes_other_ports_and_refuses_the_same_data(dev: Dev, tmp_path: Path) -> None:
    second = sockpqd("--dev", folder=tmp_path)
    assert second.returncode == 75
    assert "the node cannot start: StorageInUse" in second.stderr
    assert "Traceback" not in second.stderr
    (tmp_path / "other").mkdir()
    other = Dev(tmp_path / "other")
    try:
        assert other.address != dev.address
        assert other.talk(b"PING\r\n") == b"200 OK\r\n"
    finally:
        other.process.kill()
        other.process.wait()
        assert other.process.stdout is not None
        other.process.stdout.close()


@pytest.mark.usefixtures("claims")
def test_dev_says_which_ports_are_taken_and_how_it_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        taken = other.getsockname()[1]
        monkeypatch.setattr(alone, "PORTS", {"client": taken, "peer": any_port(), "http": taken})
        config = alone.configuration(tmp_path, {})
        alone.announce(config)
    told = capsys.readouterr().out
    assert f"In use by another program, perhaps another sockpqd --dev: {taken}, {taken}. So other ports were" in told
    assert f"go to {HOST}:{taken} by default" in told
    assert f"export SOCKPQ_SERVERS={config.listen.client}\n" in told
    assert f"http://{config.listen.http}/\n" in told


@pytest.mark.usefixtures("claims")
def test_dev_on_the_usual_ports_says_nothing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(alone, "PORTS", {use: any_port() for use in alone.PORTS})
    alone.announce(alone.configuration(tmp_path, {}))
    told = capsys.readouterr().out
    assert f"serves on {HOST}:{alone.PORTS['client']}, data in {tmp_path}" in told
    assert "SOCKPQ_SERVERS" not in told
    assert "In use" not in told


def test_check_config_says_good_or_what_is_wrong(tmp_path: Path) -> None:
    good = sockpqd("--check-config", write_config(tmp_path), folder=tmp_path)
    assert (good.returncode, good.stdout, good.stderr) == (0, f"{tmp_path / 'n1.toml'}: good; node n1 of 1\n", "")
    bad = sockpqd("--check-config", write_config(tmp_path, "[limits]\ndata = 5\n"), folder=tmp_path)
    assert (bad.returncode, bad.stdout, bad.stderr) == (2, "", "sockpqd: limits.data: unknown key\n")
    assert [path.name for path in tmp_path.iterdir()] == ["n1.toml"]


def test_a_wrong_configuration_does_not_start(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    for environment, sentence in [
        ({"SOCKPQD_LISTEN_CLIENT": "0.0.0.0:1"}, "sockpqd: listen.client: '0.0.0.0:1' is not a loopback address"),
        ({"SOCKPQD_RAFT_LEASE_MS": "x"}, "sockpqd: SOCKPQD_RAFT_LEASE_MS (environment): "),
    ]:
        run = sockpqd("--config", config, folder=tmp_path, **environment)
        assert run.returncode == 2
        assert run.stderr.startswith(sentence)
    missing = sockpqd("--config", tmp_path / "none.toml", folder=tmp_path)
    assert (missing.returncode, "No such file" in missing.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["n1.toml"]


@pytest.mark.parametrize("arguments", [[], ["--dev", "--config", "x"], ["--unknown"], ["--config"], ["--dev", "extra"]])
def test_wrong_arguments_are_refused(arguments: list[str], tmp_path: Path) -> None:
    run = sockpqd(*arguments, folder=tmp_path)
    assert run.returncode == 2
    assert "Error: " in run.stderr
    assert not list(tmp_path.iterdir())


def test_without_arguments_it_reads_the_file_in_etc(tmp_path: Path) -> None:
    assert str(main_module.DEFAULT_FILE) == "/etc/sockpqd.toml"
    if main_module.DEFAULT_FILE.exists():
        pytest.skip("there is one, and this machine's node may run")
    run = sockpqd(folder=tmp_path)
    assert (run.returncode, "there is no /etc/sockpqd.toml" in run.stderr) == (2, True)


def test_the_default_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_config(tmp_path, "[limits]\ndata = 5\n")
    monkeypatch.setattr(main_module, "DEFAULT_FILE", config)
    run = CliRunner().invoke(main_module.main, [])
    assert (run.exit_code, run.output) == (2, "sockpqd: limits.data: unknown key\n")


def test_an_address_in_use_is_a_clear_end(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as free:
        ports = {"client": taken.getsockname()[1], "peer": free.getsockname()[1]}
        free.close()
        run = sockpqd("--config", write_config(tmp_path, **ports), folder=tmp_path)
    assert run.returncode == 75
    assert "the node cannot start: OSError" in run.stderr
    assert f"listen.client = \\\"127.0.0.1:{ports['client']}\\\": Address already in use (another process" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("key", ["peer", "client"])
def test_an_address_of_another_machine_is_named_with_its_key(key: str, tmp_path: Path) -> None:
    """The exit code says that another start may help, as the address may come with the network."""
    ports = dict(zip(("client", "peer"), free_ports(2), strict=True))      # for the address that is this machine's
    run = sockpqd("--config", write_config(tmp_path, **ports), folder=tmp_path, SOCKPQD_LISTEN_INSECURE="true",
                  **{f"SOCKPQD_LISTEN_{key.upper()}": "192.0.2.1:11369"})
    assert run.returncode == 75
    assert f"listen.{key} = \\\"192.0.2.1:11369\\\": Cannot assign requested address" in run.stderr


def test_a_file_in_the_place_of_the_data_directory_is_a_wrong_configuration(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in ("file", "file/data"):
        run = sockpqd("--config", write_config(tmp_path), folder=tmp_path, SOCKPQD_NODE_DATA_DIR=str(tmp_path / place))
        assert run.returncode == 2
        assert f"node.data_dir: {tmp_path / 'file'} is a file: name a folder" in run.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["--nodes", "3"]])
def test_nobody_waits_for_the_node_to_be_told_about_arguments(arguments: list[str]) -> None:
    program = "import sys; from sockpqd.gateway.main import main\ntry: main(sys.argv[1:])\n" \
              "finally: print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    loaded = set(ended.stderr.split())
    assert "sockpqd.gateway.main" in loaded
    assert not {"core", "cluster", "gateway.config", "aiohttp", "asyncio", "ssl", "uvloop"} & loaded


def test_it_tells_its_version(tmp_path: Path) -> None:
    run = sockpqd("--version", folder=tmp_path)
    assert (run.returncode, run.stdout) == (0, f"sockpqd, version {version('sockpqd')}\n")


def test_the_collector_looks_at_a_bounded_number_of_new_objects_at_a_time() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import gc; from sockpqd.gateway.daemon import _spare_the_collector as spare; spare(); "
         "print(*gc.get_threshold(), gc.get_freeze_count())"],
        capture_output=True, check=True, text=True,
    ).stdout
    new, times, further, frozen = map(int, said.split())
    assert new * times <= 100_000           # some 15 ms, where each is of a queue or a group
    assert new * times * further >= 100_000_000
    assert frozen > 10_000
