"""`sockpqd --dev`: a single node on loopback, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gateway.config import Config, read
from gateway.dev.guide import program
from gateway.dev.ports import HOST, any_port, claim, free

PORTS = {"client": 11361, "peer": 11362, "http": 11363}
DATA_DIR = "sockpqd-dev"


def configuration(folder: Path, environment: Mapping[str, str]) -> Config:
    """Return the configuration of a single node with its data below `folder`.

    Raises ConfigError for invalid settings in the environment.
    """
    ours = claim(PORTS["client"])
    addresses = {use: f"{HOST}:{port if ours and free(port) else any_port()}" for use, port in PORTS.items()}
    document = {
        "node": {"name": "dev", "data_dir": str(folder / DATA_DIR)},
        "listen": addresses,
        "cluster": {"members": [{"name": "dev", "client": addresses["client"], "peer": addresses["peer"]}]},
    }
    return read(document, environment)


def announce(config: Config) -> None:
    """Print where the node listens and keeps its data."""
    host, _, port = config.listen.client.rpartition(":")
    print(f"sockpqd serves on {host} {port}, data in {config.node.data_dir}; try:  "
          f"{program('pqctl')} --servers {config.listen.client} shell", flush=True)
