"""The cluster that a benchmark measures: a running one, or one started for it, whose processes can be examined."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click
from rich.console import Console
from sockpq import BadArguments, Client, SockpqError, survey

from devcluster.cluster import LocalCluster, say, serves
from devcluster.node import NodeError, Settings

ASK_S = 2.0
LEADER_S = 5.0
AGAIN_S = 0.1           # between two questions for it: refused connections take no time at all
PURGE_S = 600.0         # enough for millions of jobs
SETTLE_S = 120.0
QUIET_S = 0.5
QUIET_SHARE = 0.5       # of one CPU, for all nodes together: idle ones use less
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")

SERVERS = click.option("--servers", envvar="SOCKPQ_SERVERS",
                       help="HOST:PORT,... of a running cluster, whose data are not spared; without, one is started.")
NODES = click.option("--nodes", default=3, show_default=True, type=click.IntRange(1, 9), help="Of the one started.")
RECORD = click.option("--record", "record_to", type=click.Path(dir_okay=False, path_type=Path),
                      help="Append the figures to this file, as a line of JSON.")

SIZE = click.option("--size", default=100, show_default=True, type=click.IntRange(0, 8 << 20), help="Bytes of a job.")

CONNECTIONS = click.option("--connections", default=100, show_default=True, type=click.IntRange(1, 10_000))

HOT_BYTES = click.option("--hot-bytes", default=0, show_default=True, type=click.IntRange(0),
                         help="Jobs beyond it are on the disk (limits.hot_bytes of the nodes started); 0: none.")


class Target:
    """The cluster under test; `cluster` is None if it was already running."""

    def __init__(self, servers: str, cluster: LocalCluster | None) -> None:
        self.servers = servers
        self.cluster = cluster

    @property
    def kind(self) -> str:
        """A description of the cluster for the record."""
        if self.cluster is None:
            return "running before"
        nodes = len(self.cluster.names)
        return "1 local node" if nodes == 1 else f"{nodes} local nodes"

    def leader(self) -> str:
        """The address ("host:port") of the server that serves. Raises NodeError."""
        until = time.monotonic() + LEADER_S          # under load a leader may not be sure of itself for a moment
        while time.monotonic() < until:
            for view in survey(self.servers, ASK_S):
                if serves(view):
                    return view.server
            time.sleep(AGAIN_S)
        raise NodeError(f"none of {self.servers} serves")

    def version(self) -> str | None:
        """The version of sockpqd, None if no server reports it."""
        versions = (node.version for view in survey(self.servers, ASK_S) for node in view.nodes)
        return next((version for version in versions if version), None)

    def purge(self, queues: Sequence[str]) -> None:
        """Remove the jobs that wait in these queues."""
        leader = self.leader()
        for queue in queues:
            answer = say(leader, f"QUEUE PURGE {queue} ALL", PURGE_S)
            if not answer or not answer.startswith(("200", "404")):
                raise NodeError(f"{leader} does not purge {queue}: {answer}")

    def leave(self, queues: Sequence[str]) -> None:
        """Remove the benchmark's jobs from a cluster that continues to run."""
        if self.cluster is None:
            self.purge(queues)

    def waiting(self, queues: Sequence[str]) -> int:
        """The number of jobs waiting in these queues."""
        with Client(self.servers) as client:
            return sum(client.total(queue).jobs for queue in queues)

    def cpu_us(self) -> dict[int, int]:
        """The CPU time of each local node's process so far, in microseconds, by process id."""
        names = self.cluster.names if self.cluster else []
        pids = [pid for name in names if self.cluster and (pid := self.cluster.pid(name))]
        return {pid: cpu_us(pid) for pid in pids}

    def cpu_us_since(self, before: dict[int, int]) -> int | None:
        """Return the CPU time used by all nodes together since `before`; None if unknown."""
        now = self.cpu_us()
        return sum(now.values()) - sum(before.values()) if now and now.keys() == before.keys() else None

    def settle(self) -> None:
        """Wait until local followers have caught up and no node is busy, for example with a snapshot."""
        if not self.cluster:
            return
        self.cluster.wait_until_level(SETTLE_S)
        until = time.monotonic() + SETTLE_S
        busy = True
        while busy and time.monotonic() < until:
            before = self.cpu_us()
            time.sleep(QUIET_S)
            used_us = self.cpu_us_since(before)
            busy = used_us is None or used_us > QUIET_SHARE * QUIET_S * 1e6


def memory_bytes(pid: int) -> int:
    """The resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


def cpu_us(pid: int) -> int:
    """Return the CPU time of a process so far, with the kernel's and with its children's, which write snapshots."""
    stat, children = Path(f"/proc/{pid}/stat"), Path(f"/proc/{pid}/task/{pid}/children")
    used_us = sum(int(field) for field in stat.read_text().rpartition(")")[2].split()[11:15]) * TICK_US
    for child in children.read_text().split():
        with suppress(FileNotFoundError, ProcessLookupError):     # the child has ended
            used_us += cpu_us(int(child))
    return used_us


@contextmanager
def target(
    servers: str | None, nodes: int, console: Console, config: Settings | None = None, directory: Path | None = None,
) -> Iterator[Target]:
    """The cluster to measure; an error in it is printed as one sentence and ends the program.

    `config`: of the nodes that are started, if they are not to have the defaults; `directory`: where they have their
    data, if not where the system keeps temporary files.
    """
    _, files_max = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))      # each connection is a file
    try:
        if servers:
            yield Target(servers, None)
        else:
            with LocalCluster(nodes, config, directory) as cluster:
                yield Target(",".join(cluster.servers), cluster)
    except BadArguments as error:
        raise click.UsageError(str(error)) from None
    except (NodeError, SockpqError, OSError) as error:
        console.print(str(error) or type(error).__name__, style="red", markup=False)
        sys.exit(1)
