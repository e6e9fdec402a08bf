"""Names of queues, exchanges and routing keys as the server allows them."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@-")
FIRST = SAFE - frozenset(".@-")
NAME_MAX = 255
GROUP_MAX = 64
EMPTY = ":"             # the routing key without a character


@lru_cache(maxsize=10_000)
def name_of(prefix: str, text: str) -> str:
    """The name of a queue, topic or channel: bytes that names may not contain are written `:XX`, in hexadecimal."""
    name = prefix + _escaped(text)
    if not name or name[0] not in FIRST:
        name = f"_{name}"
    return _shortened(name, text)


@lru_cache(maxsize=10_000)
def route_of(key: str) -> str:
    """The sockpqd routing key for an AMQP one."""
    return _shortened(_escaped(key), key) or EMPTY


def pattern_of(key: str) -> str:
    """The key of a binding to a topic exchange: `*` and `#` are wildcards where they are whole words."""
    words = [word if word in ("*", "#") else _escaped(word) for word in key.split(".")]
    return _shortened(".".join(words), key) or EMPTY


def prefix_of(virtual_host: str | None, prefix: str = "") -> str:
    """Return the prefix of all names of a virtual host."""
    host = (virtual_host or "").strip("/")
    return prefix + (f"{_escaped(host)}." if host else "")


@lru_cache(maxsize=10_000)
def group_of(text: str) -> str:
    """A group of jobs: its name has no @, unlike a queue, and 64 characters at most."""
    name = _escaped(text).replace("@", ":40")
    return name if len(name) <= GROUP_MAX else f"{name[:23]}:{sha256(text.encode()).hexdigest()[:40]}"


def _escaped(text: str) -> str:
    return "".join(c if c in SAFE else "".join(f":{byte:02X}" for byte in c.encode()) for c in text)


def _shortened(name: str, text: str) -> str:
    if len(name) <= NAME_MAX:
        return name
    return f"{name[:200]}:{sha256(text.encode()).hexdigest()[:40]}"
