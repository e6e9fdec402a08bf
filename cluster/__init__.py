"""The machine replicated and durable: Raft, journal, snapshots, and the connections between nodes."""

from cluster.api import Cluster, Figures, Listener, NodeStatus, PeerFigures, Pending
from cluster.errors import ApplyFailed, ClusterError, FailStop, LibraryMismatch, RaftViolated
from cluster.histogram import Histogram
from cluster.node import ClusterNode
from cluster.settings import Member, Settings
from cluster.storage_errors import StorageError

__all__ = [
    "ApplyFailed",
    "Cluster",
    "ClusterError",
    "ClusterNode",
    "FailStop",
    "Figures",
    "Histogram",
    "LibraryMismatch",
    "Listener",
    "Member",
    "NodeStatus",
    "PeerFigures",
    "Pending",
    "RaftViolated",
    "Settings",
    "StorageError",
]
