"""A real node with users: the program's arguments, and each user's rights there."""

from __future__ import annotations

import hmac
import os
import pty
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.ports import free_ports
from sockpqd.gateway.auth import scrypt
from tests.gateway.helpers.program import PATIENCE_S, SOCKPQD, read_all, sockpqd, write_config

KEY = b"secret-of-the-mailer"

BAD = b"400 Bad Arguments: "


def write_users(folder: Path, mode: int = 0o600) -> Path:
    path = folder / "users.toml"
    path.write_text(
        f'[users.op]\nrights = ["admin"]\nscrypt = "{scrypt.hashed("secret-of-op").text}"\n'
        f'[users.mailer]\nrights = ["put:mail*", "get:mail*"]\nkey = "{KEY.hex()}"\n',
    )
    path.chmod(mode)
    return path


# ---- arguments

def test_check_config_reads_the_users_file(tmp_path: Path) -> None:
    users = write_users(tmp_path)
    config = write_config(tmp_path, f'[auth]\nusers_file = "{users}"\n')
    assert sockpqd("--check-config", config, folder=tmp_path).returncode == 0
    users.chmod(0o644)
    found = sockpqd("--check-config", config, folder=tmp_path)
    assert found.returncode == 2
    assert "auth.users_file" in found.stderr
    assert f"run chmod 0600 {users}" in found.stderr
    users.chmod(0o600)
    users.write_text('[users.op]\nrights = ["everything"]\nkey = "' + KEY.hex() + '"')
    for argument in ("--check-config", "--config"):
        found = sockpqd(argument, config, folder=tmp_path)
        assert found.returncode == 2
        assert "users.op.rights: 'everything' is not a right" in found.stderr
        assert KEY.hex() not in found.stderr
    assert not (tmp_path / "data").exists()


def hash_secret(folder: Path, given: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [SOCKPQD, "--hash-secret"], cwd=folder, input=given, capture_output=True, timeout=PATIENCE_S, check=False,
    )


@pytest.mark.parametrize(("given", "secret"), [
    (b"secret", "secret"), (b"secret\n", "secret"), ("käse\nmore\n".encode(), "käse"),
])
def test_hash_secret_of_standard_input(tmp_path: Path, given: bytes, secret: str) -> None:
    found = hash_secret(tmp_path, given)
    assert found.returncode == 0
    assert scrypt.of_text(found.stdout.decode().strip()).matches(secret)
    assert secret.encode() not in found.stdout + found.stderr


@pytest.mark.parametrize("given", [b"", b"\n", b"two words", b" x", b"x\r\n", b"\xff"])
def test_what_is_no_secret_is_not_hashed(tmp_path: Path, given: bytes) -> None:
    found = hash_secret(tmp_path, given)
    assert found.returncode == 2
    assert b"a secret " in found.stderr
    assert not found.stdout


def test_hash_secret_of_a_terminal_asks_twice_and_shows_nothing(tmp_path: Path) -> None:
    terminal, device = pty.openpty()
    try:
        process = subprocess.Popen(
            [SOCKPQD, "--hash-secret"], cwd=tmp_path, stdin=device, stdout=subprocess.PIPE, stderr=device,
            start_new_session=True, env={**os.environ, "TERM": "dumb"},
        )
        shown = b""
        for _ in range(2):
            asked = shown.count(b": ")
            while shown.count(b": ") == asked:
                shown += os.read(terminal, 100)
            time.sleep(0.2)             # until it has switched off the echo: only then a secret may be typed
            os.write(terminal, b"typed-secret\n")
        output, _ = process.communicate(timeout=PATIENCE_S)
        os.set_blocking(terminal, False)
        shown += os.read(terminal, 1000)
    finally:
        os.close(terminal)
        os.close(device)
    assert process.returncode == 0
    assert scrypt.of_text(output.decode().strip()).matches("typed-secret")
    assert b"typed" not in shown


# ---- the node

