"""The machine replicated and durable: Raft, journal, snapshots, and the connections between nodes."""

from sockpqd.cluster.api import (
    Cluster,
    ClusterListener,
    Figures,
    HostFigures,
    NodeStatus,
    PagingFigures,
    PeerFigures,
    Pending,
)
from sockpqd.cluster.damage.data_check import check_data
from sockpqd.cluster.damage.file_check import FileCheck, check_files
from sockpqd.cluster.errors import ApplyFailed, ClusterError, FailStop, LibraryMismatch, OutOfMemory, RaftViolated
from sockpqd.cluster.exit_codes import restart_cures
from sockpqd.cluster.limits import CALL_BYTES_MAX, reserved_descriptors
from sockpqd.cluster.metrics.histogram import Histogram
from sockpqd.cluster.node import ClusterNode
from sockpqd.cluster.settings import Member, NodeSettings, PeerTls
from sockpqd.cluster.storage.disk_needs import DiskNeeds, disk_needs
from sockpqd.cluster.storage.errors import RejoinNeeded, StorageError, StorageInUse
from sockpqd.cluster.wire.refusal_log import RefusalLog
from sockpqd.cluster.wire.tls import TlsTransport
from sockpqd.cluster.wire.tls_handshakes import Handshakes

__all__ = [
    "CALL_BYTES_MAX",
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
    "HostFigures",
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
    "check_data",
    "check_files",
    "disk_needs",
    "reserved_descriptors",
    "restart_cures",
]
