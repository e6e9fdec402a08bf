"""The configuration of a cluster node."""

from __future__ import annotations

import ssl
from pathlib import Path

from msgspec import Struct

from sockpqd.core import Then


class Member(Struct, frozen=True):
    """A configured node. Clients dial `client`; this node dials `peer` ("host:port" both)."""

    name: str
    client: str
    peer: str


class PeerTls(Struct):
    """TLS contexts between nodes, replaced when certificates are reloaded; only new connections use the new ones."""

    listening: ssl.SSLContext
    dialing: ssl.SSLContext


class NodeSettings(Struct, frozen=True):
    """The settings of a ClusterNode. Times in milliseconds; `lease_ms` must be below `election_min_ms`."""

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
    memory_mark_bytes: int = 0          # with more memory in use no more jobs are accepted; 0: no limit
    disk_free_bytes_min: int = 0        # nor with less free space on the disk
    hot_bytes: int = 0              # waiting jobs in memory, about; the others are on the disk. 0: all in memory
    tls: PeerTls | None = None
    rejoin: bool = False                # when its files are damaged; False: it stops
    rejoins_per_hour: int = 3           # more often it stops; 0: no limit
    feature_level_max: int = 0          # the cluster's level is not raised beyond that; 0: no limit
    http_port: int = 0                  # of this node's pages for browsers, which the others link to; 0: none
    feed_keep_bytes: int = 0            # of the journal, beyond what this node needs, for copies in other regions
    replica: bool = False               # the cluster follows an origin in another region, until it is promoted
    prefer: int = 50                    # 1 to 100: a leader hands over to a node with more

    def member(self, name: str) -> Member:
        """The member of this name; raises KeyError."""
        for member in self.members:
            if member.name == name:
                return member
        raise KeyError(name)
