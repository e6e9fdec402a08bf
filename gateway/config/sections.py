"""The sections of the configuration and their defaults. CONFIGURATION.md documents each key."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from sockpqd.gateway.limits import Limits


class Node(Struct, frozen=True, forbid_unknown_fields=True):
    """[node]: the name of this node, its data directory, and what it does when that is damaged."""

    name: str
    data_dir: str
    on_damage: str | None = None    # "rejoin" or "stop"; None: "rejoin" in a cluster of three or more
    rejoins_per_hour: int = 3       # more often it stops; 0: no limit


class LegacyListen(Struct, frozen=True, forbid_unknown_fields=True):
    """[[listen.legacy]]: a port without TLS for clients that cannot authenticate."""

    address: str
    user: str                           # the user they act as
    networks: tuple[str, ...] = ()      # the networks that may connect ("10.0.0.0/24"); empty: all


class Listen(Struct, frozen=True, forbid_unknown_fields=True):
    """[listen]: "host:port" for clients, for the other nodes and for HTTP."""

    client: str
    peer: str
    http: str | None = None
    hosts: tuple[str, ...] = ()         # further names by which clients of `http` may ask
    # At `http`; "read": without actions; None: only if the address is loopback, or users are required.
    dashboard: bool | Literal["read"] | None = None
    insecure: bool = False              # allow non-loopback addresses without protection
    legacy: tuple[LegacyListen, ...] = ()
    beanstalkd: str | None = None       # for clients of beanstalkd; ":11300" is the port on all addresses


class Tls(Struct, frozen=True, forbid_unknown_fields=True):
    """[tls]: PEM files. Client ports use TLS; nodes also authenticate each other by certificates signed by `ca`."""

    cert: str                           # of this node, for its name and the addresses clients dial
    key: str
    ca: str                             # certificates signed by it identify nodes
    client_cert: str | None = None      # presented to clients instead of `cert`, with its key
    client_key: str | None = None


class Auth(Struct, frozen=True, forbid_unknown_fields=True):
    """[auth]: with `users_file`, clients have to authenticate."""

    users_file: str | None = None       # TOML, mode 0600


class MemberSection(Struct, frozen=True, forbid_unknown_fields=True):
    """[[cluster.members]]: a node of the cluster; this one is included."""

    name: str
    client: str                 # what clients dial
    peer: str                   # what this node dials to reach it; a proxy's address will do


class ClusterSection(Struct, frozen=True, forbid_unknown_fields=True):
    """[cluster]: its members."""

    members: tuple[MemberSection, ...]


class QueueSection(Struct, frozen=True, forbid_unknown_fields=True):
    """[queue]: defaults of queues."""

    expire_default: str = "later"   # "later" or "done": what happens to a job whose lease ends; only for a new cluster


class Raft(Struct, frozen=True, forbid_unknown_fields=True):
    """[raft]: timeouts, in milliseconds, and the feature level."""

    heartbeat_ms: int = 50
    election_min_ms: int = 600
    election_max_ms: int = 1000
    lease_ms: int = 550
    failover_grace_ms: int = 10_000
    feature_level_max: int = 0          # the cluster's level is not raised beyond that; 0: no limit
    prefer: int = 50                    # 1 to 100: a leader hands over to a node with more


class GatewaySection(Struct, frozen=True, forbid_unknown_fields=True):
    """[gateway]: behaviour towards clients."""

    offline_close: bool = True      # close after `500` if the leader has changed since the client connected


class BeanstalkdSection(Struct, frozen=True, forbid_unknown_fields=True):
    """[beanstalkd]: the listener of `listen.beanstalkd`."""

    user: str | None = None             # the user its clients act as, needed where there are users
    networks: tuple[str, ...] = ()      # the networks that may connect; empty: all
    tls: bool = False                   # its clients use TLS, with the certificate of the client port
    job_bytes_max: int = 65_535         # the largest job that is accepted


class Log(Struct, frozen=True, forbid_unknown_fields=True):
    """[log]: the log on standard error."""

    format: str = "auto"                # "json", "text", or "auto": text on a terminal, else json
    level: str = "info"                 # "debug", "info", "warning" or "error"
    when_full: str = "drop"             # lines that cannot be written are dropped and counted, or waited for ("wait")
    audit_file: str | None = None       # the lines of the audit log go there instead; reopened at SIGHUP


class FeedSection(Struct, frozen=True, forbid_unknown_fields=True):
    """[feed]: what this cluster does for its copy in another region."""

    keep_bytes: int = 0                 # of the journal, beyond what this node needs; goes first when room is short
    replica: str | None = None          # the id of the cluster that may fence this one (CLUSTER FENCED)


class ReplicaSection(Struct, frozen=True, forbid_unknown_fields=True):
    """[replica]: the cluster of which this one is a copy, and how its feed is read."""

    of: str = ""                        # "host:port,..": client ports of the origin; "": this cluster is no copy
    user: str | None = None             # with the right admin there, and
    secret_file: str | None = None      # a file with its secret, mode 0600
    ca: str | None = None               # PEM: who signed the origin's certificates; without it there is no TLS


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration of a node."""

    node: Node
    listen: Listen
    cluster: ClusterSection
    queue: QueueSection = field(default_factory=QueueSection)
    limits: Limits = field(default_factory=Limits)
    raft: Raft = field(default_factory=Raft)
    gateway: GatewaySection = field(default_factory=GatewaySection)
    tls: Tls | None = None
    auth: Auth = field(default_factory=Auth)
    log: Log = field(default_factory=Log)
    beanstalkd: BeanstalkdSection = field(default_factory=BeanstalkdSection)
    feed: FeedSection = field(default_factory=FeedSection)
    replica: ReplicaSection = field(default_factory=ReplicaSection)
