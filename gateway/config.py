"""The configuration: one TOML file, then `SOCKPQD_<SECTION>_<KEY>` from the environment, then checks across keys.

Everything that is wrong is told as one sentence that names the key and the reason.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct, field

from gateway.limits import DATA_BYTES_CEILING, KIB, Limits
from gateway.values import NODE_NAME


class ConfigError(Exception):
    """The configuration cannot be used; the message names the key and says why."""


class Node(Struct, frozen=True, forbid_unknown_fields=True):
    """[node]: who this node is."""

    name: str
    data_dir: str


class Listen(Struct, frozen=True, forbid_unknown_fields=True):
    """[listen]: "host:port" for clients, for the other nodes and for HTTP."""

    client: str
    peer: str
    http: str | None = None
    insecure: bool = False      # nothing is encrypted or authenticated: other than loopback must be wanted


class Member(Struct, frozen=True, forbid_unknown_fields=True):
    """[[cluster.members]]: a node of the cluster; this one is included."""

    name: str
    client: str                 # what clients dial
    peer: str                   # what this node dials to reach it; a proxy's address will do


class ClusterSection(Struct, frozen=True, forbid_unknown_fields=True):
    """[cluster]."""

    members: tuple[Member, ...]


class Queue(Struct, frozen=True, forbid_unknown_fields=True):
    """[queue]."""

    expire_default: str = "later"   # "later" or "done": what becomes of a job whose lease ends; only for a new cluster


class Raft(Struct, frozen=True, forbid_unknown_fields=True):
    """[raft], in milliseconds."""

    heartbeat_ms: int = 50
    election_min_ms: int = 600
    election_max_ms: int = 1000
    lease_ms: int = 550
    failover_grace_ms: int = 10_000


class GatewaySection(Struct, frozen=True, forbid_unknown_fields=True):
    """[gateway]."""

    offline_close: bool = True      # close after `500` when another leader is known than when the client came (A63)


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration of a node."""

    node: Node
    listen: Listen
    cluster: ClusterSection
    queue: Queue = field(default_factory=Queue)
    limits: Limits = field(default_factory=Limits)
    raft: Raft = field(default_factory=Raft)
    gateway: GatewaySection = field(default_factory=GatewaySection)


def load(path: Path, environment: Mapping[str, str]) -> Config:
    """The configuration in the file at `path`; raises ConfigError."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return read(document, environment)


def read(document: dict[str, Any], environment: Mapping[str, str]) -> Config:
    """The configuration in a TOML document; raises ConfigError."""
    _override(document, environment)
    try:
        config = msgspec.convert(document, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(_sentence(str(error))) from None
    _check(config)
    return config


def split_address(address: str) -> tuple[str, int]:
    """Host and port of "host:port" or "[v6]:port"; raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ValueError(f"{address!r} is not host:port")
    if host.startswith("[") and host.endswith("]"):
        return str(ipaddress.IPv6Address(host[1:-1])), int(port)
    if ":" in host or any(letter.isspace() for letter in host):
        raise ValueError(f"{address!r} is not host:port (an IPv6 address stands in brackets)")
    return host, int(port)


# ---- the environment

_SECTIONS: dict[str, type[Struct]] = {
    "node": Node, "listen": Listen, "queue": Queue, "limits": Limits, "raft": Raft, "gateway": GatewaySection,
}


