"""The configuration of `sockpq-http push`: a TOML file, decoded strictly and checked before anything starts.

Every error is a single sentence that names the key and the reason. docs/PUSH.md has each key.
"""

from __future__ import annotations

import re
import ssl
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, field

from sockpq_http.push.guard import AddressRule, RefusedAddress, parse_network
from sockpq_http.push.headers import is_name, is_reserved, is_value
from sockpq_http.push.signing import SecretError, Secrets

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Count = Annotated[int, Meta(ge=1, le=10_000)]

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
S = TypeVar("S", bound=Struct)


class ConfigError(Exception):
    """The configuration cannot be used; the message names the key and says why."""


class ClusterSection(Struct, frozen=True, forbid_unknown_fields=True):
    """[cluster]: the servers, and the user as whom this program connects. Without `servers`: as for pqctl."""

    servers: str | None = None
    ca_file: str | None = None              # speak TLS; the CA of the servers' certificates
    user: str | None = None
    secret_file: str | None = None


class PushSection(Struct, frozen=True, forbid_unknown_fields=True):
    """[push]: settings for all targets."""

    listen: str | None = None               # "host:port" of /metrics, /healthz and /readyz
    ttl_s: Annotated[float, Meta(ge=5, le=3600)] = 30.0     # after this long without a sign of life jobs go back
    stop_s: Seconds = 30.0                  # what requests in flight may take at the end of the program
    proxy: str | None = None                # an HTTP proxy for all requests; never one of the environment
    host_concurrency: Annotated[int, Meta(ge=0, le=10_000)] = 0     # requests at a time to one host; 0: no limit
    hosts: dict[str, Count] = field(default_factory=dict)   # the same for these hosts


class Target(Struct, frozen=True, forbid_unknown_fields=True):
    """[targets.<name>]: the jobs of these queues are POSTed to this URL."""

    queues: Annotated[tuple[str, ...], Meta(min_length=1, max_length=1000)]
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/octet-stream"          # of jobs without a header `content-type`
    secret_file: str | None = None          # signs requests; one secret a line, the newest first
    concurrency: Count = 10                 # requests at a time
    timeout_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0     # of a request, with the whole answer
    connect_timeout_s: Seconds = 5.0
    pulse: str | None = None                # each request takes a turn of it
    result: bool = False                    # the body of the answer is the job's result
    answer_bytes_max: Annotated[int, Meta(ge=0, le=8 << 20)] = 65_536   # of a result
    bury: tuple[Annotated[int, Meta(ge=400, le=499)] | str, ...] = ()   # statuses that give a job up; "4xx": all
    retry_after_max_s: Seconds = 3600.0     # a receiver cannot ask for a longer rest
    failures: Annotated[int, Meta(ge=1, le=1000)] = 5       # in a row, after which the target pauses
    pause_max_s: Annotated[float, Meta(ge=1, le=3600)] = 60.0
    allow: tuple[str, ...] = ()             # networks that are not public, and may be connected to
    ca_file: str | None = None              # the CA of the receiver's certificate, instead of the system's

    @property
    def host(self) -> str:
        """The host of `url`, in lower case."""
        return urlsplit(self.url).hostname or ""


class Config(Struct, frozen=True):
    """The whole configuration. `targets`: by name."""

    cluster: ClusterSection
    push: PushSection
    targets: Mapping[str, Target]


SECTIONS: dict[str, type[Struct]] = {"cluster": ClusterSection, "push": PushSection}


