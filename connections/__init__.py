"""Client connections of any server process: slots, timeouts, memory, and the acceptance of new ones.

A listener registers each connection as an `AcceptedConnection` with the `ConnectionManager` of the process. Imports no
other package of the server, so that other programs can use it too.
"""

from sockpqd.connections.accepted import AcceptedConnection, ManagedConnection
from sockpqd.connections.accepting import ACCEPTS_PER_TURN, open_sockets
from sockpqd.connections.addresses import is_loopback
from sockpqd.connections.limits import (
    HELD_BYTES_MIN,
    HELD_HIGH_S,
    HELD_SHARE_PERCENT,
    RESERVED_SLOTS,
    SEND_BUFFER_BYTES,
    SILENT_S,
    SWEEP_S,
    TRIALS_PER_ADDRESS,
    ConnectionLimits,
)
from sockpqd.connections.listener import Listener, unusable
from sockpqd.connections.manager import ConnectionManager
from sockpqd.connections.memory_account import Holder, MemoryAccount, held_bytes_max
from sockpqd.connections.slots import ConnectionSlots, SlotKind, address_of
from sockpqd.connections.tcp import set_up
from sockpqd.connections.timeouts import ClientTimeouts, Expected, sweep_s

__all__ = [
    "ACCEPTS_PER_TURN",
    "HELD_BYTES_MIN",
    "HELD_HIGH_S",
    "HELD_SHARE_PERCENT",
    "RESERVED_SLOTS",
    "SEND_BUFFER_BYTES",
    "SILENT_S",
    "SWEEP_S",
    "TRIALS_PER_ADDRESS",
    "AcceptedConnection",
    "ClientTimeouts",
    "ConnectionLimits",
    "ConnectionManager",
    "ConnectionSlots",
    "Expected",
    "Holder",
    "Listener",
    "ManagedConnection",
    "MemoryAccount",
    "SlotKind",
    "address_of",
    "held_bytes_max",
    "is_loopback",
    "open_sockets",
    "set_up",
    "sweep_s",
    "unusable",
]
