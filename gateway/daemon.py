"""One running node: the cluster node, the gateway before it, and the orderly end of both."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from cluster import ClusterError, ClusterNode, Member, Settings, StorageError
from core import Then
from gateway.config import Config, split_address
from gateway.hub import Hub
from gateway.server import Server
from gateway.systemd import ServiceManager, describe

log = logging.getLogger("sockpqd")

EXPORTS = "exports"             # below data_dir: snapshots on their way to clients
OTHER_FILES = 200               # descriptors that are not clients: journal, snapshots, peers


class NodeFailed(Exception):  # noqa: N818  (the field's word for it)
    """The node cannot run, or had to stop itself; the message says why."""


async def run(config: Config, *, bootstrap: bool, announce: Callable[[Config], None] | None = None) -> None:
    """Run the node until SIGTERM, SIGINT or SHUTDOWN. `announce` is called when it serves first. Raises NodeFailed."""
    stopping = asyncio.Event()
    hub = Hub(
        config.limits, Path(config.node.data_dir) / EXPORTS, config.gateway.offline_close,
        shut_down=lambda reason: _stop(stopping, reason),
    )
    server = Server(hub)
    _raise_file_limit(config.limits.connections_max)
    try:
        node = ClusterNode(settings(config, bootstrap=bootstrap), hub)
        hub.attach(node)
        hub.empty_export_dir()
        await node.start()
        await server.start(*split_address(config.listen.client))
    except (OSError, StorageError, ClusterError) as error:
        raise NodeFailed(f"the node cannot start: {type(error).__name__}: {error}") from error
    log.info("node %s: clients on %s, peers on %s", config.node.name, config.listen.client, config.listen.peer)
    _spare_the_collector()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, stopping, signal.Signals(number).name)
    manager = ServiceManager(os.environ, lambda: describe(node))
    manager.started()
    if announce is not None:
        hub.on_serving = lambda: announce(config)
    stopped = loop.create_task(_until(stopping))
    await asyncio.wait({stopped, node.failed}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if node.failed.done():
        failure = node.failed.exception()
        raise NodeFailed(f"the node stopped itself: {type(failure).__name__}: {failure}") from failure
    manager.stopping()
    server.stop_accepting()
    await node.stop()           # what is in flight is decided and answered, leadership is given away
    await server.close()
    log.info("stopped")


def settings(config: Config, *, bootstrap: bool) -> Settings:
    """What the cluster node is told."""
    raft = config.raft
    return Settings(
        name=config.node.name,
        data_dir=Path(config.node.data_dir),
        peer_listen=config.listen.peer,
        members=tuple(Member(member.name, member.client, member.peer) for member in config.cluster.members),
        version=version("sockpqd"),
        heartbeat_ms=raft.heartbeat_ms,
        election_min_ms=raft.election_min_ms,
        election_max_ms=raft.election_max_ms,
        lease_ms=raft.lease_ms,
        failover_grace_ms=raft.failover_grace_ms,
        expire_default=Then[config.queue.expire_default.upper()],
        bootstrap=bootstrap,
    )


def _stop(stopping: asyncio.Event, reason: str) -> None:
    if not stopping.is_set():
        log.info("stopping: %s", reason)
        stopping.set()


async def _until(stopping: asyncio.Event) -> None:
    await stopping.wait()


def _raise_file_limit(connections_max: int) -> None:
    """Each client is a file descriptor, and the usual soft limit (1024) is a leftover of select()."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < connections_max + OTHER_FILES:
        log.warning("limits.connections_max is %d, but the process may open only %d files", connections_max, hard)


def _spare_the_collector() -> None:
    """What comes and goes with a command is freed by its reference count, and most of it is not tracked at all. What
    the collector would go through again and again is the recovered state: that is set aside, and it runs rarely.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
