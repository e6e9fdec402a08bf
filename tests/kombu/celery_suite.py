"""Celery's own integration tests on this transport, from its sources on the package index: `make test-celery`.

    python -m tests.kombu.celery_suite SOURCES [--nodes 3] [--backend sockpq|redis|rpc] [--files tasks canvas ..]
        [--choose EXPRESSION] [--times 1] [--broker "sockpqd x3" | --url URL] [--log FILE]

Left out are the files that need docker, RabbitMQ's management interface or other databases, or bring a broker in
memory. Some tests use a Redis whatever the broker is: redis-server must be there. Prints what failed, and `N passed,
N failed, N skipped`. Other brokers, to compare with, are those of bench.celery, or one that runs already, by its URL.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
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
SQS = "sqs:"            # how URLs of brokers with its protocol begin
SETTINGS = {            # of the application, by what the URL of the broker begins with: those of docs/SQS.md
    SQS: {"broker_transport_options": {"is_secure": False, "region": "us-east-1", "polling_interval": 0.05}},
}
PLUGIN = f"""
import os

import pytest
from celery.app.control import Inspect

# There is no remote control over SQS. Some tests begin with a ping, which is all that they need it for, and all ask at
# their end whether the worker is idle: without an answer that takes 10 s.
if os.environ["TEST_BROKER"].startswith("{SQS}"):
    Inspect._request = lambda self, command, **options: {{"worker": {{"ok": "pong"}}}} if command == "ping" else {{}}

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
    brokers = options.add_mutually_exclusive_group()
    brokers.add_argument("--broker", choices=BROKERS, help="another one than sockpqd")
    brokers.add_argument("--url", help="of a broker that runs already")
    options.add_argument("--log", type=Path, default=Path(os.devnull), help="all that pytest says")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)       # what was started is ended
    if shutil.which("redis-server") is None:
        print("redis-server is needed, and is not on PATH", file=sys.stderr)
        return 2
    with (
        tempfile.TemporaryDirectory() as place,
        nullcontext(chosen.url) if chosen.url else BROKERS[chosen.broker or f"sockpqd x{chosen.nodes}"]() as broker,
        redis(synced=False) as beside, chosen.log.open("w") as log,
    ):
        (Path(place) / "harness_plugin.py").write_text(PLUGIN)
        settings = SETTINGS.get(f"{urlsplit(broker).scheme}:", {})
        (Path(place) / "integration-tests-config.json").write_text(json.dumps(settings))      # read by their conftest
        port = urlsplit(beside).port
        backends = {"sockpq": broker.split(";")[0], "redis": beside, "rpc": "rpc"}
        environment = {
            **os.environ, "TEST_BROKER": broker, "TEST_BACKEND": backends[chosen.backend], "REDIS_HOST": HOST,
            "REDIS_PORT": str(port), "WORKER_LOGLEVEL": "INFO",
            "PYTHONPATH": os.pathsep.join((place, str(chosen.sources.absolute()), os.environ.get("PYTHONPATH", ""))),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "SUITE_TIMES": str(chosen.times),
        }
        here = [name for name in chosen.files if (chosen.sources / file_of(name)).exists()]
        together = [name for name in here if name not in ALONE]
        codes = [
            run(chosen.sources, Path(place), files, chosen.choose, environment, log)
            for files in (together, *([name] for name in here if name in ALONE)) if files
        ]
        return max((code for code in codes if code != NOTHING_CHOSEN), default=NOTHING_CHOSEN)


def file_of(name: str) -> str:
    """Its path below the sources."""
    return f"t/integration/test_{name}.py"


def run(
    sources: Path, root: Path, names: Sequence[str], choose: str, environment: Mapping[str, str], log: TextIO,
) -> int:
    """Run the tests of these files in one process of pytest, and report failures; returns its exit code.

    `root`: where they look for settings of the application.
    """
    running = subprocess.Popen(
        [
            sys.executable, "-m", "pytest", "-p", "harness_plugin", "-p", "no:cacheprovider", "-p",
            "celery.contrib.pytest", "-c", os.devnull, "--rootdir", str(root), "-o", "python_classes=test_*", "-q",
            "-rf", "-k", choose, *(file_of(name) for name in names),
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
