"""The program sockpqd: run to its end, or as a running node."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

SOCKPQD = Path(sys.executable).parent / "sockpqd"

PATIENCE_S = 120.0


def sockpqd(*arguments: str | Path, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [SOCKPQD, *arguments], cwd=folder, env={**os.environ, **environment}, text=True, capture_output=True,
        timeout=PATIENCE_S, check=False,
    )


class Dev:
    """A running `sockpqd --dev`, with its output."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [SOCKPQD, "--dev"], cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True,
            )
        assert self.process.stdout is not None
        self.announcement = self.process.stdout.readline()
        match = re.search(r"serves on (\S+):(\d+),", self.announcement)
        assert match is not None, self.announcement + self.log.read_text()
        self.address = (match[1], int(match[2]))

    def talk(self, data: bytes, *, end: bool = True) -> bytes:
        with self.connect() as connection:
            connection.sendall(data)
            if end:
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE_S)

    def wait(self) -> int:
        return self.process.wait(PATIENCE_S)


def read_all(connection: socket.socket) -> bytes:
    received = b""
    while piece := connection.recv(65536):
        received += piece
    return received


CONFIG = """
[node]
name = "n1"
data_dir = "data"
[listen]
client = "127.0.0.1:{client}"
peer = "127.0.0.1:{peer}"
[[cluster.members]]
name = "n1"
client = "127.0.0.1:{client}"
peer = "127.0.0.1:{peer}"
"""


def write_config(folder: Path, more: str = "", **ports: int) -> Path:
    path = folder / "n1.toml"
    path.write_text(CONFIG.format(**{"client": 11361, "peer": 11362, **ports}) + more)
    return path
