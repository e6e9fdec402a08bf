"""`sockpqd --dev`: a single node on loopback, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sockpqd.gateway.config import Config, read
from sockpqd.gateway.dev.guide import program
from sockpqd.gateway.dev.ports import HOST, any_port, claim, free

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
    """Print where the node listens and keeps its data; for an unusual port also the reason, and how to reach it."""
    listen = config.listen
    dashboard = f"  Dashboard: http://{listen.http}/\n" if listen.http else ""
    print(f"sockpqd serves on {listen.client}, data in {config.node.data_dir}\n{dashboard}"
          f"{_elsewhere(config)}  Try:  {program('pqctl')} shell", flush=True)


def _elsewhere(config: Config) -> str:
    """Return the lines about an unusual port for clients; none if it is the usual one."""
    listen = config.listen
    usual = f"{HOST}:{PORTS['client']}"
    if listen.client == usual:
        return ""
    ports = {"client": listen.client, "peer": listen.peer, "http": listen.http}
    taken = [str(port) for use, port in PORTS.items() if ports[use] != f"{HOST}:{port}" and not free(port)]
    reason = (f"  In use by another program, perhaps another sockpqd --dev: {', '.join(taken)}. So other ports were "
              "taken.\n" if taken else "")
    return (f"{reason}  pqctl and Client() go to {usual} by default:\n"
            f"    export SOCKPQ_SERVERS={listen.client}\n")
