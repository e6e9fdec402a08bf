"""The program ends when another cluster has taken the place of its own; a job of that one is not deleted there."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from devcluster.ports import HOST, free_ports
from tests.beanstalk.helpers.client import BeanstalkClient
from tests.replaced import replace
from tests.waiting import PATIENCE_S, until

PROGRAM = Path(sys.executable).parent / "sockpq-beanstalkd"


def reachable(address: str) -> bool:
    with suppress(OSError):
        BeanstalkClient(address).close()
        return True
    return False


def test_it_ends_and_says_which(tmp_path: Path) -> None:
    address = f"{HOST}:{free_ports(1)[0]}"
    with LocalCluster(1) as cluster, (tmp_path / "log").open("wb") as log:
        (server,) = cluster.servers
        program = subprocess.Popen([PROGRAM, "--listen", address, "--servers", server], stderr=log)
        try:
            until(lambda: reachable(address))
            with BeanstalkClient(address, "q") as ours:
                ours.send("put 0 0 60 1\r\nx")
                assert ours.line().startswith("INSERTED ")
                reserved = ours("reserve").split()
                assert (reserved[0], ours.line()) == ("RESERVED", "x")
                with Client(server) as client:
                    mine = client.cluster_id().id
                replace(cluster)
                with Client(server) as client:
                    other = client.cluster_id().id
                    client.put("q", b"theirs", number=True, lease=60)
                    theirs = client.get("q", meta=True)
                    assert theirs
                    with pytest.raises(EOFError):
                        ours(f"delete {reserved[1]}")
                    assert program.wait(PATIENCE_S) == 1
                    assert client.total("q").running == 1
        finally:
            program.kill()
            program.wait()
    told = (tmp_path / "log").read_text().splitlines()[-1]
    assert all(part in told for part in (str(mine), str(other), server)), told
