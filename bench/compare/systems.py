"""The systems that are compared: nodes of each on this machine, started empty and ended with all their data."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sockpq import survey

from bench.clients.servers import NATS, NODES, RABBIT, RABBIT_ROOT, postgresql_programs, rabbit, servers
from bench.compare.generator import Generator
from devcluster.cluster import ASK_S, serves

Found = TypeVar("Found")

READY_S = 60.0
POLL_S = 0.2
NATS_STREAM = {
    "name": "JOBS", "subjects": ["jobs.q"], "retention": "workqueue", "storage": "file", "num_replicas": 3,
    "discard": "old", "max_msgs": -1, "max_bytes": -1, "max_age": 0, "max_consumers": -1, "max_msg_size": -1,
}
NATS_CONSUMER = {
    "stream_name": "JOBS", "config": {
        "durable_name": "W", "ack_policy": "explicit", "ack_wait": 60_000_000_000, "max_ack_pending": 100_000,
        "max_waiting": 4096, "deliver_policy": "all", "replay_policy": "instant", "max_deliver": -1,
    },
}


class ComparedSystem(NamedTuple):
    """One system. `library`: bench.clients starts its servers; `protocol`: its name for the generator.

    `durable`: where an acknowledged job is stored; `version()`: the program's version, for the tables.
    """

    title: str
    library: str
    protocol: str
    durable: str
    installed: Callable[[], bool]
    version: Callable[[], str]
    prepare: Callable[[Path, str], list[str]]       # generator, address -> hosts, the leader first
    nodes: int = NODES


@contextmanager
def running(name: str, program: Path, seconds: float, warm_s: float) -> Iterator[Generator]:
    """A generator for a running system. Raises ServersError, GeneratorError and OSError."""
    system = SYSTEMS[name]
    with servers(system.library, system.nodes) as address:
        yield Generator(program, system.protocol, system.prepare(program, address), seconds, warm_s)


def _output(*command: str | Path) -> str:
    """Return the version number in a command's output: its last word."""
    printed = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout
    return printed.split()[-1].removeprefix("v")


def _nothing(program: Path, address: str) -> list[str]:
    return [address]


def _postgresql(program: Path, address: str) -> list[str]:
    Generator(program, "postgresql", [address], 0).call("admin", ("--arg", "declare"))
    return [address]


def _our_version() -> str:
    return version("sockpqd")


def _sockpqd(program: Path, address: str) -> list[str]:
    hosts = address.split(",")
    leader = _await(
        lambda: next((view.server for view in survey(hosts, ASK_S) if serves(view)), None), "a leader of sockpqd")
    return [leader, *(host for host in hosts if host != leader)]


def _rabbitmq(program: Path, address: str) -> list[str]:
    Generator(program, "rabbit", [address], 0).call("admin", ("--arg", "declare"))
    return [address]


def _nats(program: Path, address: str) -> list[str]:
    _await(lambda: _ask(address, "STREAM.CREATE.JOBS", NATS_STREAM), "a stream of NATS")
    _await(lambda: _ask(address, "CONSUMER.DURABLE.CREATE.JOBS.W", NATS_CONSUMER), "a consumer of NATS")
    return [address]


def _ask(address: str, what: str, message: object) -> dict[str, Any] | None:
    """Return the answer of JetStream's interface; None if it is an error or missing."""
    host, _, port = address.rpartition(":")
    body = json.dumps(message).encode()
    try:
        with socket.create_connection((host, int(port)), 5) as connection, connection.makefile("rb") as answers:
            answers.readline()
            connection.sendall(b'CONNECT {"verbose":false}\r\nSUB reply 1\r\nPUB $JS.API.%s reply %d\r\n%s\r\n' % (
                what.encode(), len(body), body))
            while line := answers.readline():
                if line.startswith(b"PING"):
                    connection.sendall(b"PONG\r\n")
                elif line.startswith(b"MSG"):
                    answer: dict[str, Any] = json.loads(answers.read(int(line.split()[-1])))
                    return None if "error" in answer else answer
    except OSError:
        pass
    return None


def _await(ready: Callable[[], Found | None], what: str) -> Found:
    until = time.monotonic() + READY_S
    while (found := ready()) is None:
        if time.monotonic() > until:
            raise OSError(f"{what} is not there within {READY_S:.0f} s")
        time.sleep(POLL_S)
    return found


def _rabbit_is_there() -> bool:
    return Path(RABBIT_ROOT or "/", *RABBIT.parts[1:], "rabbitmq-server").exists()


def _nats_is_there() -> bool:
    return shutil.which(NATS) is not None


def _nats_version() -> str:
    return _output(NATS, "--version")


def _postgresql_version() -> str:
    programs = postgresql_programs()
    assert programs is not None
    return _output(programs / "postgres", "--version").rstrip(")")


def _redis_version() -> str:
    printed = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True).stdout
    return next(word for word in printed.split() if word.startswith("v=")).removeprefix("v=")


SYSTEMS = {
    "sockpq": ComparedSystem(
        "sockpqd", "sockpq", "sockpq", "on the disks of a majority", lambda: True, _our_version, _sockpqd),
    "rabbit": ComparedSystem(
        "RabbitMQ", "pika", "rabbit", "on the disks of a majority (quorum queue, publisher confirms)",
        _rabbit_is_there, lambda: _output(*rabbit(RABBIT / "rabbitmqctl"), "version"), _rabbitmq),
    "nats": ComparedSystem(
        "NATS", "nats", "nats", "in the memory of a majority (R3, disks are synced every two minutes)",
        _nats_is_there, _nats_version, _nats),
    "nats-synced": ComparedSystem(
        "NATS, synced", "nats-synced", "nats", "on the disks of a majority (R3, sync_interval: always)",
        _nats_is_there, _nats_version, _nats),
    "sockpq1": ComparedSystem(
        "sockpqd, one node", "sockpq", "sockpq", "on the one disk", lambda: True, _our_version, _sockpqd, 1),
    "redis": ComparedSystem(
        "Redis", "redis", "redis", "on the one disk (appendfsync always)",
        lambda: shutil.which("redis-server") is not None, _redis_version, _nothing, 1),
    "postgresql": ComparedSystem(
        "PostgreSQL", "postgresql", "postgresql", "on the one disk (SKIP LOCKED, synchronous_commit on)",
        lambda: postgresql_programs() is not None, _postgresql_version, _postgresql, 1),
}
