"""A node on loopback that follows a live cluster, for a drill; it ends with this process."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from shutil import rmtree
from types import TracebackType
from typing import Self

from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.doctor.files import program
from sockpqd.pqctl.output.exit_codes import FILE_ERROR, USAGE_ERROR, Failure
from sockpqd.pqctl.output.stdio import say

USER = "drill"          # of the copy; one of the users file has precedence over one of the log with this name
SECRET_BYTES = 32       # of randomness in the user's secret
STOP_S = 30.0
LOG_BYTES = 2000        # of its log, in the message when it has ended
PR_SET_PDEATHSIG = 1    # prctl(2): the signal that a process gets when its parent ends


class DrillNode:
    """A cluster of one node, with a copy of another one. Its client port serves this process only."""

    def __init__(self, servers: list[str], access: ClusterAccess, folder: str | None, hot_bytes: int | None) -> None:
        """`servers` and `access`: of the cluster that it copies. `folder`: where its files go, None: temporary ones."""
        self.address = ""
        self.access = ClusterAccess(user=USER, secret=secrets.token_hex(SECRET_BYTES))
        self.folder = Path()
        self.left: Path | None = None       # the folder, if it could not be removed
        self._servers = servers
        self._origin_access = access
        self._place = folder
        self._hot_bytes = hot_bytes
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        path = program()
        if path is None:
            raise Failure(USAGE_ERROR, "there is no program sockpqd beside pqctl or in PATH, which the drill needs")
        try:
            self.folder = Path(tempfile.mkdtemp(prefix="sockpqd-drill-", dir=self._place))
            client, peer = _free_ports()
            self.address = f"127.0.0.1:{client}"
            config = self.folder / "sockpqd.toml"
            config.write_text(self._configuration(f"127.0.0.1:{peer}"), "utf-8")
            environment = {key: value for key, value in os.environ.items() if not key.startswith("SOCKPQD_")}
            with (self.folder / "log").open("wb") as log:
                self._process = subprocess.Popen(
                    [path, "--config", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                    start_new_session=True,     # Ctrl-C is for pqctl, which ends it
                    preexec_fn=partial(ctypes.CDLL(None).prctl, PR_SET_PDEATHSIG, signal.SIGTERM))
        except BaseException as error:
            self.__exit__(None, None, None)
            if isinstance(error, OSError):
                raise Failure(FILE_ERROR, f"the node of the drill cannot be started: {error}") from error
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self.folder != Path():
            rmtree(self.folder, ignore_errors=True)
            if self.folder.exists():
                self.left = self.folder
                say(f"{self.folder} cannot be removed: remove it, as it has a copy of all data")

    def must_run(self) -> None:
        """Raise Failure with the end of its log if it has ended."""
        assert self._process is not None
        if self._process.poll() is None:
            return
        try:
            end = (self.folder / "log").read_bytes()[-LOG_BYTES:].decode("utf-8", "replace")
        except OSError as error:
            end = f"its log cannot be read: {error}"
        raise Failure(FILE_ERROR, f"the node of the drill has ended: {end or 'it printed nothing'}")

    @property
    def data_bytes(self) -> int:
        """The size of its data directory."""
        sizes = 0
        for path in (self.folder / "data").rglob("*"):
            with suppress(OSError):                     # it was removed meanwhile
                sizes += path.stat().st_blocks * 512
        return sizes

    def _configuration(self, peer: str) -> str:
        access, replica = self._origin_access, {"of": ",".join(self._servers)}
        users = self._private_file("users.toml", _users(self.access))
        if access.user is not None:
            secret = self._private_file("secret", access.present_secret or "")
            replica |= {"user": access.user, "secret_file": secret}
        authority = ssl.get_default_verify_paths().cafile if access.tls is True else access.tls or None
        if authority is not None:
            replica["ca"] = str(Path(authority).resolve())
        addresses = {"client": self.address, "peer": peer}
        sections: dict[str, dict[str, str | int]] = {
            "[node]": {"name": "drill", "data_dir": str(self.folder / "data")},
            "[listen]": {**addresses}, "[auth]": {"users_file": users}, "[replica]": {**replica},
            "[[cluster.members]]": {"name": "drill", **addresses},
        }
        if self._hot_bytes is not None:
            sections["[limits]"] = {"hot_bytes": self._hot_bytes}
        return "".join(
            f"{head}\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
            for head, keys in sections.items())

    def _private_file(self, name: str, text: str) -> str:
        """Write a file that only this user may read; returns its path."""
        path = self.folder / name
        path.touch(0o600)
        path.write_text(text, "utf-8")
        return str(path)


def _users(access: ClusterAccess) -> str:
    """Return the users file of a node that serves this user only."""
    key = (access.secret or "").encode().hex()
    return f'[users.{access.user}]\nrights = ["admin"]\nkey = "{key}"\n'


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