def load(path: Path) -> Config:
    """Read the configuration from the file at `path`; raises ConfigError."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return read(document)


def read(document: dict[str, Any]) -> Config:
    """Read the configuration from a TOML document; raises ConfigError."""
    for key in document:
        if key not in SECTIONS and key != "targets":
            raise ConfigError(f"{key}: unknown section; there are [cluster], [push] and [targets.NAME]")
    cluster = _section(document.get("cluster", {}), ClusterSection, "cluster")
    push = _section(document.get("push", {}), PushSection, "push")
    tables = document.get("targets", {})
    if not isinstance(tables, dict) or not tables:
        raise ConfigError("targets: there is none; [targets.NAME] says which queues go to which URL")
    targets = {name: _section(table, Target, f"targets.{name}") for name, table in tables.items()}
    _check_cluster(cluster)
    _check_push(push)
    for name, target in targets.items():
        _check_target(name, target, proxied=push.proxy is not None)
    _check_queues(targets)
    return Config(cluster, push, targets)


def _section(table: object, section: type[S], place: str) -> S:
    _refuse_nul(table, place)
    try:
        return msgspec.convert(table, section)
    except msgspec.ValidationError as error:
        raise ConfigError(_sentence(str(error), place)) from None


def _refuse_nul(value: object, place: str) -> None:
    """Refuse a NUL in any string (TOML's \\u0000): neither paths nor headers can have one."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _refuse_nul(inner, f"{place}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _refuse_nul(inner, f"{place}[{index}]")
    elif isinstance(value, str) and "\0" in value:
        raise ConfigError(f"{place}: must not contain a NUL character")


# ---- what types cannot say

def _check_cluster(cluster: ClusterSection) -> None:
    if (cluster.user is None) != (cluster.secret_file is None):
        raise ConfigError("cluster: user and secret_file go together")
    if cluster.servers is None and (cluster.ca_file or cluster.user):
        raise ConfigError("cluster.servers: ca_file and user need it")


def _check_push(push: PushSection) -> None:
    if push.listen is not None:
        split_address(push.listen, "push.listen")
    if push.proxy is not None:
        _check_url(push.proxy, "push.proxy", schemes=("http",))


def _check_target(name: str, target: Target, *, proxied: bool) -> None:
    place = f"targets.{name}"
    if not NAME.fullmatch(name):
        raise ConfigError(f"{place}: a name is 1 to 64 of A-Z a-z 0-9 _ . -")
    _check_url(target.url, f"{place}.url", schemes=("http", "https"))
    for header, value in target.headers.items():
        if not is_name(header) or not is_value(value):
            raise ConfigError(f"{place}.headers.{header}: cannot be a header of HTTP")
        if is_reserved(header):
            raise ConfigError(f"{place}.headers.{header}: the program sets this header itself")
    if not is_value(target.content_type):
        raise ConfigError(f"{place}.content_type: cannot be a header of HTTP")
    for status in target.bury:
        if isinstance(status, str) and status != "4xx":
            raise ConfigError(f'{place}.bury: "{status}" is neither a status from 400 to 499 nor "4xx"')
    if target.connect_timeout_s > target.timeout_s:
        raise ConfigError(f"{place}.connect_timeout_s: is a part of timeout_s, and cannot be longer")
    for network in target.allow:
        try:
            parse_network(network)
        except ValueError as error:
            raise ConfigError(f"{place}.allow: {error}") from None
    if not proxied:
        try:
            AddressRule(target.allow).check_host(target.host)
        except RefusedAddress as error:
            raise ConfigError(f"{place}.url: {error}") from None
    for key in ("secret_file", "ca_file"):
        path = getattr(target, key)
        if path is not None and not Path(path).is_file():
            raise ConfigError(f"{place}.{key}: there is no file {path}")
    if target.ca_file is not None:
        try:
            ssl.create_default_context(cafile=target.ca_file)
        except OSError:
            raise ConfigError(f"{place}.ca_file: {target.ca_file} has no certificates in the format PEM") from None
    if target.secret_file is not None:
        try:
            Secrets(target.secret_file)
        except SecretError as error:
            raise ConfigError(f"{place}.secret_file: {error}") from None


def _check_url(url: str, place: str, *, schemes: tuple[str, ...]) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in schemes and bool(parts.hostname) and url.isascii() and " " not in url
        port = parts.port
    except ValueError:
        good, port = False, None
    if not good or port == 0:
        beginnings = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ConfigError(f"{place}: {url!r} is not an address that begins with {beginnings}")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{place}: a user and password do not belong into the address; use `headers`")
    if parts.fragment:
        raise ConfigError(f"{place}: a fragment (#) is not sent")


def _check_queues(targets: Mapping[str, Target]) -> None:
    """Raise ConfigError for a queue of two targets: some of its jobs would go here and others there."""
    owner: dict[str, str] = {}
    for name, target in targets.items():
        for queue in target.queues:
            if queue in owner:
                first = owner[queue]
                raise ConfigError(
                    f"targets.{name}.queues: {queue} is a queue of "
                    + ("this target twice" if first == name else f"target {first} too; a topic brings a job into both")
                )
            owner[queue] = name


def split_address(text: str, place: str) -> tuple[str, int]:
    """Return host and port of "host:port"; raises ConfigError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise ConfigError(f"{place}: {text!r} is not HOST:PORT, such as 127.0.0.1:9465")
    return host.strip("[]"), int(port)


# ---- rewording msgspec's errors

_PLACE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")


def _sentence(message: str, place: str) -> str:
    """Reword a msgspec error: `targets.shop.foo: unknown key`."""
    match = _PLACE.fullmatch(message)
    assert match is not None
    what, path = match["what"], match["path"] or ""
    where = f"{place}.{path}" if path else place
    if inner := _UNKNOWN.fullmatch(what):
        return f"{where}.{inner[1]}: unknown key"
    if inner := _MISSING.fullmatch(what):
        return f"{where}.{inner[1]}: this key is required"
    what = what.replace("`", "")
    return f"{where}: {what[:1].lower()}{what[1:]}"
