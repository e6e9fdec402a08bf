"""Runs one node: starts the cluster node and the gateway in front of it, and shuts both down in order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path

from sockpqd.cluster import (
    ClusterError,
    ClusterNode,
    Member,
    NodeSettings,
    RejoinNeeded,
    StorageError,
    StorageInUse,
    reserved_descriptors,
    restart_cures,
)
from sockpqd.connections import is_loopback, unusable
from sockpqd.core import Then
from sockpqd.gateway import audit
from sockpqd.gateway.auth.authenticator import Access
from sockpqd.gateway.auth.users_file import users_of
from sockpqd.gateway.beanstalkd import BeanstalkdListener, execute_call
from sockpqd.gateway.config import Config, split_address
from sockpqd.gateway.dashboard import Dashboard, execute
from sockpqd.gateway.monitoring import HttpPages, HttpServer, LoopLag, OwnHosts, Sources
from sockpqd.gateway.monitoring import start as start_http
from sockpqd.gateway.process.certificates import Certificates
from sockpqd.gateway.process.configuration_check import check_data_dir
from sockpqd.gateway.process.descriptor_limit import make_room
from sockpqd.gateway.process.disk_size import OK, disk_check
from sockpqd.gateway.process.logs import Logs
from sockpqd.gateway.process.memory_limit import hot_complaint, memory_mark_bytes
from sockpqd.gateway.process.restarts import Restarts
from sockpqd.gateway.process.systemd import ServiceManager, describe
from sockpqd.gateway.replica import Puller, settings_at_start
from sockpqd.gateway.samples import FigureSampler
from sockpqd.gateway.server.doors import Doors
from sockpqd.gateway.server.hub import Hub
from sockpqd.gateway.server.port import fixed_port
from sockpqd.gateway.server.server import Server

log = logging.getLogger("sockpqd")

SAMPLES = "samples"             # below data_dir: the figures of the last days, for the dashboard
EXPORTS = "exports"             # below data_dir: snapshots on their way to clients
ORIGIN = "origin"               # below data_dir: a snapshot on its way from the origin of a replica
REJOIN_MEMBERS = 3              # of a cluster in which a damaged node rejoins, by default


class NodeFailed(Exception):
    """The node cannot start, or had to stop itself; the message says why.

    `cured_by_restart`: another start may help. `counts`: the failure counts towards the pause before that start. (A
    process that finds the data directory in use must not write to it; how often a node rejoins has a limit of its own.)
    """

    def __init__(self, what: str, error: BaseException) -> None:
        super().__init__(f"{what}: {type(error).__name__}: {error}")
        self.cured_by_restart = restart_cures(error)
        self.counts = not isinstance(error, StorageInUse | RejoinNeeded)


async def run(
    config: Config, logs: Logs, restarts: Restarts, *, bootstrap: bool,
    announce: Callable[[Config], None] | None = None,
) -> None:
    """Run the node until SIGTERM, SIGINT or SHUTDOWN. `announce` is called when it starts to serve.

    Raises NodeFailed, and ConfigError if a file named in the configuration has become invalid since it was checked, or
    if there is a file where the data directory should be.
    """
    limits = config.limits
    check_data_dir(config.node.data_dir)
    if complaint := hot_complaint(limits.hot_bytes, memory_mark_bytes(limits.memory_mark)):
        log.warning("%s", complaint)
    with contextlib.suppress(OSError):          # then the storage says what is wrong with it
        check = disk_check(Path(config.node.data_dir), limits, config.feed.keep_bytes)
        if check.state != OK:
            log.warning("%s: %s", check.found, check.advice)
    stopping = asyncio.Event()
    if await _pause(restarts, stopping):
        await _run(config, logs, restarts, stopping, bootstrap, announce)


async def _run(
    config: Config, logs: Logs, restarts: Restarts, stopping: asyncio.Event, bootstrap: bool,
    announce: Callable[[Config], None] | None,
) -> None:
    node_files = reserved_descriptors(len(config.cluster.members))
    limits, handshakes_max = make_room(config.limits, node_files, tls=config.tls is not None)
    loop = asyncio.get_running_loop()
    try:
        hub = Hub(
            limits, Path(config.node.data_dir) / EXPORTS, config.gateway.offline_close,
            shut_down=lambda reason: _stop(stopping, reason), fencing_replica=config.feed.replica,
            access=Access(None if config.auth.users_file is None else lambda: users_of(config)),
        )
        server = Server(hub, Doors(hub.connection_manager, handshakes_max))
        certificates = None if config.tls is None else Certificates(config.tls, config.node.name)
        manager = ServiceManager(os.environ, lambda: describe(node))
        loop.add_signal_handler(signal.SIGHUP, manager.reload, lambda: _reload(certificates, hub.access, logs))
        node = ClusterNode(settings(config, bootstrap=bootstrap, certificates=certificates), hub)
        hub.attach(node)
        hub.audit_behind = logs.audit_behind
        hub.execute, hub.call_executor = partial(execute, hub), partial(execute_call, hub)
        hub.empty_export_dir()
        await node.start()
        hub.puller = _pull(node, config)
        beanstalkd = await _listen(server, hub, config, certificates)
        loop_lag = LoopLag()
        http, samples, site = await _listen_http(server.doors, config, Sources(
            hub, version("sockpqd"), loop_lag, lambda: logs.lines_lost,
            lambda: () if certificates is None else certificates.expiries.items(),
        ), certificates)
    except (OSError, MemoryError, StorageError, ClusterError) as error:
        raise NodeFailed("the node cannot start", error) from error
    log.info("node %s: clients on %s, peers on %s, HTTP on %s", config.node.name, config.listen.client,
             config.listen.peer, config.listen.http or "no port")
    _spare_the_collector()
    loop_lag.start()
    if certificates is not None:
        _warn_daily(certificates)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_by_signal, stopping, signal.Signals(number))
    manager.started()
    restarts.reset_when(lambda: node.leader() is not None)
    if announce is not None:
        hub.announce_serving(partial(announce, config))
    stopped = loop.create_task(_until(stopping))
    await asyncio.wait({stopped, node.failed}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    restarts.stop()
    if node.failed.done():
        failure = node.failed.exception()
        assert failure is not None
        raise NodeFailed("the node stopped itself", failure) from failure
    manager.stopping()
    server.stop_accepting()
    await _stop_using_cluster(beanstalkd, hub.puller)
    await node.stop()           # operations in flight are settled and answered, leadership is handed over
    await server.close()
    loop_lag.stop()
    await _close_http(http, samples, site)  # last, so that probes see "not ready" in the meantime
    log.info("stopped")


def _pull(node: ClusterNode, config: Config) -> Puller | None:
    """Begin to follow the origin, if this cluster is to be a replica. Raises OSError."""
    origin = settings_at_start(config.replica)
    if origin is None:
        return None
    puller = Puller(node.mirror, origin, Path(config.node.data_dir) / ORIGIN, asyncio.get_running_loop().time)
    puller.start()
    return puller


async def _pause(restarts: Restarts, stopping: asyncio.Event) -> bool:
    """Wait before starting the node after repeated failures; returns False if it should stop instead."""
    pause_s = restarts.pause_s()
    if not pause_s:
        return True
    log.warning("this node has failed %d times in a row: starting it in %.0f s. Its log says why it failed.",
                restarts.failures, pause_s)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, stopping, signal.Signals(number).name)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)        # all files are read on start anyway
    status = f"starts in {pause_s:.0f} s, after {restarts.failures} failures in a row"
    ServiceManager(os.environ, lambda: status).waiting(pause_s)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), pause_s)
    for number in (signal.SIGTERM, signal.SIGINT):              # so that a slow start can be killed at once
        loop.remove_signal_handler(number)
    return not stopping.is_set()


async def _listen(
    server: Server, hub: Hub, config: Config, certificates: Certificates | None,
) -> BeanstalkdListener | None:
    """Open all client ports; raises OSError. Returns the listener for clients of beanstalkd, if one is configured."""
    context = None if certificates is None else certificates.clients
    with _naming("listen.client", config.listen.client):
        await server.start(*split_address(config.listen.client), context=context)
    for index, legacy in enumerate(config.listen.legacy):
        with _naming(f"listen.legacy[{index}].address", legacy.address):
            await server.start(*split_address(legacy.address), port=fixed_port(legacy.user, legacy.networks))
    return await _listen_beanstalkd(hub, server.doors, config, certificates)


@contextlib.contextmanager
def _naming(key: str, address: str) -> Iterator[None]:
    """Let an OSError name the key of the configuration whose address cannot be used."""
    try:
        yield
    except OSError as error:
        raise unusable(key, address, error) from error


async def _listen_beanstalkd(
    hub: Hub, doors: Doors, config: Config, certificates: Certificates | None,
) -> BeanstalkdListener | None:
    if config.listen.beanstalkd is None:
        return None
    listener, (host, _, number) = config.beanstalkd, config.listen.beanstalkd.rpartition(":")
    address = split_address(config.listen.beanstalkd) if host else ("", int(number))
    opened = BeanstalkdListener(
        hub, doors, address, fixed_port(listener.user, listener.networks), job_bytes_max=listener.job_bytes_max,
        context=None if certificates is None or not listener.tls else certificates.clients,
    )
    with _naming("listen.beanstalkd", config.listen.beanstalkd):
        await opened.start()
    log.info("node %s: clients of beanstalkd on %s", config.node.name, config.listen.beanstalkd)
    return opened


async def _stop_using_cluster(beanstalkd: BeanstalkdListener | None, puller: Puller | None) -> None:
    """Stop what must end while there is still a leader."""
    if puller is not None:
        await puller.stop()
    if beanstalkd is not None:
        await beanstalkd.close()        # so that the jobs of its clients go back


async def _listen_http(
    doors: Doors, config: Config, sources: Sources, certificates: Certificates | None,
) -> tuple[HttpServer | None, FigureSampler | None, Dashboard | None]:
    if config.listen.http is None:
        return None, None, None
    access = sources.hub.access
    context = None if certificates is None else certificates.clients
    users = access if access.required else None
    host, port = split_address(config.listen.http)
    site, samples = None, None
    if with_dashboard(config):
        samples = FigureSampler(sources.hub, sources.loop_lag, Path(config.node.data_dir) / SAMPLES)
        site = Dashboard(
            sources.hub, users, sources.version, samples, sources.certificates,
            read_only=config.listen.dashboard == "read",
        )
        samples.start()
    hosts = OwnHosts((host, config.node.name, *config.listen.hosts))
    with _naming("listen.http", config.listen.http):
        http = await start_http(doors, host, port, context, HttpPages(sources, users, site, hosts), sources.hub)
    return http, samples, site


async def _close_http(http: HttpServer | None, samples: FigureSampler | None, site: Dashboard | None) -> None:
    if site is not None:
        await site.close()
    if samples is not None:
        await samples.stop()
    if http is not None:
        await http.close()


def with_dashboard(config: Config) -> bool:
    """Return whether the HTTP port has the dashboard: by default only where strangers can do no harm with it."""
    assert config.listen.http is not None
    if config.listen.dashboard is not None:
        return config.listen.dashboard is not False
    return config.auth.users_file is not None or is_loopback(split_address(config.listen.http)[0])


def _reload(certificates: Certificates | None, access: Access, logs: Logs) -> None:
    """Handle SIGHUP: reload the files that can change while the node runs, and reopen the audit log."""
    logs.reopen()
    audit.note(None, audit.SIGNAL, signal.SIGHUP.name, "", "files are reloaded")
    if certificates is not None:
        certificates.reload()
    access.reload()


def _warn_daily(certificates: Certificates) -> None:
    certificates.warn()
    asyncio.get_running_loop().call_later(certificates.next_warning_s(), _warn_daily, certificates)


def settings(config: Config, *, bootstrap: bool, certificates: Certificates | None) -> NodeSettings:
    """Return the cluster node's settings."""
    raft = config.raft
    return NodeSettings(
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
        rejoin=_rejoins(config),
        rejoins_per_hour=config.node.rejoins_per_hour,
        feature_level_max=raft.feature_level_max, prefer=raft.prefer,
        expire_default=Then[config.queue.expire_default.upper()],
        bootstrap=bootstrap,
        memory_mark_bytes=memory_mark_bytes(config.limits.memory_mark),
        disk_free_bytes_min=config.limits.disk_free_bytes_min,
        hot_bytes=config.limits.hot_bytes,
        feed_keep_bytes=config.feed.keep_bytes,
        replica=bool(config.replica.of),
        tls=None if certificates is None else certificates.peers,
        http_port=split_address(config.listen.http)[1] if config.listen.http and with_dashboard(config) else 0,
    )


def _rejoins(config: Config) -> bool:
    """Return whether the node recovers by itself without its damaged files, which takes at least two other nodes."""
    if config.node.on_damage is None:
        return len(config.cluster.members) >= REJOIN_MEMBERS
    return config.node.on_damage == "rejoin"


def _stop_by_signal(stopping: asyncio.Event, number: signal.Signals) -> None:
    audit.note(None, audit.SIGNAL, number.name, "", "this node stops")
    _stop(stopping, number.name)


def _stop(stopping: asyncio.Event, reason: str) -> None:
    if not stopping.is_set():
        log.info("stopping: %s", reason)
        stopping.set()


async def _until(stopping: asyncio.Event) -> None:
    await stopping.wait()


def _spare_the_collector() -> None:
    """Exempt the recovered state from garbage collection, and scan newer objects rarely.

    The objects of a command are freed by reference counting, and most are not tracked at all. Without this the
    collector would scan the whole recovered state again and again. New objects that stay are scanned twice, in portions
    that take some milliseconds, however many queues, groups and sessions there are.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 5, 2000)
