"""Free ports on loopback that stay free."""

from __future__ import annotations

import contextlib
import random
import socket
from collections import deque
from pathlib import Path

HOST = "127.0.0.1"
PORT_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST = 12_000
RECENT = 1000           # so many of the last ports are not returned again: who asked for them may not listen yet

_recent: deque[int] = deque(maxlen=RECENT)


def free_ports(count: int) -> list[int]:
    """Find `count` different ports that are free now.

    They are below the range of ephemeral ports: while a node is down, no outgoing connection can take its port, and
    none can connect to itself. None of them is among the last RECENT that this process was given, even if unused: they
    may belong to nodes that start later. Another program may still take one before it is used.
    """
    ports: list[int] = []
    with contextlib.ExitStack() as held:    # all are held until the end, so that none is returned twice
        while len(ports) < count:
            port = random.SystemRandom().randrange(LOWEST, _highest())
            if port in _recent:
                continue
            listener = held.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((HOST, port))
                listener.listen(1)
            except OSError:
                continue
            ports.append(port)
            _recent.append(port)
    return ports


def _highest() -> int:
    try:
        lowest_outgoing = int(PORT_RANGE_FILE.read_text().split()[0])
    except (OSError, ValueError):
        return 32_768
    return lowest_outgoing if lowest_outgoing > LOWEST + 2000 else 65_536
