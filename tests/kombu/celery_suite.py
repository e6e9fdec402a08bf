"""Celery's own integration tests on this transport, from its sources on the package index: `make test-celery`.

    python -m tests.kombu.celery_suite SOURCES [--nodes 3] [--backend sockpq|redis|rpc] [--files tasks canvas ..]
        [--choose EXPRESSION]

Left out are the files that need docker, RabbitMQ's management interface or other databases. Some tests use a Redis
whatever the broker is: redis-server must be there. Prints what failed, and `N passed, N failed, N skipped`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster.cluster import LocalCluster
from devcluster.ports import free_ports

# In this order: test_worker leaves a mark in its process by which others would fail, whatever the broker.
FILES = (
    "canvas", "group_chains", "inspect", "loader", "logfile_format", "redis_backend", "request_backend_down",
    "security", "serialization", "tasks", "upgrade", "worker",
)
LIMIT_S = 300           # for a test, as upstream
PLUGIN = f"""
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.own_markers = [mark for mark in item.own_markers if mark.name not in ("flaky", "timeout")]
        item.add_marker(pytest.mark.timeout({LIMIT_S}))
"""


@contextmanager
def redis(folder: Path) -> Iterator[int]:
    """A Redis for the tests that need one; its port."""
    (port,) = free_ports(1)
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        running.terminate()
        running.wait()


def main() -> int:
    """Run them; returns the exit code of pytest."""
    options = argparse.ArgumentParser(description="Celery's own integration tests.")
    options.add_argument("sources", type=Path)
    options.add_argument("--nodes", type=int, default=3)
    options.add_argument("--backend", choices=("sockpq", "redis", "rpc"), default="sockpq")
    options.add_argument("--files", nargs="*", default=FILES)
    options.add_argument("--choose", default="", help="the tests, as pytest's -k names them; all by default")
    chosen = options.parse_args()
    if shutil.which("redis-server") is None:
        print("redis-server is needed, and is not on PATH", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as place, LocalCluster(chosen.nodes) as cluster, redis(Path(place)) as port:
        (Path(place) / "harness_plugin.py").write_text(PLUGIN)
        broker = ";".join(f"sockpq://{server}" for server in cluster.servers)
        backends = {"sockpq": f"sockpq://{cluster.servers[0]}", "redis": f"redis://127.0.0.1:{port}/0", "rpc": "rpc"}
        environment = {
            **os.environ, "TEST_BROKER": broker, "TEST_BACKEND": backends[chosen.backend], "REDIS_HOST": "127.0.0.1",
            "REDIS_PORT": str(port), "WORKER_LOGLEVEL": "INFO", "PYTHONPATH": f"{place}:{chosen.sources.absolute()}",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        run = subprocess.Popen(
            [
                sys.executable, "-m", "pytest", "-p", "harness_plugin", "-p", "no:cacheprovider", "-p",
                "celery.contrib.pytest", "-c", os.devnull, "--rootdir", ".", "-o", "python_classes=test_*", "-q", "-rf",
                "-k", chosen.choose, *(f"t/integration/test_{name}.py" for name in chosen.files),
            ],
            cwd=chosen.sources, env=environment, stdout=subprocess.PIPE, text=True,
        )
        assert run.stdout is not None
        for line in run.stdout:
            if re.match(r"FAILED|ERROR|\d+ (passed|failed|skipped)|=+ .*(passed|failed)", line):
                print(line, end="", flush=True)
        return run.wait()


if __name__ == "__main__":
    sys.exit(main())
