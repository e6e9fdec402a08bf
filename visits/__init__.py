"""Clients as every server here keeps them: places, timeouts, memory, and accepting connections.

A listener gives each connection a `Visit` in the `House` that all doors of the process share. Imports nothing else of
this project, so that other programs than nodes can use it as well.
"""

from sockpqd.visits.addresses import is_loopback
from sockpqd.visits.house import House
from sockpqd.visits.limits import (
    ACCEPTS_PER_ROUND,
    FURTHER_PLACES,
    HELD_BYTES_MIN,
    HELD_HIGH_S,
    HELD_SHARE_PERCENT,
    SEND_BUFFER_BYTES,
    SILENT_S,
    SWEEP_S,
    TRIALS_PER_ADDRESS,
    VisitLimits,
)
from sockpqd.visits.listener import Listener, open_sockets
from sockpqd.visits.memory_account import Account, Holder, held_bytes_max
from sockpqd.visits.places import Place, Places, address_of
from sockpqd.visits.timeouts import ClientTimeouts, Turn, sweep_s
from sockpqd.visits.visit import Guest, Visit

__all__ = [
    "ACCEPTS_PER_ROUND", "FURTHER_PLACES", "HELD_BYTES_MIN", "HELD_HIGH_S", "HELD_SHARE_PERCENT", "SEND_BUFFER_BYTES",
    "SILENT_S", "SWEEP_S", "TRIALS_PER_ADDRESS", "Account", "ClientTimeouts", "Guest", "Holder", "House", "Listener",
    "Place", "Places", "Turn", "Visit", "VisitLimits", "address_of", "held_bytes_max", "is_loopback", "open_sockets",
    "sweep_s",
]
