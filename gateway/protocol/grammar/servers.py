"""The grammar of CLUSTER, MAP, SNAPSHOT and CLONE, and of the commands that servers of the original send each other."""

from __future__ import annotations

import re

from sockpqd.core import MAP_BYTES_MAX, MAP_VERSION_MAX, Put, SetMap
from sockpqd.gateway.protocol.arguments import (
    LENGTH,
    SIGNED_MAX,
    ArgumentError,
    address,
    between,
    milliseconds,
    name,
    node,
    signed,
    unsigned,
)
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar.jobs.puts import put, put_wait
from sockpqd.gateway.protocol.responses import NOT_SUPPORTED, TOO_LARGE

_version = between(1, MAP_VERSION_MAX)
_entry = between(1, SIGNED_MAX)
PROMOTE_GRACE_MS = 60_000       # what leases, sessions, holds and TTLs get beyond what they had left
_PROMOTE = "CLUSTER PROMOTE takes nothing, or GRACE and seconds"
_ID = re.compile(rb"[0-9A-Fa-f]{16}")
_HASH = re.compile(rb"[0-9A-Fa-f]{32}")


def between_servers(words: Words) -> Command:
    """A verb alone, or with `<n> <IP> <port>` as sent only between servers of the original."""
    if len(words) == 1:
        return Command()
    if len(words) != 4 or unsigned(words[1]) == 0 or not 0 < unsigned(words[3]) < 65536:
        raise ArgumentError(f"{words[0].upper().decode()} takes no arguments")
    return Command(answer=NOT_SUPPORTED)


def snapshot(words: Words) -> Command:
    """SNAPSHOT, SNAPSHOT USERS, or what servers of the original send each other."""
    if len(words) == 2 and words[1].upper() == b"USERS":
        return Command(arguments=("USERS",))
    return between_servers(words)


def clone(words: Words) -> Command:
    """CLONE <length>: a snapshot of that many bytes follows."""
    if len(words) != 2:
        raise ArgumentError("CLONE takes a length")
    return Command(length=unsigned(words[1], LENGTH))


def sync(words: Words) -> Command:
    """SYNC, the original's replication: read completely, then refused."""
    form = words[1].upper() if len(words) > 1 else b""
    if form == b"PUT":
        job = put(words[1:]) or put_wait(words[1:])
        if type(job.operation) is not Put or job.within_ms is not None:     # the original has no options
            raise ArgumentError("SYNC PUT has no options")
        return Command(length=job.length, answer=NOT_SUPPORTED)
    if form == b"GET":
        at = 3 if len(words) == 6 and words[2] == b"LAST" else 2
        if len(words) != at + 3:
            raise ArgumentError("SYNC GET takes LAST or nothing, a queue and two numbers")
        name(words[at])
        unsigned(words[at + 1])
        signed(words[at + 2])
    elif form in (b"DONE", b"LATER") and len(words) == 3:
        unsigned(words[2])
    else:
        raise ArgumentError("SYNC is followed by PUT, GET, DONE or LATER")
    return Command(answer=NOT_SUPPORTED)


def map_set(words: Words) -> Command:
    """MAP SET <version> <length>: the map follows."""
    if len(words) != 3:
        raise ArgumentError("MAP SET takes a version and a length")
    version, length = _version(words[1]), unsigned(words[2], LENGTH)
    return Command(SetMap(version, b""), length, "text", answer=TOO_LARGE if length > MAP_BYTES_MAX else None)


def cluster_promote(words: Words) -> Command:
    """CLUSTER PROMOTE. Arguments: the grace in milliseconds."""
    if len(words) == 1:
        return Command(arguments=(PROMOTE_GRACE_MS,))
    if len(words) != 3 or words[1] != b"GRACE":
        raise ArgumentError(_PROMOTE)
    return Command(arguments=(milliseconds(words[2]),))


def cluster_fenced(words: Words) -> Command:
    """CLUSTER FENCED. Arguments: the id of the replica."""
    if len(words) != 2 or not _ID.fullmatch(words[1]):
        raise ArgumentError("CLUSTER FENCED takes the id of a replica: 16 hexadecimal digits, as CLUSTER ID shows")
    return Command(arguments=(words[1].decode().lower(),))


def cluster_feed(words: Words) -> Command | None:
    """CLUSTER FEED. Arguments: the first entry, then index and hash of a checkpoint, None and "" without one."""
    if len(words) > 1 and words[1] == b"SNAPSHOT":
        return None
    if len(words) not in (2, 4):
        raise ArgumentError("CLUSTER FEED takes an index, and perhaps a checkpoint: its index and its hash")
    index = _entry(words[1])
    if len(words) == 2:
        return Command(arguments=(index, None, ""))
    at = _entry(words[2])
    if at >= index:
        raise ArgumentError("the checkpoint of CLUSTER FEED must be before its index")
    if not _HASH.fullmatch(words[3]):
        raise ArgumentError("the hash of a checkpoint must be 32 hexadecimal digits")
    return Command(arguments=(index, at, words[3].decode().lower()))


def cluster_feed_snapshot(words: Words) -> Command:
    """CLUSTER FEED SNAPSHOT. Arguments: none, or which snapshot to continue, and the bytes of it that are there."""
    if len(words) == 2:
        return Command()
    if len(words) != 4:
        raise ArgumentError("CLUSTER FEED SNAPSHOT takes nothing, or the index of a snapshot and an offset")
    return Command(arguments=(_entry(words[2]), unsigned(words[3], "the offset must be")))


def cluster_add(words: Words) -> Command:
    """CLUSTER ADD. Arguments: node, "host:port" for the other nodes and for clients."""
    if len(words) != 6:
        raise ArgumentError("CLUSTER ADD takes a node, and host and port twice: for nodes, for clients")
    return Command(arguments=(node(words[1]), address(words[2], words[3]), address(words[4], words[5])))


def cluster_remove(words: Words) -> Command:
    """CLUSTER REMOVE. Arguments: node."""
    if len(words) != 2:
        raise ArgumentError("CLUSTER REMOVE takes a node")
    return Command(arguments=(node(words[1]),))


def cluster_transfer(words: Words) -> Command:
    """CLUSTER TRANSFER. Arguments: node, None for the most up-to-date one."""
    if len(words) > 2:
        raise ArgumentError("CLUSTER TRANSFER takes one node, or nothing")
    return Command(arguments=(node(words[1]) if len(words) == 2 else None,))
