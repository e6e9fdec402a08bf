"""Celery's own integration tests on this transport, from its sources on the package index: `make test-celery`.

    python -m tests.kombu.celery_suite SOURCES [--nodes 3] [--backend sockpq|redis|rpc] [--files tasks canvas ..]
        [--choose EXPRESSION] [--times 1] [--broker "sockpqd x3"] [--log FILE]

Left out are the files that need docker, RabbitMQ's management interface or other databases, or bring a broker in
memory. Some tests use a Redis whatever the broker is: redis-server must be there. Prints what failed, and `N passed,
N failed, N skipped`. Other brokers, to compare with, are those of bench.celery.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from bench.celery.brokers import BROKERS, redis
from devcluster import HOST

FILES = (               # of all versions, not each of which has all
    "backend_leak_in_fixture_teardown", "beat", "canvas", "dedup_chain_dispatch", "group_chains", "inspect", "loader",
    "logfile_format", "prefork_shutdown", "redis_backend", "request_backend_down", "security", "serialization", "tasks",
    "upgrade", "worker",
)
ALONE = (               # they end other workers of their process, or count what others have left in it
    "dedup_chain_dispatch", "prefork_shutdown", "redis_backend", "worker",
)
NOTHING_CHOSEN = 5      # pytest's exit code
LIMIT_S = 300           # for a test, as upstream
PLUGIN = f"""
import os

import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.own_markers = [mark for mark in item.own_markers if mark.name not in ("flaky", "timeout")]
        item.add_marker(pytest.mark.timeout({LIMIT_S}))

def pytest_generate_tests(metafunc):
    if (times := int(os.environ["SUITE_TIMES"])) > 1:
        metafunc.fixturenames.append("time_number")
        metafunc.parametrize("time_number", range(times))
"""


def main() -> int:
    """Run them; returns the exit code of pytest."""
    options = argparse.ArgumentParser(description="Celery's own integration tests.")
    options.add_argument("sources", type=Path)
    options.add_argument("--nodes", type=int, choices=(1, 3), default=3)
    options.add_argument("--backend", choices=("sockpq", "redis", "rpc"), default="sockpq")
    options.add_argument("--files", nargs="*", default=FILES)
    options.add_argument("--choose", default="", help="the tests, as pytest's -k names them; all by default")
    options.add_argument("--times", type=int, default=1, help="all of them, one after the other")
    options.add_argument("--broker", choices=BROKERS, help="another one than sockpqd")
    options.add_argument("--log", type=Path, default=Path(os.devnull), help="all that pytest says")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)       # what was started is ended
    if shutil.which("redis-server") is None:
        print("redis-server is needed, and is not on PATH", file=sys.stderr)
        return 2
    with (
        tempfile.TemporaryDirectory() as place, BROKERS[chosen.broker or f"sockpqd x{chosen.nodes}"]() as broker,
        redis(synced=False) as beside, chosen.log.open("w") as log,
    ):
        (Path(place) / "harness_plugin.py").write_text(PLUGIN)
        port = urlsplit(beside).port
        backends = {"sockpq": broker.split(";")[0], "redis": beside, "rpc": "rpc"}
        environment = {
            **os.environ, "TEST_BROKER": broker, "TEST_BACKEND": backends[chosen.backend], "REDIS_HOST": HOST,
            "REDIS_PORT": str(port), "WORKER_LOGLEVEL": "INFO", "PYTHONPATH": f"{place}:{chosen.sources.absolute()}",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "SUITE_TIMES": str(chosen.times),
        }
        here = [name for name in chosen.files if (chosen.sources / file_of(name)).exists()]
        together = [name for name in here if name not in ALONE]
        codes = [
            run(chosen.sources, files, chosen.choose, environment, log)
            for files in (together, *([name] for name in here if name in ALONE)) if files
        ]
        return max((code for code in codes if code != NOTHING_CHOSEN), default=NOTHING_CHOSEN)


def file_of(name: str) -> str:
    """Its path below the sources."""
    return f"t/integration/test_{name}.py"


def run(sources: Path, names: Sequence[str], choose: str, environment: Mapping[str, str], log: TextIO) -> int:
    """Run the tests of these files in one process of pytest, and report failures; returns its exit code."""
    running = subprocess.Popen(
        [
            sys.executable, "-m", "pytest", "-p", "harness_plugin", "-p", "no:cacheprovider", "-p",
            "celery.contrib.pytest", "-c", os.devnull, "--rootdir", ".", "-o", "python_classes=test_*", "-q", "-rf",
            "-k", choose, *(file_of(name) for name in names),
        ],
        cwd=sources, env=environment, stdout=subprocess.PIPE, text=True,
    )
    assert running.stdout is not None
    for line in running.stdout:
        print(line, end="", file=log, flush=True)
        if re.match(r"FAILED|ERROR|\d+ (passed|failed|skipped)|=+ .*(passed|failed)", line):
            print(line, end="", flush=True)
    return running.wait()


if __name__ == "__main__":
    sys.exit(main())
