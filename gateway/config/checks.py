"""Validates a configuration: each value, and whether the values are consistent with each other."""

from __future__ import annotations

import ipaddress
import re

from sockpqd.connections import is_loopback
from sockpqd.core import SESSIONS_MAX
from sockpqd.gateway.config.addresses import split_address
from sockpqd.gateway.config.errors import ConfigError
from sockpqd.gateway.config.sections import Auth, Config, FeedSection, Log, Raft, ReplicaSection, Tls
from sockpqd.gateway.limits import DATA_BYTES_CEILING, KIB, Limits
from sockpqd.gateway.protocol.arguments import NODE_NAME

ELECTION_MS_MAX = 3_600_000
GRACE_MS_MAX = 86_400_000
_CLUSTER_ID = re.compile(r"[0-9a-f]{16}")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252})?")


def check(config: Config) -> None:
    """Check the configuration; raises ConfigError for the first error."""
    _check_names(config)
    _check_addresses(config)
    _require(config.queue.expire_default in ("later", "done"), "queue.expire_default", 'must be "later" or "done"')
    _check_limits(config.limits)
    _check_raft(config.raft)
    if config.tls is not None:
        _check_tls(config.tls)
    _check_auth(config.auth)
    _check_log(config.log)
    _check_feed(config.feed)
    _check_replica(config.replica)


def _require(right: bool, key: str, reason: str) -> None:
    if not right:
        raise ConfigError(f"{key}: {reason}")


def _check_names(config: Config) -> None:
    _require(bool(config.node.data_dir), "node.data_dir", "must not be empty")
    _require(config.node.on_damage in (None, "rejoin", "stop"), "node.on_damage", 'must be "rejoin" or "stop"')
    _require(config.node.rejoins_per_hour >= 0, "node.rejoins_per_hour", "must not be negative")
    _require(bool(config.cluster.members), "cluster.members", "must list every node, this one included")
    names = [member.name for member in config.cluster.members]
    for index, name in enumerate(names):
        key = f"cluster.members[{index}].name"
        _require(NODE_NAME.fullmatch(name) is not None, key, f"{name!r} must be 1 to 64 of A-Z a-z 0-9 _ . -")
        _require(name not in names[:index], key, f"{name!r} is listed twice")
    _require(config.node.name in names, "node.name", f"{config.node.name!r} is not among cluster.members")


def _check_addresses(config: Config) -> None:
    listen = config.listen
    taken: dict[tuple[str, int], str] = {}
    users = config.auth.users_file is not None
    _check_listen("listen.client", listen.client, taken, listen.insecure or users, "auth.users_file")
    _check_listen("listen.peer", listen.peer, taken, listen.insecure or config.tls is not None, "[tls]")
    if listen.http is not None:
        safe = listen.insecure or (users and config.tls is not None)
        _check_listen("listen.http", listen.http, taken, safe, "auth.users_file and [tls]")
    for name in listen.hosts:
        _require(_HOST.fullmatch(name) is not None, "listen.hosts", f"{name!r} is not the name of a host, without port")
    for index, legacy in enumerate(listen.legacy):
        key = f"listen.legacy[{index}]"
        _require(users, key, "acts as a user, but without auth.users_file there are none")
        _check_listen(f"{key}.address", legacy.address, taken, listen.insecure or bool(legacy.networks),
                      f"{key}.networks")
        _check_networks(key, legacy.networks)
    _check_beanstalkd(config, taken)
    of_members: dict[tuple[str, int], str] = {}
    for index, member in enumerate(config.cluster.members):
        _check_new(f"cluster.members[{index}].client", member.client, of_members)
        _check_new(f"cluster.members[{index}].peer", member.peer, of_members)


def _check_beanstalkd(config: Config, taken: dict[tuple[str, int], str]) -> None:
    listener, address, users = config.beanstalkd, config.listen.beanstalkd, config.auth.users_file is not None
    data_bytes_max = config.limits.data_bytes_max
    # Without a listener the default may exceed the size of jobs here.
    _require(listener.job_bytes_max > 0 and (address is None or listener.job_bytes_max <= data_bytes_max),
             "beanstalkd.job_bytes_max", f"must be from 1 to limits.data_bytes_max, {data_bytes_max}")
    _check_networks("beanstalkd", listener.networks)
    if address is None:
        return
    _require(not users or listener.user is not None, "beanstalkd.user",
             "names the user that clients of listen.beanstalkd act as, which auth.users_file makes necessary")
    _require(users or listener.user is None, "beanstalkd.user",
             "acts as a user, but without auth.users_file there are none")
    _require(not listener.tls or config.tls is not None, "beanstalkd.tls", "needs the section [tls]")
    host = f"0.0.0.0{address}" if address.startswith(":") else address
    _check_listen("listen.beanstalkd", host, taken, config.listen.insecure or bool(listener.networks),
                  "beanstalkd.networks")


def _check_listen(key: str, address: str, taken: dict[tuple[str, int], str], safe: bool, remedy: str) -> None:
    _require(
        safe or is_loopback(_address(key, address)[0]), key,
        f"{address!r} is not a loopback address, and without {remedy} any client that can reach it has full access; "
        "set listen.insecure = true if that is wanted",
    )
    _check_new(key, address, taken)


