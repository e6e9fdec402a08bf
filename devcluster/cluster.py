"""A cluster of real nodes on loopback, for the demo, the benchmarks and the system tests.

    with LocalCluster(nodes=3) as cluster:
        client = sockpq.Client(cluster.servers)
        cluster.kill(cluster.wait_for_leader())

When the block ends every process is stopped and every file removed, even if this process is killed.
"""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sockpq import ServerView, survey

from devcluster.guardian import Guardian
from devcluster.node import LocalNode, NodeError, Settings, write_config
from devcluster.ports import HOST, free_ports

if TYPE_CHECKING:
    from devcluster.authority import Authority

START_ATTEMPTS = 5
POLL_S = 0.03       # each look at who leads costs the nodes what it asks them
ASK_S = 2.0
STOP_S = 30.0


class LocalCluster:
    """`nodes` real sockpqd processes named n1, n2, .. with their data below a temporary directory."""

    def __init__(
        self, nodes: int = 3, config: Settings | None = None, directory: Path | None = None, ready_s: float = 60.0,
        authority: Authority | None = None,
    ) -> None:
        """Make a cluster that is not started.

        `config`: further configuration of every node, e.g. {"raft": {"failover_grace_ms": 0}}; `directory`: where the
        temporary directory is created (None: the system's default); `ready_s`: seconds a start may take; `authority`:
        signs certificates for all nodes, which then use TLS.
        """
        self.names = [f"n{number + 1}" for number in range(nodes)]
        self._config: Settings = config or {}
        self._directory = directory
        self._ready_s = ready_s
        self._authority = authority
        self._context = None if authority is None else ssl.create_default_context(cafile=authority.ca)
        self._nodes: dict[str, LocalNode] = {}
        self._listens: dict[str, dict[str, str]] = {}       # for each node, the address of each kind of port
        self._guardian: Guardian | None = None
        self.folder = Path()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # the whole

    def start(self) -> None:
        """Start all nodes and wait until one serves; raises NodeError."""
        self.folder = Path(tempfile.mkdtemp(prefix="sockpqd-", dir=self._directory))
        self._guardian = Guardian(self.folder)
        try:
            for attempt in range(START_ATTEMPTS):
                self._prepare()
                for node in self._nodes.values():
                    node.start()
                try:
                    self._wait_for_leader(self._ready_s, forgiving=False)
                    return
                except NodeError:
                    taken = any(node.shut_out for node in self._nodes.values())
                    if not taken or attempt == START_ATTEMPTS - 1:
                        raise
                    self._end_all()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> dict[str, int | None]:
        """Stop all nodes, by force after STOP_S, and remove all files; returns the exit codes."""
        if self._guardian is None:
            return {}
        for node in self._nodes.values():
            node.signal(signal.SIGCONT)
            node.signal(signal.SIGTERM)
        until = time.monotonic() + STOP_S
        codes = {name: node.wait(max(until - time.monotonic(), 0.1)) for name, node in self._nodes.items()}
        self._end_all()
        self._guardian.close()
        self._guardian = None
        return codes

    @property
    def servers(self) -> list[str]:
        """The addresses ("host:port") that clients dial, one for each node."""
        return [self.server(name) for name in self._nodes]

    def server(self, name: str) -> str:
        """The address that clients dial to reach this node."""
        return self.client_address(name, self._nodes[name].client)

    def direct(self, name: str) -> str:
        """The address this node listens on for clients, without any proxy."""
        return self._nodes[name].client

    def leader(self) -> str | None:
        """The node that serves now, or None."""
        asked = {node.client: node.name for node in self._nodes.values() if node.running and not node.paused}
        views = [view for view in survey(asked, ASK_S, tls=self._context) if view.error is None] if asked else []
        return next((asked[view.server] for view in views if serves(view)), None)

    def wait_for_leader(self, timeout: float | None = None) -> str:
        """Wait for a node that serves and return it.

        Raises NodeError after `timeout`, or if a node has ended that was neither stopped nor killed.
        """
        return self._wait_for_leader(self._ready_s if timeout is None else timeout, forgiving=True)

    def wait_until(self, condition: Callable[[list[ServerView]], bool], what: str, timeout: float = 60.0) -> None:
        """Wait until `condition` holds for the views of all nodes. Raises NodeError after `timeout` seconds.

        A node that ended because its port or data was still in use is started again.
        """
        until = time.monotonic() + timeout
        while not condition(views := survey([node.client for node in self._nodes.values()], ASK_S, tls=self._context)):
            if time.monotonic() > until:
                raise self._complaint(f"after {timeout:g} s still not: {what}", views)
            self._start_shut_out()
            time.sleep(POLL_S)

    def wait_until_level(self, timeout: float = 60.0, lag: int = 0) -> None:
        """Wait until all nodes are connected to each other and none is more than `lag` entries behind.

        Then all have applied what was applied on one of them. Under load on a busy machine there may be no moment
        without any lag. Raises NodeError.
        """
        reached = 0

        def level(views: list[ServerView]) -> bool:
            nonlocal reached
            reached = max(filter(None, map(_applied, views)), default=0)
            return any(_level(view, lag) for view in views) and all(_whole(view) for view in views)
        self.wait_until(level, f"all nodes up, none more than {lag} entries behind", timeout)
        # The leader's view counts what a node has stored, which it applies a little later.
        self.wait_until(
            lambda views: all((_applied(view) or 0) >= reached for view in views),
            f"{reached} entries applied by all nodes", timeout,
        )

    def wait_until_logged(self, name: str, text: str, start: int = 0, timeout: float = 60.0) -> None:
        """Wait until the node has logged `text` after the first `start` characters. Raises NodeError."""
        until = time.monotonic() + timeout
        while text not in self.logs(name)[start:]:
            if time.monotonic() > until:
                raise self._complaint(f"{name} has not logged {text!r}")
            time.sleep(POLL_S)

    # one node

    def kill(self, name: str) -> None:
        """Send SIGKILL and wait until the process has ended."""
        self._nodes[name].signal(signal.SIGKILL)
        self._nodes[name].wait(STOP_S)

    def terminate(self, name: str) -> int | None:
        """Send SIGTERM and wait for the exit code, None if the process does not end in STOP_S."""
        self._nodes[name].signal(signal.SIGTERM)
        return self._nodes[name].wait(STOP_S)

    def pause(self, name: str) -> None:
        """Send SIGSTOP: the process stands still and its connections stay open."""
        self._nodes[name].signal(signal.SIGSTOP)
        self._nodes[name].paused = True

    def resume(self, name: str) -> None:
        """Send SIGCONT, after which a paused process continues."""
        self._nodes[name].signal(signal.SIGCONT)
        self._nodes[name].paused = False

    def restart(self, name: str, wait: bool = True) -> None:
        """Start a node that has ended; with `wait`, return once it answers. Raises NodeError.

        A node that is killed may leave its port or data in use for a moment. Without `wait`, the next method that waits
        for the cluster starts a node again that has ended for this reason.
        """
        node = self._nodes[name]
        until = time.monotonic() + self._ready_s
        node.start()
        while wait and self.say(name, "PING", ASK_S) is None:
            if time.monotonic() > until:
                raise node.complaint("does not answer")
            code = node.wait(POLL_S)
            if code is not None:
                if not node.shut_out:
                    raise node.complaint(f"ended with exit code {code}")
                time.sleep(0.2)         # connections of the killed process still hold the port
                node.start()

    def say(self, name: str, line: str, timeout: float) -> str | None:
        """Send one command to a node without any proxy; returns the first line of the answer, or None."""
        return say(self.direct(name), line, timeout, self._context)

    def hang_up(self, name: str) -> None:
        """Send SIGHUP, which makes the node reload its certificates."""
        self._nodes[name].signal(signal.SIGHUP)

    def wipe(self, name: str) -> None:
        """Delete the data of a stopped node."""
        if self.running(name):
            raise ValueError(f"{name} still runs")
        shutil.rmtree(self._nodes[name].data_dir, ignore_errors=True)

    def move(self, name: str) -> None:
        """Give a stopped node new addresses, which the configuration files of the other nodes do not have."""
        if self.running(name):
            raise ValueError(f"{name} still runs")
        (self._listens[name],) = _listens([self.host(name)])
        self._configure(name)

    def spare(self) -> str:
        """Prepare one more node, which is not a member and does not run yet; returns its name."""
        name = f"n{len(self.names) + 1}"
        self.names.append(name)
        (self._listens[name],) = _listens([self.host(name)])
        self._prepare_node(name)
        return name

    def peer(self, name: str) -> str:
        """The address that the other nodes dial to reach this node."""
        return self._listens[name]["peer"]

    def http(self, name: str) -> str:
        """The address of this node's HTTP port."""
        return self._listens[name]["http"]

    def shut_out(self, name: str) -> bool:
        """Return whether the node has ended because its port or its data was in use."""
        return self._nodes[name].shut_out

    def running(self, name: str) -> bool:
        """Return whether the node's process is running or paused."""
        return self._nodes[name].running

    def pid(self, name: str) -> int | None:
        """The process id, None if the node does not run."""
        return self._nodes[name].pid

    def logs(self, name: str) -> str:
        """The output of the node since the start of the cluster."""
        return self._nodes[name].log()

    def run_by(self, name: str, *wrapper: str) -> None:
        """Execute the node's program by this command from its next start on; without one, directly."""
        self._nodes[name].wrapper = wrapper

    def config_file(self, name: str) -> Path:
        """The path of the node's configuration file."""
        return self._nodes[name].config_file

    def data_dir(self, name: str) -> Path:
        return self._nodes[name].data_dir

    def host(self, name: str) -> str:
        """The address of the machine on which this node runs; overridden where each has its own."""
        return HOST

    def place(self, name: str) -> Path:
        """The path of this node's data directory; overridden where it is on a disk of its own."""
        return self.folder / name

    def peer_address(self, dialing: str, dialed: str, address: str) -> str:
        """The address `dialing` dials to reach `dialed`, which listens on `address`; overridden to insert proxies."""
        return address

    def announced_address(self, name: str, address: str) -> str:
        """The address that `name`, which listens on `address`, announces to the others; overridden where needed."""
        return address

    def client_address(self, name: str, address: str) -> str:
        """The address clients dial to reach `name`, which listens on `address`; overridden to insert proxies."""
        return address

    def environment(self, name: str) -> Mapping[str, str]:
        """Further environment variables of this node's process; overridden where needed."""
        return {}

    def wrapper(self, name: str) -> Sequence[str]:
        """A command that executes this node's program, as `env` does; none if empty. Overridden where needed."""
        return ()

    # internals

    def _prepare(self) -> None:
        """Choose new ports, empty the data directories and write the configuration files."""
        self._listens = dict(zip(self.names, _listens([*map(self.host, self.names)]), strict=True))
        self._nodes = {}
        for name in self.names:
            self._prepare_node(name)

    def _prepare_node(self, name: str) -> None:
        assert self._guardian
        node = self._nodes[name] = LocalNode(name, self.folder, self._guardian)
        node.data_dir = self.place(name)
        shutil.rmtree(node.data_dir, ignore_errors=True)
        node.log_file.unlink(missing_ok=True)
        node.environment = self.environment(name)
        node.wrapper = self.wrapper(name)
        self._configure(name)

    def _configure(self, name: str) -> None:
        """Write the configuration file of a node."""
        node = self._nodes[name]
        node.client = self._listens[name]["client"]
        members: list[Mapping[str, str]] = [
            {"name": other, "client": self.client_address(other, listen["client"]),
             "peer": self.peer_address(name, other, listen["peer"]) if other != name
             else self.announced_address(name, listen["peer"])}
            for other, listen in self._listens.items()
        ]
        certificates = {} if self._authority is None else {"tls": self._authority.node(name)}
        write_config(node, self._listens[name], members, {**self._config, **certificates})

    def _wait_for_leader(self, timeout: float, *, forgiving: bool) -> str:
        """See wait_for_leader. `forgiving`: start a node again that was shut out."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            leader = self.leader()
            if leader:
                return leader
            if forgiving:
                self._start_shut_out()
            for node in self._nodes.values():
                code = node.wait(0)
                if code not in (None, -signal.SIGKILL) and not node.stopped:
                    raise node.complaint(f"ended with exit code {code}")
            time.sleep(POLL_S)
        raise self._complaint("no node serves")

    def _start_shut_out(self) -> None:
        """Start the nodes again that ended because a port or their data was in use."""
        for node in self._nodes.values():
            if node.wait(0) is not None and node.shut_out:
                node.start()

    def _complaint(self, what: str, views: Sequence[ServerView] = ()) -> NodeError:
        """An error about the whole: what each node answered last, and the end of the output of each."""
        words = (node.last_words() for node in self._nodes.values())
        return NodeError("\n".join((what, *map(str, views), *words)))

    def _end_all(self) -> None:
        for node in self._nodes.values():
            node.signal(signal.SIGKILL)
        for node in self._nodes.values():
            node.wait(STOP_S)


def _listens(hosts: Sequence[str]) -> list[dict[str, str]]:
    """Free addresses for nodes on these hosts."""
    ports = free_ports(3 * len(hosts))
    return [{kind: f"{host}:{ports.pop()}" for kind in ("client", "peer", "http")} for host in hosts]


def say(server: str, line: str, timeout: float, context: ssl.SSLContext | None = None) -> str | None:
    """Send one command on a new connection; returns the first line of the answer, or None."""
    host, _, port = server.rpartition(":")
    try:
        with ExitStack() as stack:
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout))
            if context is not None:
                connection = stack.enter_context(context.wrap_socket(connection, server_hostname=host))
            connection.sendall(f"{line}\r\n".encode())
            with connection.makefile("rb") as stream:
                answer = stream.readline()
    except OSError:
        return None
    return answer.decode("ascii", "replace").rstrip("\r\n") if answer.endswith(b"\n") else None


def serves(view: ServerView) -> bool:
    """Return whether this server executes commands: it reports its own number, that it leads and is online.

    It is sent no command that is logged, as that would be an entry on all nodes.
    """
    return any(node.id == view.id and node.role == "LEADER" and node.online for node in view.nodes)


def _level(view: ServerView, lag: int) -> bool:
    """Return whether this is the leader's view and no node is farther behind in it."""
    leads = any(node.role == "LEADER" and node.id == view.id for node in view.nodes)
    return leads and all(node.lag is not None and node.lag <= lag for node in view.nodes)


def _applied(view: ServerView) -> int | None:
    """Return how many entries this node has applied, as it says itself."""
    return next((node.applied for node in view.nodes if node.id == view.id), None)


def _whole(view: ServerView) -> bool:
    """Return whether this node is connected to every other.

    Two followers may connect long after both have found the leader.
    """
    return bool(view.nodes) and all(node.role in ("LEADER", "FOLLOWER") for node in view.nodes)