class Node:
    """A node whose users are required, and which can be started again."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.folder = folder
        self.ports = dict(zip(("client", "peer"), free_ports(2), strict=True))
        self.users = write_users(folder)
        self.config = write_config(folder, f'[auth]\nusers_file = "{self.users}"\n{more}', **self.ports)
        self.log = folder / "log"
        self.start()

    def start(self) -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen([SOCKPQD, "--config", self.config], cwd=self.folder, stderr=log)
        deadline = time.monotonic() + PATIENCE_S
        while b" LEADER ONLINE " not in self.talk(b"AUTH op secret-of-op\r\nCLUSTER STATUS\r\n"):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.ports["client"]), timeout=PATIENCE_S)

    def talk(self, data: bytes) -> bytes:
        try:
            with self.connect() as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                return read_all(connection)
        except OSError:
            return b""

    def stop(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    running = Node(tmp_path)
    try:
        yield running
    finally:
        running.stop(signal.SIGKILL)


def test_users_of_the_file_and_of_the_log_outlive_the_process(node: Node) -> None:
    assert node.talk(b"PUT mail 0 3\r\nabcTOTAL\r\n") == b"401 Auth Required\r\n" * 2
    key = b"key-of-the-printer"
    assert node.talk(
        b"AUTH op secret-of-op\r\nUSER SET printer put:print* %s\r\n" % key.hex().encode(),
    ) == b"200 OK\r\n" * 2
    node.stop(signal.SIGKILL)
    node.start()
    assert node.talk(b"AUTH printer %s\r\nPUT print 0 1\r\nxPUT mail 0 1\r\nx" % key) == (
        b"200 OK\r\n200 OK\r\n403 Forbidden\r\n"
    )
    with node.connect() as connection:
        connection.sendall(b"AUTH mailer\r\n")
        nonce = bytes.fromhex(connection.recv(1000).split()[1].decode())
        connection.sendall(b"AUTH %s\r\n" % hmac.digest(KEY, nonce, "sha256").hex().encode())
        assert connection.recv(1000) == b"200 OK\r\n"
        connection.sendall(b"PUT mail 0 1\r\nxGET print\r\nQUIT\r\n")
        assert read_all(connection) == b"200 OK\r\n403 Forbidden\r\n221 Goodbye\r\n"
    snapshot = node.talk(b"AUTH op secret-of-op\r\nSNAPSHOT\r\n")
    assert b"print" in snapshot
    assert key not in snapshot


def test_only_an_administrator_changes_how_time_is_shared(node: Node) -> None:
    key, admin = b"key-of-the-printer", b"AUTH op secret-of-op\r\n"
    user = b"USER SET printer put:print*,get,queue %s\r\n" % key.hex().encode()
    assert node.talk(admin + user) == b"200 OK\r\n" * 2
    printer = b"AUTH printer %s\r\n" % key
    as_they_are = node.talk(printer + b"SCHED CONFIG\r\n")
    assert as_they_are == b"200 OK\r\n200 OK 4\r\nLEVELS 0|1|10|60|300\r\nCAP 30\r\nMULTIPLIER 2\r\nGROUPKEEP 600\r\n"
    assert node.talk(printer + b"SCHED SHOW\r\n").count(b"LEVEL ") == 5
    assert node.talk(printer + b"SCHED GROUP g\r\n").endswith(b"\r\n404 Group Not Found\r\n")
    assert node.talk(printer + b"SCHED CONFIG CAP 5\r\n").endswith(b"\r\n403 Forbidden\r\n")
    for settings in (
        b"LEVELS 0|5|5", b"LEVELS 0|2|1", b"LEVELS 1|2", b"LEVELS 0", b"MULTIPLIER 0", b"MULTIPLIER 101", b"CAP 0.999",
        b"CAP 86401", b"GROUPKEEP -1", b"CAP 5 CAP", b"CAP 5 MULTIPLIER 0", b"SPEED 1",
    ):
        for who in (admin, printer):
            assert node.talk(who + b"SCHED CONFIG %s\r\n" % settings).splitlines()[-1][:19] == BAD, settings
    for line in (
        b"GET q BY BEST", b"GET q BY", b"POLICY BEST", b"CONFIG POLICY BEST", b"QUEUE CONFIG q SCHED BEST",
        b"SCHED GROUP a|b", b"SCHED GROUP", b"SCHED BEST", b"DONE 1 RAN x", b"LATER 1 RAN", b"TOUCH 1 RAN -1",
    ):
        assert node.talk(admin + line + b"\r\n").splitlines()[-1][:19] == BAD, line
    assert node.talk(admin + b"PUT q 0 1 GROUP a|b\r\nx").splitlines()[-1][:19] == BAD
    assert node.talk(printer + b"SCHED CONFIG\r\n") == as_they_are


def test_a_wrong_secret_is_answered_late_and_logged_without_it(node: Node) -> None:
    began = time.monotonic()
    assert node.talk(b"AUTH op not-this-one\r\nTOTAL\r\n") == b"403 Forbidden\r\n401 Auth Required\r\n"
    assert time.monotonic() - began > 0.9
    log = node.log.read_text()
    assert re.search(r"refused: 127\.0\.0\.1:\d+: wrong user or secret, user op\b", log)
    for secret in ("not-this-one", "secret-of-op", KEY.decode(), KEY.hex()):
        assert secret not in log


def pings(connection: socket.socket) -> bool:
    """Return whether PING is answered."""
    try:
        connection.sendall(b"PING\r\n")
        return bool(connection.recv(1000))
    except ConnectionError:
        return False


def test_who_does_not_say_who_he_is_loses_the_connection_and_users_keep_it(tmp_path: Path) -> None:
    node = Node(tmp_path, "[limits]\nauth_timeout_s = 1\n")
    try:
        with node.connect() as stranger, node.connect() as user:
            user.sendall(b"AUTH op secret-of-op\r\n")
            assert user.recv(1000) == b"200 OK\r\n"
            deadline = time.monotonic() + PATIENCE_S
            while pings(stranger):      # what he may say without a name does not help
                assert time.monotonic() < deadline
                time.sleep(0.1)
            user.sendall(b"TOTAL\r\n")
            assert user.recv(1000) == b"200 OK 0 0 0 0\r\n"
    finally:
        node.stop(signal.SIGKILL)
