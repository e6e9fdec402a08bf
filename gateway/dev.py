"""`sockpqd --dev`: a single node on loopback for trying things out, without a configuration file."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path

from gateway.config import Config, read

HOST = "127.0.0.1"
PORTS = {"client": 11361, "peer": 11362, "http": 11363}
DATA_DIR = "sockpqd-dev"


def configuration(folder: Path, environment: Mapping[str, str]) -> Config:
    """Return the configuration of a single node with its data below `folder`.

    Raises ConfigError for invalid settings in the environment.
    """
    addresses = {use: f"{HOST}:{_free(port)}" for use, port in PORTS.items()}
    document = {
        "node": {"name": "dev", "data_dir": str(folder / DATA_DIR)},
        "listen": addresses,
        "cluster": {"members": [{"name": "dev", "client": addresses["client"], "peer": addresses["peer"]}]},
    }
    return read(document, environment)


def _free(port: int) -> int:
    """Return `port` if it is free, else any free port."""
    for candidate in (port, 0):
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((HOST, candidate))
            return int(listener.getsockname()[1])
    return port


def announce(config: Config) -> None:
    """Print where the node listens and keeps its data."""
    host, _, port = config.listen.client.rpartition(":")
    print(f"sockpqd serves on {host} {port}, data in {config.node.data_dir}; try:  nc {host} {port}", flush=True)
