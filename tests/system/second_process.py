"""A second process with the name of a node, as an operator starts it elsewhere by mistake."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster.cluster import LocalCluster
from devcluster.guardian import Guardian
from devcluster.node import LocalNode
from devcluster.ports import HOST, free_ports

ADDRESS = re.compile(rf"{re.escape(HOST)}:\d+")
END_S = 15.0


@contextmanager
def twin_of(cluster: LocalCluster, name: str, folder: Path, *, copied: bool) -> Iterator[LocalNode]:
    """Return a node with this node's configuration, except for its addresses; `copied`: and with a copy of its data."""
    folder.mkdir()
    guardian = Guardian(folder)
    twin = LocalNode("twin", folder, guardian)
    own, members = cluster.config_file(name).read_text("utf-8").split("[[cluster.members]]", 1)
    ports = iter(free_ports(len(ADDRESS.findall(own))))
    own = ADDRESS.sub(lambda _: f"{HOST}:{next(ports)}", own).replace(str(cluster.data_dir(name)), str(twin.data_dir))
    twin.config_file.write_text(f"{own}[[cluster.members]]{members}", "utf-8")
    if copied:
        shutil.copytree(cluster.data_dir(name), twin.data_dir)
    twin.start()
    try:
        yield twin
    finally:
        twin.signal(signal.SIGKILL)
        twin.wait(END_S)
        guardian.close()
