"""Clients use up all file descriptors of a node: the node goes on, and so does its journal."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import devcluster.node
from devcluster.cluster import LocalCluster
from tests.system.load import Producer, check, drain
from tests.system.test_kill import wait_for_progress
from tests.wire import Wire

FILES_MAX = 300
IDLE = 350
BODY = os.urandom(500_000)
SEGMENTS = 5                # so many of 32 MiB are needed for what is put


@pytest.fixture(autouse=True)
def _few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all nodes that the test starts open only a few files."""
    program = tmp_path / "sockpqd"
    program.write_text(f'#!/bin/sh\nulimit -n {FILES_MAX}\nexec "{Path(sys.executable).parent / "sockpqd"}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(devcluster.node, "program", lambda: program)


@contextlib.contextmanager
def idle_connections(address: str) -> Iterator[None]:
    """Open as many idle connections as possible, up to IDLE."""
    host, port = address.rsplit(":", 1)
    with contextlib.ExitStack() as stack:
        for _ in range(IDLE):
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_connection((host, int(port)), 1.0))
        yield


def test_a_leader_without_descriptors_goes_on_with_its_journal() -> None:
    with LocalCluster(3) as cluster:
        leader = cluster.wait_for_leader()
        producers = [Producer(cluster.servers, f"p{number}") for number in range(2)]
        for producer in producers:
            producer.start()
        wait_for_progress(producers)
        with Wire(cluster.direct(leader), 30.0) as large, idle_connections(cluster.direct(leader)):
            for number in range(SEGMENTS * (32 << 20) // len(BODY)):
                answer = large.say(f"PUT large 0 {len(BODY)}", BODY)
                assert answer == "200 OK", (number, cluster.logs(leader)[-2000:])
            assert cluster.leader() in (leader, None)       # None: it has no descriptor for who asks
        segments = (cluster.data_dir(leader) / "journal").glob("journal-*")
        assert max(segments).name > f"journal-{SEGMENTS:08d}"
        wait_for_progress(producers)
        for producer in producers:
            producer.finish()
        for name in cluster.names:
            assert cluster.running(name)
            assert "stopped itself" not in cluster.logs(name)
        check(producers, drain(cluster))
