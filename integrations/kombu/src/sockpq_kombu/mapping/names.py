"""Names of queues, exchanges and routing keys as the server allows them, by the rules of sockpq.names."""

from __future__ import annotations

from functools import lru_cache

from sockpq.names import NAME_MAX, escape_name, escape_text, shortened

EMPTY = ":"             # the routing key without a character


def name_of(prefix: str, text: str) -> str:
    """Return the name of a queue, topic or channel; the unchanged prefix comes before it."""
    return escape_name(text, prefix)


@lru_cache(maxsize=10_000)
def route_of(key: str) -> str:
    """Return the sockpqd routing key for an AMQP one."""
    return shortened(escape_text(key), key, NAME_MAX) or EMPTY


def pattern_of(key: str) -> str:
    """Return the key of a binding to a topic exchange: `*` and `#` are wildcards where they are whole words."""
    words = [word if word in ("*", "#") else escape_text(word) for word in key.split(".")]
    return shortened(".".join(words), key, NAME_MAX) or EMPTY


def prefix_of(virtual_host: str | None, prefix: str = "") -> str:
    """Return the prefix of all names of a virtual host."""
    host = (virtual_host or "").strip("/")
    return prefix + (f"{escape_text(host)}." if host else "")
