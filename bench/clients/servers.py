"""The servers behind each library, as durable as they can be: started with empty data, and ended with all of it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from devcluster import HOST, Guardian, free_ports
from devcluster.cluster import LocalCluster

NODES = 3
START_S = 90.0
POLL_S = 0.2
RABBIT = Path("/usr/lib/rabbitmq/bin")      # beside the wrappers of Debian, which insist on a user of their own
# A folder with another Debian that has RabbitMQ: /proc, /dev and /tmp are bound into it, its /etc/hosts has localhost.
RABBIT_ROOT = os.environ.get("RABBIT_ROOT", "")
NATS = os.environ.get("NATS_SERVER", "nats-server")
POSTGRESQL_USER = "postgres"        # initdb and the server refuse to run as root
POSTGRESQL_CONNECTIONS = 1100

DURABLE = {
    "sockpq": "three nodes; a put and a DONE are answered when they are on the disks of a majority",
    "greenstalk": "one beanstalkd, which syncs its log before each answer (`-b DIR -f 0`)",
    "redis": "one Redis, which syncs its log before each answer (`appendfsync always`)",
    "pika": "three nodes of RabbitMQ, a quorum queue: a put is confirmed when it is on the disks of a majority; an"
            " acknowledgement is sent and not answered",
    "nats": "three nodes of NATS: a put is answered when a majority has it **in memory**; disks are synced every two"
            " minutes, so a power failure of all loses that much. An acknowledgement is sent and not answered",
}


class ServersError(Exception):
    """A server does not start; the message has the end of its output."""


class PeerServers:
    """Processes that are killed with their data when this process ends, however that happens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._guardian = Guardian(folder)
        self._processes: list[tuple[subprocess.Popen[bytes], Path]] = []

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        """Start a process; its output is kept for error messages."""
        log = self.folder / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True, env={**os.environ, **(environment or {})},
            )
        self._guardian.watch(process.pid)
        self._processes.append((process, log))

    def wait(self, ready: Callable[[], bool], what: str) -> None:
        """Wait until something is ready. Raises ServersError."""
        until = time.monotonic() + START_S
        while not ready():
            ended = [log for process, log in self._processes if process.poll() is not None]
            if ended or time.monotonic() > until:
                tails = (log.read_text("utf-8", "replace")[-1000:] for _, log in self._processes)
                raise ServersError(f"{what}: not ready\n" + "\n".join(tails))
            time.sleep(POLL_S)

    def close(self) -> None:
        for process, _ in self._processes:
            process.terminate()
        for process, _ in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._guardian.close()      # with it what these have started, and the folder


@contextmanager
def servers(library: str, nodes: int = NODES) -> Iterator[str]:
    """Start this library's servers and yield their address. Raises ServersError, or OSError if a program is missing.

    `nodes`: of sockpqd; of the others there are as many as DURABLE says.
    """
    if library == "sockpq":
        with LocalCluster(nodes) as cluster:
            yield ",".join(cluster.servers)
        return
    started = PeerServers(Path(tempfile.mkdtemp(prefix="bench-clients-")))
    try:
        yield _START[library](started)
    finally:
        started.close()


def _beanstalkd(servers: PeerServers) -> str:
    (port,) = free_ports(1)
    log = servers.folder / "wal"
    log.mkdir()
    servers.start("beanstalkd", ["beanstalkd", "-l", HOST, "-p", str(port), "-b", log, "-f", "0"])
    servers.wait(lambda: _listens(port), "beanstalkd")
    return f"{HOST}:{port}"


def _redis(servers: PeerServers) -> str:
    (port,) = free_ports(1)
    servers.start("redis", [
        "redis-server", "--bind", HOST, "--port", str(port), "--dir", servers.folder, "--appendonly", "yes",
        "--appendfsync", "always", "--save", "",
    ])
    servers.wait(lambda: _listens(port), "redis-server")
    return f"{HOST}:{port}"


def _nats_synced(servers: PeerServers) -> str:
    return _nats(servers, ", sync_interval: always")


def _nats(servers: PeerServers, storage: str = "") -> str:
    clients, routes = free_ports(NODES), free_ports(NODES)
    for number, (client, route) in enumerate(zip(clients, routes, strict=True)):
        name = f"n{number + 1}"
        others = ", ".join(f'"nats://{HOST}:{other}"' for other in routes if other != route)
        config = servers.folder / f"{name}.conf"
        config.write_text(
            f"server_name: {name}\nlisten: {HOST}:{client}\n"
            f"jetstream {{ store_dir: {servers.folder / name}{storage} }}\n"
            f"cluster {{ name: bench, listen: {HOST}:{route}, routes: [{others}] }}\n"
        )
        servers.start(name, [NATS, "-c", config])
    servers.wait(lambda: all(map(_listens, clients)) and "JetStream cluster new metadata leader" in "".join(
        log.read_text() for log in servers.folder.glob("*.log")
    ), "nats-server")
    return f"{HOST}:{clients[0]}"


