"""Celery's own integration tests of its canvas, with kombu's transport for SQS and results in Redis.

    python -m tests.sqs.celery_canvas SOURCES PACKAGES [--choose EXPRESSION] [--log FILE] [--url URL]

SOURCES are Celery's, PACKAGES a folder with kombu[sqs]: `make test-sqs` fetches both. Runs sockpq-sqs before one node,
or uses the service at URL. Takes more than ten minutes: many of the tests wait for what must not come.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devcluster.cluster import LocalCluster
from tests.sqs.service import SECRET, USER, Service

ROOT = Path(__file__).parents[2]
# It gives kombu a property that is not JSON, in which the transport for SQS sends all of them: "Object of type Signal
# is not JSON serializable". Upstream expects it to fail with Redis as the broker.
NOT_JSON = "test_chord_header_id_duplicated_on_rabbitmq_msg_duplication"
CHOSEN = f"not {NOT_JSON}"


def main() -> int:
    """Run them; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tests.sqs.celery_canvas", description="Celery's canvas over SQS.")
    parser.add_argument("sources", type=Path)
    parser.add_argument("packages", type=Path)
    parser.add_argument("--url", help="of a service that runs already, as http://127.0.0.1:9324")
    parser.add_argument("--choose", default=CHOSEN, help="the tests, as pytest's -k names them; by default all but one")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="all that pytest says")
    options = parser.parse_args()
    more = ["--choose", options.choose, "--log", str(options.log.absolute())]
    if options.url:
        failed = _run(options.url, options.sources, options.packages, more)
    else:
        with (
            tempfile.TemporaryDirectory(prefix="sqs-") as name, LocalCluster(1) as cluster,
            Service(cluster.servers, Path(name)) as service,
        ):
            failed = _run(service.url, options.sources, options.packages, more)
    return 1 if failed else 0


def canvas(service: Service, sources: Path, packages: Path) -> list[str]:
    """Run them with this service; returns those that fail."""
    return _run(service.url, sources, packages, ["--choose", CHOSEN])


def _run(url: str, sources: Path, packages: Path, more: Sequence[str]) -> list[str]:
    chosen = more[more.index("--choose") + 1]
    print(f"== Celery's tests of its canvas: {chosen}", flush=True)
    done = subprocess.run(
        [
            sys.executable, "-m", "tests.kombu.celery_suite", str(sources.absolute()), "--files", "canvas", "--backend",
            "redis", "--url", f"sqs://{USER}:{SECRET}@{url.removeprefix('http://')}", *more,
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(packages.absolute()), str(ROOT)))}, cwd=ROOT,
        stdout=subprocess.PIPE, text=True, check=False,
    )
    print(done.stdout, end="", flush=True)
    failed = re.findall(r"^(?:FAILED|ERROR) \S*::(\S+)", done.stdout, re.MULTILINE)
    return failed if " passed" in done.stdout else [*failed, "Celery's canvas"]


if __name__ == "__main__":
    sys.exit(main())
