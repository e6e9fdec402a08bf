"""Servers of databases for tests, in a temporary folder and by a user without rights: PostgreSQL and MariaDB.

They are programs of the system, found in PATH or where Debian has them; without them tests are skipped.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devcluster.guardian import Guardian

START_S = 120.0
STOP_S = 60.0
POLL_S = 0.05
NOBODY = "nobody"


class DatabaseServer:
    """A server on a free port of loopback, from the beginning to the end of a block."""

    kind = ""

    def __init__(self) -> None:
        self.port = 0
        self.folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._guardian: Guardian | None = None      # ends the server if this process is killed

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="sockpq-db-"))
        self.folder.chmod(0o755)
        if os.geteuid() == 0:
            shutil.chown(self.folder, NOBODY)
        self._guardian = Guardian(self.folder)
        try:
            self._prepare()
            self.port = _free_port()
            self._process = self._start()
            self._guardian.watch(self._process.pid)
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it, without care for its data, and remove these."""
        if self._process:
            self._process.send_signal(signal.SIGQUIT if self.kind == "postgresql" else signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_S)
            self._process = None
        if self._guardian:
            self._guardian.close()
            self._guardian = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, port: int | None = None) -> str:
        """Return the URL of a database; `port`: of a proxy."""
        raise NotImplementedError

    def create(self, database: str) -> None:
        """Make an empty database."""
        raise NotImplementedError

    def _prepare(self) -> None:
        raise NotImplementedError

    def _start(self) -> subprocess.Popen[bytes]:
        raise NotImplementedError

    def _answers(self) -> None:
        """Raise an error while it does not."""
        raise NotImplementedError

    def _wait(self) -> None:
        assert self._process
        until = time.monotonic() + START_S
        while True:
            try:
                self._answers()
                return
            except Exception as error:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{self.kind} does not start: {error}\n{self._log()}") from error
            time.sleep(POLL_S)

    def _log(self) -> str:
        log = self.folder / "log"
        return log.read_text("utf-8", "replace")[-2000:] if log.exists() else ""

    def _run(self, *command: str | Path) -> None:
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, timeout=START_S, check=False, **_as_nobody())
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stderr}")

    def _launch(self, *command: str | Path) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(
                [*map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                start_new_session=True, **_as_nobody(),
            )


class Postgres(DatabaseServer):
    """A server of PostgreSQL in a folder of its own."""

    kind = "postgresql"

    def url(self, database: str, port: int | None = None) -> str:
        return f"postgresql://shop@127.0.0.1:{port or self.port}/{database}"

    def create(self, database: str) -> None:
        with self._connect() as connection:
            connection.execute(f"CREATE DATABASE {database}")

    def _prepare(self) -> None:
        self._run(
            postgres_program("initdb"), "-D", self.folder / "data", "-U", "shop", "-A", "trust", "-E", "UTF8",
            "--locale=C", "--no-sync", "--no-instructions",
        )

    def _start(self) -> subprocess.Popen[bytes]:
        settings = {
            "port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off",
            "max_connections": 50, "shared_buffers": "16MB", "autovacuum": "off", "jit": "off",
        }
        return self._launch(
            postgres_program("postgres"), "-D", self.folder / "data",
            *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
        )

    def _answers(self) -> None:
        self._connect().close()

    def _connect(self) -> Any:
        import psycopg

        return psycopg.connect(self.url("postgres"), autocommit=True)


class Maria(DatabaseServer):
    """A server of MariaDB in a folder of its own."""

    kind = "mariadb"

    def url(self, database: str, port: int | None = None) -> str:
        return f"mariadb://shop@127.0.0.1:{port or self.port}/{database}"

    def create(self, database: str) -> None:
        self._execute(f"CREATE DATABASE {database}")

    def _prepare(self) -> None:
        (self.folder / "first.sql").write_text(
            "CREATE USER IF NOT EXISTS shop@'%';\nGRANT ALL ON *.* TO shop@'%';\n")
        self._run(
            maria_program("mariadb-install-db"), "--no-defaults", f"--datadir={self.folder / 'data'}",
            "--auth-root-authentication-method=normal", "--skip-test-db",
        )

    def _start(self) -> subprocess.Popen[bytes]:
        return self._launch(
            maria_program("mariadbd"), "--no-defaults", f"--datadir={self.folder / 'data'}", f"--port={self.port}",
            "--bind-address=127.0.0.1", f"--socket={self.folder / 'socket'}", "--skip-name-resolve",
            f"--init-file={self.folder / 'first.sql'}", "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=16M",
        )

    def _answers(self) -> None:
        self._execute("SELECT 1")

    def _execute(self, sql: str) -> None:
        import pymysql

        connection = pymysql.connect(host="127.0.0.1", port=self.port, user="shop", autocommit=True)
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
        finally:
            connection.close()


def postgres_program(name: str) -> str | None:
    """Return the path of a program of PostgreSQL."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((str(folder / name) for folder in folders if (folder / name).exists()), None) or shutil.which(name)


def maria_program(name: str) -> str | None:
    """Return the path of a program of MariaDB."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")


def has_postgres() -> bool:
    """Return whether PostgreSQL is installed."""
    return bool(postgres_program("initdb") and postgres_program("postgres"))


def has_maria() -> bool:
    """Return whether MariaDB is installed."""
    return bool(maria_program("mariadb-install-db") and maria_program("mariadbd"))


def _as_nobody() -> dict[str, Any]:
    """Return arguments of subprocess, as these servers refuse to run by root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(NOBODY)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
