"""The sections of the configuration and their defaults. CONFIGURATION.md tells users what each key means."""

from __future__ import annotations

from msgspec import Struct, field

from gateway.limits import Limits


class Node(Struct, frozen=True, forbid_unknown_fields=True):
    """[node]: who this node is."""

    name: str
    data_dir: str


class LegacyListen(Struct, frozen=True, forbid_unknown_fields=True):
    """[[listen.legacy]]: a port without TLS for clients that cannot say AUTH."""

    address: str
    user: str                           # in whose name they act
    networks: tuple[str, ...] = ()      # who may connect ("10.0.0.0/24"); none: everybody


class Listen(Struct, frozen=True, forbid_unknown_fields=True):
    """[listen]: "host:port" for clients, for the other nodes and for HTTP."""

    client: str
    peer: str
    http: str | None = None
    insecure: bool = False              # other than loopback addresses although strangers could do harm there
    legacy: tuple[LegacyListen, ...] = ()


class Tls(Struct, frozen=True, forbid_unknown_fields=True):
    """[tls]: files in PEM. Clients are spoken to in TLS; nodes also show each other certificates signed by `ca`."""

    cert: str                           # of this node, for its name and for what clients dial
    key: str
    ca: str                             # whose certificates make a node
    client_cert: str | None = None      # shown to clients instead of `cert`, with its key
    client_key: str | None = None


class Auth(Struct, frozen=True, forbid_unknown_fields=True):
    """[auth]: with `users_file`, nobody may do anything before AUTH."""

    users_file: str | None = None       # TOML, mode 0600


class Member(Struct, frozen=True, forbid_unknown_fields=True):
    """[[cluster.members]]: a node of the cluster; this one is included."""

    name: str
    client: str                 # what clients dial
    peer: str                   # what this node dials to reach it; a proxy's address will do


class ClusterSection(Struct, frozen=True, forbid_unknown_fields=True):
    """[cluster]."""

    members: tuple[Member, ...]


class Queue(Struct, frozen=True, forbid_unknown_fields=True):
    """[queue]."""

    expire_default: str = "later"   # "later" or "done": what becomes of a job whose lease ends; only for a new cluster


class Raft(Struct, frozen=True, forbid_unknown_fields=True):
    """[raft], in milliseconds."""

    heartbeat_ms: int = 50
    election_min_ms: int = 600
    election_max_ms: int = 1000
    lease_ms: int = 550
    failover_grace_ms: int = 10_000


class GatewaySection(Struct, frozen=True, forbid_unknown_fields=True):
    """[gateway]."""

    offline_close: bool = True      # close after `500` when another leader is known than when the client came


class Log(Struct, frozen=True, forbid_unknown_fields=True):
    """[log]: to standard error."""

    format: str = "auto"                # "json", "text", or "auto": text on a terminal, else json
    level: str = "info"                 # "debug", "info", "warning" or "error"


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration of a node."""

    node: Node
    listen: Listen
    cluster: ClusterSection
    queue: Queue = field(default_factory=Queue)
    limits: Limits = field(default_factory=Limits)
    raft: Raft = field(default_factory=Raft)
    gateway: GatewaySection = field(default_factory=GatewaySection)
    tls: Tls | None = None
    auth: Auth = field(default_factory=Auth)
    log: Log = field(default_factory=Log)
