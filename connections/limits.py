"""Connection limits of all server processes, each with its reason, and the configurable ones."""

from __future__ import annotations

from typing import Protocol

KIB = 1024
MIB = 1024 * KIB

# Memory held for all clients together (memory_account.py), as a share of the memory mark, and its minimum. Above
# HELD_HIGH_PERCENT of it, clients that are ahead are not read, and a body is taken only if it has already arrived; if
# that lasts for HELD_HIGH_S, the clients that hold most are disconnected until HELD_RELIEVED_PERCENT is left.
HELD_SHARE_PERCENT = 25
HELD_BYTES_MIN = 64 * MIB
HELD_HIGH_PERCENT = 75
HELD_HIGH_S = 1.0
HELD_RELIEVED_PERCENT = 50

# The kernel's send buffer for one client; the kernel allocates twice as much, for its own overhead. Without a limit it
# lets the buffer grow to megabytes, which we could not account for. This much fills a line of 1 Gbit/s with a round
# trip of half a millisecond, and sends 3 MB/s with a round trip of 20 ms.
SEND_BUFFER_BYTES = 64 * KIB

# That is 300 kB/s with a round trip of 200 ms, so a copy in another region has more: the kernel may let its buffer grow
# to what the line carries in a round trip (4 MiB, unless net.ipv4.tcp_wmem says otherwise). An older kernel, which
# cannot, is asked for this much, and gives what net.core.wmem_max allows.
DISTANT_SEND_BUFFER_BYTES = 2 * MIB

# The kernel's memory for a connection is counted from this much on: an idle connection has less.
KERNEL_BYTES_MIN = 16 * KIB

# Clients whose host has vanished are dropped within 30 s: TCP keep-alive probes idle ones, and one that owes a TCP
# acknowledgement, perhaps for a job sent to it, can be silent for SILENT_S until the next sweep. (TCP_USER_TIMEOUT
# would also kill clients that are alive but not reading.)
KEEPALIVE_IDLE_S = 10
KEEPALIVE_INTERVAL_S = 5
KEEPALIVE_PROBES = 3
SILENT_S = 20.0

# Interval at which connections are checked for timeouts; shorter only for very short timeouts. 10,000 cost 20 ms.
SWEEP_S, SWEEP_S_MIN = 5.0, 0.5

# Connections checked before clients get their turn.
SWEEP_PIECE = 500

# Slots beyond connections_max, reserved for this machine and for administrators on trial; and how many clients of one
# address can be on such a trial at a time.
RESERVED_SLOTS = 16
TRIALS_PER_ADDRESS = 2


class SlotLimits(Protocol):
    """The limits on slots for connections."""

    @property
    def connections_max(self) -> int:
        """The maximum number of concurrent clients."""

    @property
    def connections_per_address_max(self) -> int:
        """Maximum for one remote address; 0 for half of connections_max."""


class ConnectionLimits(SlotLimits, Protocol):
    """The configurable limits; 0 disables a timeout."""

    @property
    def hello_timeout_s(self) -> int:
        """The maximum time in seconds from connecting to the first line."""

    @property
    def idle_timeout_s(self) -> int:
        """The maximum time in seconds between two commands."""

    @property
    def auth_timeout_s(self) -> int:
        """The maximum time in seconds from connecting to a successful AUTH, where that is required."""

    @property
    def command_timeout_s(self) -> int:
        """Time from the first byte of a command to its last."""

    @property
    def answer_timeout_s(self) -> int:
        """Time for which a client may leave its answers unread."""
