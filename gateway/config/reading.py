"""Reads the configuration: a TOML file, overridden by `SOCKPQD_<SECTION>_<KEY>` in the environment, then validated.

Every error is a single sentence that names the key and the reason.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from sockpqd.gateway.config.checks import check
from sockpqd.gateway.config.errors import ConfigError
from sockpqd.gateway.config.sections import (
    Auth,
    BeanstalkdSection,
    Config,
    FeedSection,
    GatewaySection,
    Listen,
    Log,
    Node,
    QueueSection,
    Raft,
    ReplicaSection,
    Tls,
)
from sockpqd.gateway.limits import Limits


def load(path: Path, environment: Mapping[str, str]) -> Config:
    """Read the configuration from the file at `path`; raises ConfigError."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return read(document, environment)


def read(document: dict[str, Any], environment: Mapping[str, str]) -> Config:
    """Read the configuration from a TOML document; raises ConfigError."""
    _override(document, environment)
    _refuse_nul(document, "")
    try:
        config = msgspec.convert(document, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(_sentence(str(error))) from None
    check(config)
    return config


def _refuse_nul(value: object, key: str) -> None:
    """Refuse a NUL in any string (TOML's \\u0000): most are paths and addresses, where the system cannot take it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _refuse_nul(inner, _join(key, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _refuse_nul(inner, f"{key}[{index}]")
    elif isinstance(value, str) and "\0" in value:
        raise ConfigError(f"{key}: must not contain a NUL character")


# ---- the environment

_SECTIONS: dict[str, type[Struct]] = {
    "node": Node, "listen": Listen, "queue": QueueSection, "limits": Limits, "raft": Raft, "gateway": GatewaySection,
    "tls": Tls, "auth": Auth, "log": Log, "beanstalkd": BeanstalkdSection,
    "feed": FeedSection, "replica": ReplicaSection,
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
            words = text.replace(",", " ").split() if types[key] == tuple[str, ...] else text
            value = msgspec.convert(words, types[key], strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{variable} (environment): {_sentence(str(error))}") from None
        table = document.setdefault(section, {})
        if isinstance(table, dict):
            table[key] = value


# ---- rewording msgspec's errors

_PLACE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")


def _sentence(message: str) -> str:
    """Reword a msgspec error: `limits.foo: unknown key`, not "Object contains unknown field `foo` - at `$.limits`"."""
    match = _PLACE.fullmatch(message)
    assert match is not None
    what, path = match["what"], match["path"] or ""
    if inner := _UNKNOWN.fullmatch(what):
        return f"{_join(path, inner[1])}: unknown key{_meant(path, inner[1])}"
    if inner := _MISSING.fullmatch(what):
        return f"{_join(path, inner[1])}: this key is required"
    what = what.replace("`", "")
    return f"{path}: {what[:1].lower()}{what[1:]}" if path else f"{what[:1].lower()}{what[1:]}"


def _meant(path: str, key: str) -> str:
    """Return the key of this section that is most like the one given, as a question; "" if none is."""
    known = get_type_hints(Config if not path else _SECTIONS[path]) if path in ("", *_SECTIONS) else ()
    likely = difflib.get_close_matches(key, known, 1)
    return f" (is {_join(path, likely[0])} meant?)" if likely else ""


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