def _check_new(key: str, address: str, taken: dict[tuple[str, int], str]) -> None:
    """Refuse an address that another key has; `taken`: the keys by address."""
    host_port = _address(key, address)
    _require(host_port not in taken, key, f"{address!r} is {taken.get(host_port)} already")
    taken[host_port] = key


def _check_networks(key: str, networks: tuple[str, ...]) -> None:
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise ConfigError(f"{key}.networks: {error}") from None


def _address(key: str, address: str) -> tuple[str, int]:
    try:
        return split_address(address)
    except ValueError as error:
        raise ConfigError(f"{key}: {error}") from None


def _check_limits(limits: Limits) -> None:
    def within(key: str, lowest: int, highest: int) -> None:
        value = getattr(limits, key)
        _require(lowest <= value <= highest, f"limits.{key}", f"must be from {lowest} to {highest}, not {value}")

    within("data_bytes_max", 1, DATA_BYTES_CEILING)
    within("line_bytes_max", KIB, 16 * 1024 * KIB)
    within("snapshot_bytes_max", 1, 2**63 - 1)
    within("connections_max", 1, 1_000_000)
    within("sessions_per_owner_max", 1, SESSIONS_MAX)
    within("connections_per_address_max", 0, 1_000_000)
    within("pulses_max", 0, 1_000_000)
    within("pipeline_bytes_max", KIB, 2**40)
    within("memory_mark", 0, 2**50)
    within("disk_free_bytes_min", 0, 2**50)
    within("hot_bytes", 0, 2**50)
    _require(not limits.memory_mark or limits.hot_bytes < limits.memory_mark, "limits.hot_bytes",
             f"must be smaller than limits.memory_mark ({limits.memory_mark}): at that mark PUT is refused")
    for key in ("hello_timeout_s", "idle_timeout_s", "auth_timeout_s", "command_timeout_s", "answer_timeout_s"):
        within(key, 0, 86_400)
    within("output_bytes_max", limits.data_bytes_max + limits.line_bytes_max, 2**40)     # one answer must fit


def _check_raft(raft: Raft) -> None:
    _require(raft.heartbeat_ms >= 1, "raft.heartbeat_ms", "must be at least 1")
    _require(raft.lease_ms > raft.heartbeat_ms, "raft.lease_ms", "must be greater than raft.heartbeat_ms")
    _require(raft.lease_ms < raft.election_min_ms, "raft.lease_ms",
             "must be smaller than raft.election_min_ms, or two nodes might serve at once")
    _require(raft.election_min_ms < raft.election_max_ms, "raft.election_max_ms",
             "must be greater than raft.election_min_ms, or elections collide")
    _require(raft.election_max_ms <= ELECTION_MS_MAX, "raft.election_max_ms", f"must be at most {ELECTION_MS_MAX}")
    _require(0 <= raft.failover_grace_ms <= GRACE_MS_MAX, "raft.failover_grace_ms",
             f"must be from 0 to {GRACE_MS_MAX}, not {raft.failover_grace_ms}")
    _require(raft.feature_level_max >= 0, "raft.feature_level_max", "must not be negative")
    _require(1 <= raft.prefer <= 100, "raft.prefer", "must be from 1 to 100")


def _check_tls(tls: Tls) -> None:
    for key in ("cert", "key", "ca", "client_cert", "client_key"):
        _require(getattr(tls, key) != "", f"tls.{key}", "must not be empty")
    _require((tls.client_cert is None) == (tls.client_key is None), "tls.client_cert",
             "and tls.client_key go together")


def _check_auth(auth: Auth) -> None:
    _require(auth.users_file != "", "auth.users_file", "must not be empty")


def _check_log(log: Log) -> None:
    _require(log.format in ("auto", "json", "text"), "log.format", 'must be "auto", "json" or "text"')
    _require(log.level in ("debug", "info", "warning", "error"), "log.level",
             'must be "debug", "info", "warning" or "error"')
    _require(log.when_full in ("drop", "wait"), "log.when_full", 'must be "drop" or "wait"')
    _require(log.audit_file != "", "log.audit_file", "must not be empty")


def _check_feed(feed: FeedSection) -> None:
    _require(0 <= feed.keep_bytes <= 2**50, "feed.keep_bytes", f"must be from 0 to {2**50}, not {feed.keep_bytes}")
    _require(feed.replica is None or _CLUSTER_ID.fullmatch(feed.replica) is not None, "feed.replica",
             "must be the id of a cluster, 16 hexadecimal digits, as CLUSTER ID answers in the replica")


def _check_replica(replica: ReplicaSection) -> None:
    _require((replica.user is None) == (replica.secret_file is None), "replica.user",
             "and replica.secret_file go together")
    for key in ("user", "secret_file", "ca"):
        _require(getattr(replica, key) != "", f"replica.{key}", "must not be empty")
        _require(bool(replica.of) or getattr(replica, key) is None, f"replica.{key}", "needs replica.of")
    servers = [_address("replica.of", address.strip()) for address in replica.of.split(",")] if replica.of else []
    _require(replica.ca is not None or all(is_loopback(host) for host, _ in servers), "replica.ca",
             "names the authority of the origin's certificates, which servers on other machines need: a feed has all "
             "data, and is sent over TLS only")