def _override(document: dict[str, Any], environment: Mapping[str, str]) -> None:
    for variable, text in environment.items():
        prefix, _, rest = variable.partition("_")
        section, _, key = rest.lower().partition("_")
        if prefix != "SOCKPQD" or section not in _SECTIONS:
            continue
        types = get_type_hints(_SECTIONS[section])
        if key not in types:
            raise ConfigError(f"{variable} (environment): section [{section}] has no key {key}")
        try:
            value = msgspec.convert(text, types[key], strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{variable} (environment): {_sentence(str(error))}") from None
        table = document.setdefault(section, {})
        if isinstance(table, dict):
            table[key] = value


# ---- what msgspec says, in our words

_PLACE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")


def _sentence(message: str) -> str:
    """`limits.foo: unknown key` instead of "Object contains unknown field `foo` - at `$.limits`"."""
    match = _PLACE.fullmatch(message)
    assert match is not None
    what, path = match["what"], match["path"] or ""
    if inner := _UNKNOWN.fullmatch(what):
        return f"{_join(path, inner[1])}: unknown key"
    if inner := _MISSING.fullmatch(what):
        return f"{_join(path, inner[1])}: this key is required"
    what = what.replace("`", "")
    return f"{path}: {what[:1].lower()}{what[1:]}" if path else f"{what[:1].lower()}{what[1:]}"


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


# ---- checks across keys

def _check(config: Config) -> None:
    _check_names(config)
    _check_addresses(config)
    _require(config.queue.expire_default in ("later", "done"), "queue.expire_default", 'must be "later" or "done"')
    _check_limits(config.limits)
    _check_raft(config.raft)


def _require(right: bool, key: str, reason: str) -> None:
    if not right:
        raise ConfigError(f"{key}: {reason}")


def _check_names(config: Config) -> None:
    _require(bool(config.node.data_dir), "node.data_dir", "must not be empty")
    _require(bool(config.cluster.members), "cluster.members", "must list every node, this one included")
    names = [member.name for member in config.cluster.members]
    for index, name in enumerate(names):
        key = f"cluster.members[{index}].name"
        _require(NODE_NAME.fullmatch(name) is not None, key, f"{name!r} must be 1 to 64 of A-Z a-z 0-9 _ . -")
        _require(name not in names[:index], key, f"{name!r} is there twice")
    _require(config.node.name in names, "node.name", f"{config.node.name!r} is not among cluster.members")


def _check_addresses(config: Config) -> None:
    seen: dict[tuple[str, int], str] = {}
    for key in ("client", "peer", "http"):
        address = getattr(config.listen, key)
        if address is None:
            continue
        host_port = _address(f"listen.{key}", address)
        _require(
            config.listen.insecure or _is_loopback(host_port[0]), f"listen.{key}",
            f"{address!r} is not a loopback address, and there is no authentication yet: "
            "whoever can reach it may do everything; set listen.insecure = true if that is wanted",
        )
        _require(host_port not in seen, f"listen.{key}", f"{address!r} is listen.{seen.get(host_port)} already")
        seen[host_port] = key
    for index, member in enumerate(config.cluster.members):
        _address(f"cluster.members[{index}].client", member.client)
        _address(f"cluster.members[{index}].peer", member.peer)


def _address(key: str, address: str) -> tuple[str, int]:
    try:
        return split_address(address)
    except ValueError as error:
        raise ConfigError(f"{key}: {error}") from None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_limits(limits: Limits) -> None:
    def within(key: str, lowest: int, highest: int) -> None:
        value = getattr(limits, key)
        _require(lowest <= value <= highest, f"limits.{key}", f"must be from {lowest} to {highest}, not {value}")

    within("data_bytes_max", 1, DATA_BYTES_CEILING)
    within("line_bytes_max", KIB, 16 * 1024 * KIB)
    within("snapshot_bytes_max", 1, 2**63 - 1)
    within("connections_max", 1, 1_000_000)
    within("pipeline_bytes_max", KIB, 2**40)
    within("output_bytes_max", limits.data_bytes_max + limits.line_bytes_max, 2**40)     # one answer must fit


def _check_raft(raft: Raft) -> None:
    _require(raft.heartbeat_ms >= 1, "raft.heartbeat_ms", "must be at least 1")
    _require(raft.lease_ms > raft.heartbeat_ms, "raft.lease_ms", "must be greater than raft.heartbeat_ms")
    _require(raft.lease_ms < raft.election_min_ms, "raft.lease_ms",
             "must be smaller than raft.election_min_ms, or two nodes might serve at once")
    _require(raft.election_min_ms < raft.election_max_ms, "raft.election_max_ms",
             "must be greater than raft.election_min_ms, or elections collide")
    _require(raft.failover_grace_ms >= 0, "raft.failover_grace_ms", "must not be negative")
