"""One version, the same wherever it is shown."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from importlib.metadata import version
from pathlib import Path

import pytest
import sockpq
from sockpq import _version

from devcluster.cluster import LocalCluster

BIN = Path(sys.executable).parent


def test_it_is_told_everywhere_the_same() -> None:
    told = {version("sockpqd"), version("sockpq")}
    with LocalCluster(1) as cluster:
        with sockpq.Client(cluster.servers) as client:
            told |= {node.version for node in client.cluster_status()}
        with urllib.request.urlopen(f"http://{cluster.http('n1')}/metrics", timeout=60) as page:
            metrics = page.read().decode()
        assert f'sockpqd_build_info{{version="{_version.__version__}"}} 1' in metrics
    assert told == {_version.__version__}


@pytest.mark.parametrize("program", ["sockpqd", "pqctl", "pqworker"])
def test_programs_say_it(program: str) -> None:
    done = subprocess.run([BIN / program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{program}, version {_version.__version__}\n"
