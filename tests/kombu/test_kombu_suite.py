"""kombu's own 48 tests of transports, unpacked from its sources on the package index by `make kombu-tests`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from devcluster.cluster import LocalCluster

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / ".tools").glob("kombu-*/t"))
TESTS = 48
NODES = 1, 3
SUITE_MAX_S = 600         # a safety limit


Suites = dict[int, Future["subprocess.CompletedProcess[str]"]]


@pytest.fixture(scope="module")
def suites() -> Iterator[Suites]:
    """Both under way: they mostly wait."""
    with ThreadPoolExecutor() as pool:
        yield {nodes: pool.submit(_run, nodes) for nodes in NODES}


@pytest.mark.skipif(not SOURCES, reason="no sources of kombu: make kombu-tests")
@pytest.mark.timeout(2 * SUITE_MAX_S)
@pytest.mark.parametrize("nodes", NODES)
def test_all_pass(nodes: int, suites: Suites) -> None:
    told = suites[nodes].result()
    assert re.search(rf"\b{TESTS} passed", told.stdout), told.stdout[-4000:] + told.stderr[-2000:]
    assert " failed" not in told.stdout


def _run(nodes: int) -> subprocess.CompletedProcess[str]:
    with LocalCluster(nodes) as cluster:
        leader = cluster.server(cluster.wait_for_leader())
        environment = {
            **os.environ, "KOMBU_URL": ";".join(f"sockpq://{server}" for server in cluster.servers),
            "FAILOVER_URL": f"sockpq://{leader}", "PYTHONPATH": str(SOURCES[-1].parent),
        }
        return subprocess.run(
            [
                sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir",
                str(ROOT / "tests" / "kombu"), "-o", "python_files=kombu_suite.py", "-o", "addopts=",
                "--import-mode=importlib", "--timeout=300", str(ROOT / "tests" / "kombu" / "kombu_suite.py"),
            ],
            env=environment, capture_output=True, text=True, timeout=SUITE_MAX_S, check=False,
        )
