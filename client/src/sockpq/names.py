"""Names of queues, items, groups and keys made of any text: the same text has the same name, others have others.

Characters that the server does not allow are written as `:XX`, the bytes of their UTF-8 in hexadecimal, and so is `:`
itself. A name that would be too long keeps its beginning, followed by `:` and a hash of the whole text.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@-")
SAFE_IN_KEY = SAFE - frozenset("@")
FIRST = SAFE - frozenset("@-")
NAME_MAX = 255
KEY_MAX = 128
GROUP_MAX = 64
HASH_CHARACTERS = 40
DEAD_SUFFIX = "_dead"       # what the server adds to a queue's name for its dead-letter queue


def escape_text(text: str, safe: frozenset[str] = SAFE) -> str:
    """Return the text with all characters but the `safe` ones written as `:XX`; it may be of any length, or empty."""
    return "".join(c if c in safe else "".join(f":{byte:02X}" for byte in c.encode()) for c in text)


def alive(name: str) -> str:
    """Return the queue whose dead-letter queue has this name; any other name is returned unchanged."""
    while name.endswith(DEAD_SUFFIX) and name != DEAD_SUFFIX:
        name = name[: -len(DEAD_SUFFIX)]
    return name


@lru_cache(maxsize=10_000)
def escape_name(text: str, prefix: str = "") -> str:
    """Return the name of a queue, item or topic for this text, at most 255 characters.

    `prefix`: a name's beginning, which is not escaped. What no name may begin with, and the empty text, gets a `+`
    before it, which no escaped text contains.
    """
    name = prefix + escape_text(text)
    if not name or (name[0] not in FIRST and not prefix):
        name = f"+{name}"
    return shortened(name, text, NAME_MAX)


@lru_cache(maxsize=10_000)
def escape_key(text: str) -> str:
    """Return the key of a job for this text, 1 to 128 characters: `:` alone for an empty one."""
    return shortened(escape_text(text, SAFE_IN_KEY) or ":", text, KEY_MAX)


@lru_cache(maxsize=10_000)
def escape_group(text: str) -> str:
    """Return the name of a group for this text, 1 to 64 characters: `:` alone for an empty one."""
    return shortened(escape_text(text, SAFE_IN_KEY) or ":", text, GROUP_MAX)


def shortened(name: str, text: str, most: int) -> str:
    """Return the name, or its beginning with a hash of the text if it has more than `most` characters."""
    if len(name) <= most:
        return name
    kept = min(200, most - HASH_CHARACTERS - 1)
    return f"{name[:kept]}:{sha256(text.encode()).hexdigest()[:HASH_CHARACTERS]}"
