"""The settings file: TOML, overridden by SOCKPQ_SQS_<SECTION>_<KEY> in the environment.

Every error is a single sentence that names the key and the reason.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_type_hints

import msgspec
from msgspec import Struct

from sockpq_sqs.options import Options
from sockpq_sqs.reasons import sentence

PREFIX = "SOCKPQ_SQS_"

_ACCOUNT = re.compile(r"[0-9]{12}")
_BASE = re.compile(r"(?:/[A-Za-z0-9_.~-]+)*")
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9_.~/-]+)?")
_PREFIX = re.compile(r"[A-Za-z0-9_.:-]{0,32}")


class SettingsError(Exception):
    """The settings, or the users file, are invalid."""


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """The base of the sections of the file, in which unknown keys are errors."""


class Http(Section, frozen=True):
    """The address for programs, and the beginning of the URLs of queues."""

    listen: str = "127.0.0.1:9324"
    url: str = ""
    base: str = ""
    hosts: list[str] = []
    insecure: bool = False
    reuse_port: bool = False
    metrics_from: list[str] = []
    region: str = "us-east-1"                   # of requests without a signature


class Tls(Section, frozen=True):
    """The certificate of the listener."""

    cert: str | None = None
    key: str | None = None


class Cluster(Section, frozen=True):
    """The cluster and the user of this program there; by default those of pqctl."""

    servers: list[str] = []
    ca: str | None = None
    user: str | None = None
    secret_file: str | None = None


class UsersSection(Section, frozen=True):
    """The users who may sign requests; with `in_cluster` each acts as the user of that name in the cluster."""

    file: str | None = None
    in_cluster: bool = True


class Limits(Section, frozen=True):
    """Limits on clients; a timeout of 0 never ends anything."""

    connections_max: int = 10_000
    connections_per_address_max: int = 0        # half of connections_max
    memory_mib: int = 256
    hello_timeout_s: int = 30
    request_timeout_s: int = 60
    answer_timeout_s: int = 60
    idle_timeout_s: int = 300


class Log(Section, frozen=True):
    """The detail of the log."""

    level: Literal["debug", "info", "warning", "error"] = "info"


class Settings(Section, frozen=True):
    """The settings of the program: the sections of its file, with the defaults of those that it lacks."""

    http: Http = Http()
    tls: Tls = Tls()
    cluster: Cluster = Cluster()
    users: UsersSection = UsersSection()
    limits: Limits = Limits()
    sqs: Options = Options()
    log: Log = Log()


def load(path: Path | None, environment: Mapping[str, str], options: Mapping[str, Mapping[str, Any]]) -> Settings:
    """Read the settings from the file at `path`, None for the defaults; raises SettingsError.

    `options`, sections with keys and values, override the file and the environment.
    """
    document: dict[str, Any] = {}
    try:
        if path is not None:
            document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from None
    _override(document, environment)
    for section, values in options.items():
        table = document.setdefault(section, {})
        if isinstance(table, dict):
            table.update(values)
    return read(document)


def read(document: dict[str, Any]) -> Settings:
    """Convert a TOML document into settings; raises SettingsError."""
    try:
        settings = msgspec.convert(document, Settings)
        _check(settings)
    except msgspec.ValidationError as error:
        raise SettingsError(sentence(error)) from None
    except ValueError as error:
        raise SettingsError(str(error)) from None
    return settings


def address(listen: str) -> tuple[str, int]:
    """Split HOST:PORT; raises ValueError. Without a host all addresses are meant, which is the host ""."""
    host, colon, port = listen.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
        raise ValueError(f"http.listen: {listen!r} must be HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Return whether this host name or address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def check_account(key: str, account: str) -> None:
    """Refuse a value that is not an account; raises ValueError."""
    if not _ACCOUNT.fullmatch(account):
        raise ValueError(f"{key}: {account!r} must be an account of 12 digits")


def _check(settings: Settings) -> None:
    """Refuse values that have the right type but make no sense; raises ValueError."""
    host, _ = address(settings.http.listen)
    if settings.users.file is None and not is_loopback(host) and not settings.http.insecure:
        raise ValueError(
            f"http.listen: {settings.http.listen} can be reached from other machines, and everybody there could do "
            "everything: name a users file (users.file), listen on 127.0.0.1, or set http.insecure = true")
    if (settings.tls.cert is None) != (settings.tls.key is None):
        raise ValueError("tls: cert and key belong together")
    if not _BASE.fullmatch(settings.http.base):
        raise ValueError(f'http.base: {settings.http.base!r} must be a path like "/sqs", without a slash at its end')
    if settings.http.url and not _URL.fullmatch(settings.http.url):
        raise ValueError(f'http.url: {settings.http.url!r} must be like "https://queues.example.com", without a slash '
                         "at its end")
    for network in settings.http.metrics_from:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise ValueError(f"http.metrics_from: {error}") from None
    check_account("sqs.account", settings.sqs.account)
    for account, prefix in settings.sqs.accounts.items():
        check_account("sqs.accounts", account)
        if not _PREFIX.fullmatch(prefix):
            raise ValueError(f"sqs.accounts.{account}: {prefix!r} must be up to 32 of A-Z a-z 0-9 _ . : -")
    _check_limits(settings.limits)


def _check_limits(limits: Limits) -> None:
    for name in ("connections_max", "memory_mib"):
        if getattr(limits, name) < 1:
            raise ValueError(f"limits.{name}: must be 1 or more")
    for name in limits.__struct_fields__:
        if getattr(limits, name) < 0:
            raise ValueError(f"limits.{name}: must not be negative")


_SECTIONS: dict[str, type[Struct]] = get_type_hints(Settings)


def _override(document: dict[str, Any], environment: Mapping[str, str]) -> None:
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        section, _, key = variable.removeprefix(PREFIX).lower().partition("_")
        types = get_type_hints(_SECTIONS[section]) if section in _SECTIONS else {}
        if key not in types:
            raise SettingsError(f"{variable} (environment): there is no setting {section}.{key}")
        try:
            words = text.replace(",", " ").split() if types[key] == list[str] else text
            value = msgspec.convert(words, types[key], strict=False)
        except msgspec.ValidationError as error:
            raise SettingsError(f"{variable} (environment): {sentence(error)}") from None
        table = document.setdefault(section, {})
        if isinstance(table, dict):
            table[key] = value
