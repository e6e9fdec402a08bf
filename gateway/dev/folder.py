"""The folder of a cluster for trying things out: a configuration file, a log and a data directory for each node.

The files are written once and kept: the members and their ports are part of the cluster's state, and a user who
tries things out may want to change a setting.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase

from msgspec import Struct

from sockpqd.gateway.config import Config, ConfigError, load, split_address
from sockpqd.gateway.dev.ports import HOST, claim, free

# The ports of the first node, as in the documents; each further node's are PORTS_STEP higher. If one of them is taken,
# all are OTHER_STEP higher, and so on.
CLIENT, PEER, HTTP = 11361, 11362, 11363
PORTS_STEP = 100
OTHER_STEP = 1000
PORT_MAX = 32_000           # above may be ephemeral ports, which are taken by any connection


class DevNode(Struct, frozen=True):
    """A node of the cluster, and where its files are. `cluster`: the name of its cluster among several, else ""."""

    config: Config
    file: Path
    log: Path
    cluster: str = ""

    @property
    def name(self) -> str:
        """Return its name, preceded by the name of its cluster if there are several."""
        name = self.config.node.name
        return f"{self.cluster}/{name}" if self.cluster else name

    @property
    def port(self) -> int:
        """Return its port for clients."""
        return split_address(self.config.listen.client)[1]


def prepare_several(folder: Path, count: int, clusters: int, environment: Mapping[str, str]) -> list[list[DevNode]]:
    """Return the nodes of each of the clusters a, b, .. in folders below this one. Raises ConfigError."""
    found: list[list[DevNode]] = []
    first = CLIENT
    for name in ascii_lowercase[:clusters]:
        found.append(prepare(folder / name, count, environment, name, first))
        first = max(first, found[-1][0].port) + OTHER_STEP
    return found


def prepare(
    folder: Path, count: int, environment: Mapping[str, str], cluster: str = "", first: int = CLIENT
) -> list[DevNode]:
    """Return the nodes of the cluster in this folder, which is made if it is not there. Raises ConfigError.

    `cluster`: its name among several; `first`: the lowest port for clients to use for a new one.
    """
    names = [f"n{number + 1}" for number in range(count)]
    files = {name: folder / f"{name}.toml" for name in names}
    known = all(file.exists() for file in files.values())
    if not known:
        try:
            _make(folder, files, first)
        except OSError as error:
            raise ConfigError(f"{folder}: {error.strerror}") from None
    nodes = [DevNode(load(file, environment), file, folder / f"{name}.log", cluster) for name, file in files.items()]
    if known:
        _check(nodes)
    return nodes


def child_environment() -> dict[str, str]:
    """Return the environment for the nodes: ours, without settings that would give all nodes one name and ports."""
    return {
        variable: value for variable, value in os.environ.items()
        if not variable.startswith(("SOCKPQD_NODE_", "SOCKPQD_LISTEN_"))
    }


def _make(folder: Path, files: Mapping[str, Path], lowest: int) -> None:
    first = _first_port(len(files), lowest)
    members = ""
    addresses = {}
    for number, name in enumerate(files):
        base = first + number * PORTS_STEP
        addresses[name] = {use: f"{HOST}:{base + port - CLIENT}" for use, port in
                           (("client", CLIENT), ("peer", PEER), ("http", HTTP))}
        members += (f'[[cluster.members]]\nname = "{name}"\nclient = "{addresses[name]["client"]}"\n'
                    f'peer = "{addresses[name]["peer"]}"\n')
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        listen = "".join(f'{use} = "{address}"\n' for use, address in addresses[name].items())
        # a JSON string is a valid TOML string
        file.write_text(
            f"[node]\nname = \"{name}\"\ndata_dir = {json.dumps(str(folder / name), ensure_ascii=False)}\n"
            f"[listen]\n{listen}{members}", "utf-8"
        )


def _first_port(count: int, lowest: int) -> int:
    """Return the port of the first node for clients, such that all ports of all nodes are free. Raises ConfigError."""
    for first in range(lowest, PORT_MAX - count * PORTS_STEP, OTHER_STEP):
        ports = (first + number * PORTS_STEP + use for number in range(count) for use in (0, 1, 2))
        if claim(first) and all(map(free, ports)):
            return first
    raise ConfigError(f"no {3 * count} ports like {CLIENT} are free on {HOST}")


def _check(nodes: Sequence[DevNode]) -> None:
    """Raise ConfigError if the nodes cannot listen, before any process is started and its messages hide the error."""
    first = nodes[0].config.listen.client
    taken = [] if claim(split_address(first)[1]) else [first]
    for node in nodes:
        listen = node.config.listen
        taken += [address for address in (listen.client, listen.peer, listen.http)
                  if address is not None and not free(split_address(address)[1])]
    if taken:
        raise ConfigError(
            f"another program listens on {taken[0]}: is this cluster running already? If not, end that program, or "
            f"remove {nodes[0].file.parent} to begin a new cluster on other ports"
        )
