"""The machine replicated and durable: Raft, journal, snapshots, and the connections between nodes."""

from cluster.api import Cluster, Figures, Listener, NodeStatus, PeerFigures, Pending
from cluster.errors import ApplyFailed, ClusterError, FailStop, LibraryMismatch, OutOfMemory, RaftViolated
from cluster.exit_codes import restart_cures
from cluster.limits import reserved_descriptors
from cluster.metrics.histogram import Histogram
from cluster.node import ClusterNode
from cluster.settings import Member, PeerTls, Settings
from cluster.storage.errors import StorageError, StorageInUse
from cluster.wire.refusal_log import Complaints
from cluster.wire.tls import Tls
from cluster.wire.tls_handshakes import Handshakes

__all__ = [
    "ApplyFailed",
    "Cluster",
    "ClusterError",
    "ClusterNode",
    "Complaints",
    "FailStop",
    "Figures",
    "Handshakes",
    "Histogram",
    "LibraryMismatch",
    "Listener",
    "Member",
    "NodeStatus",
    "OutOfMemory",
    "PeerFigures",
    "PeerTls",
    "Pending",
    "RaftViolated",
    "Settings",
    "StorageError",
    "StorageInUse",
    "Tls",
    "reserved_descriptors",
    "restart_cures",
]
