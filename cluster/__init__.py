"""The machine replicated and durable: Raft, journal, snapshots, and the connections between nodes."""

from cluster.api import Cluster, ClusterListener, Figures, NodeStatus, PagingFigures, PeerFigures, Pending
from cluster.damage.file_check import FileCheck, check_files
from cluster.errors import ApplyFailed, ClusterError, FailStop, LibraryMismatch, OutOfMemory, RaftViolated
from cluster.exit_codes import restart_cures
from cluster.limits import ERRAND_BYTES_MAX, reserved_descriptors
from cluster.metrics.histogram import Histogram
from cluster.node import ClusterNode
from cluster.settings import Member, NodeSettings, PeerTls
from cluster.storage.disk_needs import DiskNeeds, disk_needs
from cluster.storage.errors import RejoinNeeded, StorageError, StorageInUse
from cluster.wire.refusal_log import RefusalLog
from cluster.wire.tls import TlsTransport
from cluster.wire.tls_handshakes import Handshakes

__all__ = [
    "ERRAND_BYTES_MAX",
    "ApplyFailed",
    "Cluster",
    "ClusterError",
    "ClusterListener",
    "ClusterNode",
    "DiskNeeds",
    "FailStop",
    "Figures",
    "FileCheck",
    "Handshakes",
    "Histogram",
    "LibraryMismatch",
    "Member",
    "NodeSettings",
    "NodeStatus",
    "OutOfMemory",
    "PagingFigures",
    "PeerFigures",
    "PeerTls",
    "Pending",
    "RaftViolated",
    "RefusalLog",
    "RejoinNeeded",
    "StorageError",
    "StorageInUse",
    "TlsTransport",
    "check_files",
    "disk_needs",
    "reserved_descriptors",
    "restart_cures",
]
