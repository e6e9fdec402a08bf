"""Runs every check of the service against real clusters: `make test-sqs`.

The conformance checks with both protocols and verified signatures, on one node, and on three whose leader is killed
again and again, and once without users; kombu's tests of SQS, and Celery's of its canvas; then FIFO queues while
leaders and front ends are killed. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster.cluster import LocalCluster
from tests.sqs.celery_canvas import canvas
from tests.sqs.fifo_once import FifoLoad
from tests.sqs.service import SECRET, USER, Service

ROOT = Path(__file__).parents[2]
KILL_S = 6.0
SOURCES = sorted((ROOT / ".tools").glob("kombu-*/t"))
OF_GOAWS = "test_ack_invalid_receipt_with_backoff"      # expects the 404 of GoAws where SQS answers 200
FAULTS = 4


def main(arguments: list[str]) -> int:
    """Run the parts and print their results; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tests.sqs.campaign", description="Tests sockpq-sqs on real clusters.")
    parser.add_argument("--messages", type=int, default=3000, help="of each of four groups, for each kind of fault")
    parser.add_argument("--slow", action="store_true", help="with the checks that take minutes")
    parser.add_argument("--kombu", type=Path, help="folder with kombu[sqs]; its tests are those of make kombu-tests")
    parser.add_argument("--celery", type=Path, help="sources of Celery; needs --kombu and redis-server")
    parser.add_argument("--query", type=Path, help="folder with a botocore that speaks the Query protocol")
    options = parser.parse_args(arguments)
    protocols = [None, options.query] if options.query else [None]
    failed = []
    with tempfile.TemporaryDirectory(prefix="sqs-") as name:
        folder = Path(name)
        users = folder / "users.toml"
        users.write_text(f'[users.{USER}]\nsecret = "{SECRET}"\n', "utf-8")
        users.chmod(0o600)
        settings = folder / "sqs.toml"
        settings.write_text("[users]\nin_cluster = false\n", "utf-8")
        with LocalCluster(1) as cluster, Service(cluster.servers, folder) as service:
            failed += _conformance(service, "one node, no users, JSON", None)
            if options.kombu and SOURCES:
                failed += _kombu(service, options.kombu)
            if options.kombu and options.celery:
                failed += canvas(service, options.celery, options.kombu)
        signed = ["--config", str(settings), "--users", str(users)]
        checks = ["--auth", "--slow"] if options.slow else ["--auth"]
        with LocalCluster(1) as cluster, Service(cluster.servers, folder, *signed) as service:
            for old in protocols:
                failed += _conformance(service, f"one node, {_called(old)}", old, *checks)
        with LocalCluster(3) as cluster, Service(cluster.servers, folder, *signed) as service:
            with _leaders_killed(cluster):
                for old in protocols:
                    what = f"three nodes, the leader killed every {KILL_S:.0f} s, {_called(old)}"
                    failed += _conformance(service, what, old, "--untimed", *checks)
            failed += _fifo(service, cluster, options.messages)
    print("failed: " + ", ".join(failed) if failed else "all passed")
    return 1 if failed else 0


def _called(old: Path | None) -> str:
    return "Query" if old else "JSON"


def _conformance(service: Service, what: str, old: Path | None, *more: str) -> list[str]:
    """Run the checks in a process of their own, for their botocore; returns the failure, if any."""
    print(f"== conformance: {what}", flush=True)
    path = [str(old), str(ROOT)] if old else [str(ROOT)]
    without = ["--without", "json"] if old else []
    done = subprocess.run(
        [sys.executable, "-m", "tests.sqs.conformance", "--endpoint", service.url, *without, *more],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)}, check=False,
    )
    return [what] if done.returncode else []


def _kombu(service: Service, packages: Path) -> list[str]:
    """Run kombu's own tests of its transport for SQS; returns those that fail and should not."""
    print("== kombu's tests of SQS", flush=True)
    sources = SOURCES[-1].parent
    environment = {
        **os.environ, "PYTHONPATH": str(packages.absolute()), "SQS_HOST": "127.0.0.1", "SQS_PORT": str(service.port),
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": USER,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(sources), "-c", os.devnull, "-q",
            "-rf", "-W", "ignore", "-o", "python_classes=test_*", "--timeout=300", "-k", "not fanout",
            "t/integration/test_sqs.py",
        ],
        env=environment, cwd=sources, stdout=subprocess.PIPE, text=True, check=False,
    )
    print(done.stdout.splitlines()[-1])
    found = re.findall(r"^(?:FAILED|ERROR) \S*::(\S+)", done.stdout, re.MULTILINE)
    wrong = [name for name in found if not name.startswith(OF_GOAWS)]
    return wrong if " passed" in done.stdout else [*wrong, "kombu's tests"]


@contextmanager
def _leaders_killed(cluster: LocalCluster) -> Iterator[None]:
    """Kill the leader every few seconds, and start it again."""
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(KILL_S):
            _kill_leader(cluster)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _kill_leader(cluster: LocalCluster) -> None:
    name = cluster.wait_for_leader()
    cluster.kill(name)
    cluster.restart(name)


def _fifo(service: Service, cluster: LocalCluster, messages: int) -> list[str]:
    """Send and receive while leaders, then front ends, are killed; returns the failures."""
    def kill_front_end() -> None:
        service.kill()
        service.start()

    failed = []
    for what, fault in (("leaders", lambda: _kill_leader(cluster)), ("front ends", kill_front_end)):
        load = FifoLoad(service, messages)
        outcome = load.run(fault, FAULTS)
        print(f"== FIFO while {outcome.faults} {what} are killed: {outcome.received} messages in order, "
              f"{outcome.again} delivered twice, the slowest send took {outcome.slowest_send_s:.2f} s", flush=True)
        if outcome.wrong or outcome.received != messages * len("abcd"):
            failed.append(f"FIFO while {what} are killed: {outcome.wrong[:5]}")
        service.client().delete_queue(QueueUrl=f"{service.url}/000000000000/load.fifo")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
