"""Runs kombu's own tests of transports against a cluster; they are unpacked by `make kombu-tests`."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

from devcluster.cluster import LocalCluster

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / ".tools").glob("kombu-*/t"))
NODES = 1, 3
SUITE_MAX_S = 600         # a safety limit

Upstream = dict[int, Future["subprocess.CompletedProcess[str]"]]    # by the number of nodes


def run(nodes: int) -> subprocess.CompletedProcess[str]:
    """Run them with a cluster of this many nodes."""
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
