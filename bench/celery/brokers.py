"""Temporary brokers on loopback: each is a context whose value is the URL that Celery is given."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

from devcluster import HOST, free_ports
from devcluster.cluster import LocalCluster

RABBITMQ = Path("/usr/lib/rabbitmq/bin")        # Debian's place for the programs that any user may run
BATCHED = "publish_batch"                       # how the name of a row ends that publishes by it
START_S = 120.0
STOP_S = 20.0


class BrokerError(Exception):
    """The broker cannot be started; the message has the end of its log."""


@contextmanager
def sockpqd(nodes: int) -> Iterator[str]:
    """A sockpqd cluster with its transport."""
    with LocalCluster(nodes) as cluster:
        cluster.wait_for_leader()
        yield ";".join(f"sockpq://{server}" for server in cluster.servers)


@contextmanager
def redis(synced: bool) -> Iterator[str]:
    """Start Redis. `synced`: each write is on the disk before it is answered; otherwise nothing is written to disk."""
    (port,) = free_ports(1)
    durable = ("--appendonly", "yes", "--appendfsync", "always") if synced else ("--appendonly", "no")
    with tempfile.TemporaryDirectory() as folder:
        words = ("redis-server", "--port", str(port), "--bind", HOST, "--dir", folder, "--save", "", *durable)
        with _process(words, Path(folder) / "log"):
            _wait(lambda: _listens(port), Path(folder) / "log")
            yield f"redis://{HOST}:{port}/0"


@contextmanager
def rabbitmq(nodes: int) -> Iterator[str]:
    """A cluster whose nodes find each other by an epmd of their own."""
    epmd, *ports = free_ports(1 + 2 * nodes)
    names = [f"bench{number}@localhost" for number in range(nodes)]
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        _write_rabbitmq_files(folder, names)
        environments = [
            _rabbitmq_environment(folder, name, ports[2 * at], ports[2 * at + 1], epmd) for at, name in enumerate(names)
        ]
        stack.enter_context(_process(("epmd", "-port", str(epmd), "-address", HOST), folder / "epmd.log"))
        for name, environment in zip(names, environments, strict=True):
            stack.enter_context(_process((str(RABBITMQ / "rabbitmq-server"),), folder / f"{name}.log", environment))
        for at, (name, environment) in enumerate(zip(names, environments, strict=True)):
            _wait(partial(_listens, ports[2 * at]), folder / f"{name}.log")
            subprocess.run(
                [RABBITMQ / "rabbitmqctl", "-n", name, "await_startup"], env=environment, check=True, timeout=START_S,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        yield ";".join(f"amqp://guest:guest@{HOST}:{ports[2 * at]}//" for at in range(nodes))


BROKERS: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "sockpqd x1": partial(sockpqd, 1),
    "sockpqd x3": partial(sockpqd, 3),
    f"sockpqd x3, {BATCHED}": partial(sockpqd, 3),
    "Redis, no AOF": partial(redis, synced=False),
    "Redis, AOF always": partial(redis, synced=True),
    "RabbitMQ x1, quorum queue": partial(rabbitmq, 1),
    "RabbitMQ x3, quorum queue": partial(rabbitmq, 3),
}


def _write_rabbitmq_files(folder: Path, names: list[str]) -> None:
    lines = ["log.file.level = warning"]
    if len(names) > 1:
        lines.append("cluster_formation.peer_discovery_backend = classic_config")
        lines += [f"cluster_formation.classic_config.nodes.{at} = {name}" for at, name in enumerate(names, 1)]
    (folder / "rabbit.conf").write_text("\n".join(lines) + "\n")
    (folder / "plugins").write_text("[].\n")
    cookie = folder / ".erlang.cookie"
    cookie.write_text("bench")
    cookie.chmod(0o400)


def _rabbitmq_environment(folder: Path, name: str, port: int, peers: int, epmd: int) -> dict[str, str]:
    data = str(folder / name)
    return {
        **os.environ, "HOME": str(folder), "RABBITMQ_NODENAME": name, "RABBITMQ_NODE_IP_ADDRESS": HOST,
        "RABBITMQ_NODE_PORT": str(port), "RABBITMQ_DIST_PORT": str(peers), "RABBITMQ_MNESIA_BASE": data,
        "RABBITMQ_LOG_BASE": data, "RABBITMQ_CONFIG_FILE": str(folder / "rabbit"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"), "RABBITMQ_CONF_ENV_FILE": os.devnull,
        "ERL_EPMD_PORT": str(epmd), "ERL_EPMD_ADDRESS": HOST, "LC_ALL": "C.UTF-8",
        # Schedulers that spin while there is nothing to do would be paid by the brokers that are measured beside.
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
            "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none",
    }


@contextmanager
def _process(words: tuple[str, ...], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[None]:
    with log.open("wb") as out:
        started = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, start_new_session=True,
        )
    try:
        yield
    finally:
        _end(started)


def _end(started: subprocess.Popen[bytes]) -> None:
    """End the process and all processes that it has started: its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(started.pid, number)
            started.wait(STOP_S)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    started.wait()


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex((HOST, port)) == 0


def _wait(reached: Callable[[], bool], log: Path) -> None:
    until = time.monotonic() + START_S
    while not reached():
        if time.monotonic() > until:
            raise BrokerError(log.read_text()[-2000:])
        time.sleep(0.1)
