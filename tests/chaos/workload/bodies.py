"""Bodies of jobs: each has a name of its own, and the rest follows from the name, so that a changed byte shows.

Most are small; some are so large that they travel in several segments and some in several pieces between nodes. A name
that ends with LARGE is that of one that is replicated in fragments.
"""

from __future__ import annotations

import zlib

COPIED = ("copied1", "copied2", "copied3")        # queues that get the same data by one PUT
LENGTHS = (0, 10, 30, 100, 100, 300, 1000, 3000, 20_000)
HUGE, HUGE_ONE_IN = 300_000, 500
LARGE, LARGE_BYTES, LARGER_BYTES_MAX = "~", 600_000, 900_000


def body(name: str) -> bytes:
    """Return the data of the job `name`, which has no colon in it."""
    seed = zlib.crc32(name.encode())
    length = HUGE if seed % HUGE_ONE_IN == 0 else LENGTHS[seed % len(LENGTHS)]
    if name.endswith(LARGE):
        length = LARGE_BYTES + seed % LARGER_BYTES_MAX
    pattern = b"%08x" % seed
    return f"{name}:".encode() + (pattern * (length // len(pattern) + 1))[:length]


def name_of(data: bytes) -> str:
    """Return the name of the job with these data; a text that is no name if `body` did not make them."""
    name = data[:100].split(b":", 1)[0].decode("ascii", "replace")
    return name if body(name) == data else f"changed: {data[:100]!r} ({len(data)} bytes)"


def job_of(data: bytes, queue: str) -> str:
    """Return the name of the job with these data in this queue: each copy has a name of its own."""
    return copy_of(name_of(data), queue) if queue in COPIED else name_of(data)


def copy_of(name: str, queue: str) -> str:
    """Return the name of the copy in this queue."""
    return f"{name}@{queue}"


def original(copy: str) -> str:
    """Return the name that the data of a copy contain."""
    return copy.rpartition("@")[0]
