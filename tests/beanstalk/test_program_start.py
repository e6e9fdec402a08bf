"""The output of `sockpq-beanstalkd` at its start."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devcluster.cluster import LocalCluster
from devcluster.ports import HOST, free_ports
from tests.beanstalk.helpers.client import BeanstalkClient

PROGRAM = Path(sys.executable).parent / "sockpq-beanstalkd"


@contextmanager
def said(server: str) -> Iterator[Iterator[str]]:
    """Run the program at a free port; yields the lines that it writes."""
    command = [PROGRAM, "--listen", f"{HOST}:0", "--servers", server]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr
        try:
            yield iter(program.stderr)
        finally:
            program.kill()


def test_it_says_which_free_port_it_has_and_which_cluster_answers() -> None:
    with LocalCluster(1) as cluster, said(cluster.servers[0]) as lines:
        listening = re.fullmatch(r"INFO listening on (\S+:[1-9]\d*)\n", next(lines))
        assert listening
        BeanstalkClient(listening[1]).close()
        assert re.fullmatch(r"INFO cluster [0-9a-f]{16} answers\n", next(lines))


def test_it_says_that_no_server_answers() -> None:
    with said(f"{HOST}:{free_ports(1)[0]}") as lines:
        assert next(lines).startswith("INFO listening on ")
        told = next(lines)
        assert told.startswith("WARNING the cluster does not answer: clients wait until it does (")
        assert "nobody listens there" in told


@pytest.mark.parametrize(("typed", "suggested"), [("--bogus", ""), ("--serves", " Did you mean '--servers'?")])
def test_only_options_that_are_near_are_suggested(typed: str, suggested: str) -> None:
    ended = subprocess.run([PROGRAM, typed, "x"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.endswith(f"No such option '{typed}'.{suggested}\n")


@pytest.mark.parametrize("address", ["11300", "x", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536"])
def test_a_port_alone_is_refused_as_it_would_be_open_to_everybody(address: str) -> None:
    ended = subprocess.run([PROGRAM, "--listen", address], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.endswith("--listen needs HOST:PORT, or :PORT for all addresses of this machine\n")
