"""The machine replicated and durable: Raft, journal, snapshots, and the connections between nodes."""

from cluster.api import Cluster, Figures, Listener, NodeStatus, PeerFigures, Pending
from cluster.complaints import Complaints
from cluster.descriptors import reserved as reserved_descriptors
from cluster.endings import restart_cures
from cluster.errors import ApplyFailed, ClusterError, FailStop, LibraryMismatch, OutOfMemory, RaftViolated
from cluster.handshakes import Handshakes
from cluster.histogram import Histogram
from cluster.node import ClusterNode
from cluster.settings import Member, PeerTls, Settings
from cluster.storage_errors import StorageError, StorageInUse
from cluster.tls import Tls

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
