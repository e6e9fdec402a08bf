"""What a cluster node is told by its configuration."""

from __future__ import annotations

import ssl
from pathlib import Path

from msgspec import Struct

from core import Then


class Member(Struct, frozen=True):
    """One configured node. `client` is what clients dial, `peer` what this node dials to reach it ("host:port")."""

    name: str
    client: str
    peer: str


class PeerTls(Struct):
    """TLS between nodes. Both are replaced when certificates are read again; new connections use what is here then."""

    listening: ssl.SSLContext
    dialing: ssl.SSLContext


class Settings(Struct, frozen=True):
    """All a ClusterNode needs to know. Times in milliseconds; `lease_ms` must be below `election_min_ms`."""

    name: str
    data_dir: Path
    peer_listen: str
    members: tuple[Member, ...]
    version: str
    heartbeat_ms: int = 50
    election_min_ms: int = 600
    election_max_ms: int = 1000
    lease_ms: int = 550
    failover_grace_ms: int = 10_000
    expire_default: Then = Then.LATER
    bootstrap: bool = False
    memory_mark_bytes: int = 0          # more memory in use, or less free on disk: no further jobs (0: no mark)
    disk_free_bytes_min: int = 0
    tls: PeerTls | None = None

    def member(self, name: str) -> Member:
        """The member of this name; raises KeyError."""
        for member in self.members:
            if member.name == name:
                return member
        raise KeyError(name)
