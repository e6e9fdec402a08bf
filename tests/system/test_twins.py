"""A second process with the name of a node disturbs nobody, also with a copy of its data."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devcluster.cluster import LocalCluster
from devcluster.guardian import Guardian
from devcluster.node import LocalNode
from devcluster.ports import HOST, free_ports
from tests.system.load import Producer, check, drain
from tests.system.test_kill import wait_for_progress
from tests.waiting import until

ADDRESS = re.compile(rf"{re.escape(HOST)}:\d+")
END_S = 15.0


@contextmanager
def twin_of(cluster: LocalCluster, name: str, folder: Path, *, copied: bool) -> Iterator[LocalNode]:
    """A node with the configuration of this one, apart from where it listens; `copied`: and with a copy of its data."""
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


@pytest.mark.parametrize("copied", [True, False])
def test_a_second_process_with_the_name_of_a_follower_is_refused(tmp_path: Path, *, copied: bool) -> None:
    with LocalCluster(3) as cluster:
        leader = cluster.wait_for_leader()
        cluster.wait_until_level()
        follower, third = (name for name in cluster.names if name != leader)
        producer = Producer(cluster.servers, "p")
        producer.start()
        wait_for_progress([producer])
        before = len(cluster.logs(leader))
        with twin_of(cluster, follower, tmp_path / "twin", copied=copied) as twin:
            refused = f"a second process with the name {follower} comes from {HOST}:"
            cluster.wait_until_logged(leader, refused, before)
            until(lambda: f"refuses this node: {refused}" in twin.log(), twin.log)
            cluster.kill(third)                 # now each answer of the follower is needed
            wait_for_progress([producer], 200)
            said = cluster.logs(leader)[before:]
            assert f"connection to {follower} lost" not in said
        cluster.restart(third)
        producer.finish()
        cluster.wait_until_level()
        check([producer], drain(cluster))