def postgresql_programs() -> Path | None:
    """Return the folder of the newest PostgreSQL, None if there is none. Debian keeps it out of the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def _postgresql(servers: PeerServers) -> str:
    (port,) = free_ports(1)
    programs = postgresql_programs()
    if programs is None:
        raise FileNotFoundError("there is no PostgreSQL in /usr/lib/postgresql")
    data = servers.folder / "database"
    data.mkdir()
    servers.folder.chmod(0o755)
    shutil.chown(data, POSTGRESQL_USER, POSTGRESQL_USER)
    of_user = ["runuser", "-u", POSTGRESQL_USER, "--"]
    subprocess.run([*of_user, programs / "initdb", "-D", data, "-A", "trust", "-U", POSTGRESQL_USER],
                   check=True, capture_output=True)
    settings = {
        "listen_addresses": HOST, "port": port, "unix_socket_directories": "",
        "max_connections": POSTGRESQL_CONNECTIONS, "shared_buffers": "1GB", "max_wal_size": "8GB",
        "synchronous_commit": "on", "fsync": "on",
    }
    with (data / "postgresql.auto.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    servers.start("postgresql", [*of_user, programs / "postgres", "-D", data])
    servers.wait(lambda: _listens(port), "postgresql")
    return f"{HOST}:{port}"


def _rabbitmq(servers: PeerServers) -> str:
    epmd, *ports = free_ports(1 + 2 * NODES)
    names = [f"bench{port}@localhost" for port in ports[:NODES]]
    config = servers.folder / "rabbit.conf"
    config.write_text("log.file.level = warning\nheartbeat = 0\n")
    plugins = servers.folder / "plugins"
    plugins.write_text("[].\n")
    shared = {
        "HOME": str(servers.folder), "ERL_EPMD_PORT": str(epmd), "ERL_EPMD_ADDRESS": HOST, "LC_ALL": "C.UTF-8",
        "RABBITMQ_CONFIG_FILE": str(config.with_suffix("")), "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
        "RABBITMQ_CONF_ENV_FILE": os.devnull,
    }
    # Otherwise a node starts it, as a daemon that outlives them all.
    servers.start("epmd", [*rabbit("epmd"), "-port", str(epmd), "-address", HOST], shared)
    servers.wait(lambda: _listens(epmd), "epmd")
    for name, port, distribution in zip(names, ports[:NODES], ports[NODES:], strict=True):
        data = servers.folder / name
        data.mkdir()
        servers.start(name, rabbit(RABBIT / "rabbitmq-server"), {
            **shared, "RABBITMQ_NODENAME": name, "RABBITMQ_NODE_IP_ADDRESS": HOST, "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution), "RABBITMQ_MNESIA_BASE": str(data), "RABBITMQ_LOG_BASE": str(data),
        })
        servers.wait(partial(_listens, port), name)
        if name != names[0]:        # by hand: a node that looks for others by itself waits long for those not yet up
            for words in (("stop_app",), ("join_cluster", names[0]), ("start_app",)):
                _rabbit_control(shared, name, *words)
    servers.wait(
        lambda: _rabbit_control(shared, names[0], "eval", "length(rabbit_nodes:all_running()).") == str(NODES),
        "rabbitmq-server")
    return f"{HOST}:{ports[0]}"


def rabbit(program: str | Path) -> list[str]:
    """Return the command that starts a program of RabbitMQ's, in its root if it has one."""
    return [*(("chroot", RABBIT_ROOT) if RABBIT_ROOT else ()), str(program)]


def _rabbit_control(environment: Mapping[str, str], node: str, *words: str) -> str:
    """Return what rabbitmqctl prints; nothing if it fails."""
    command = [*rabbit(RABBIT / "rabbitmqctl"), "-n", node, *words]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False).stdout.strip()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


_START: dict[str, Callable[[PeerServers], str]] = {
    "greenstalk": _beanstalkd, "redis": _redis, "nats": _nats, "pika": _rabbitmq, "nats-synced": _nats_synced,
    "postgresql": _postgresql,
}
