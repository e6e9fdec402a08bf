"""Free ports on loopback that stay free, among all processes that ask here."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections import deque
from pathlib import Path

HOST = "127.0.0.1"
PORT_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST = 12_000
BLOCK = 64              # ports that are claimed together
OWN_MAX = 1024          # ports of a process: a node that was given one of the last of these may not listen yet
LOOKS_MAX = 4 * OWN_MAX # for free ones, where other programs have taken some

_claims: dict[int, socket.socket] = {}  # of this process, by the first port of each block
_unused: deque[int] = deque()           # ports of these blocks that were not returned yet
_used: deque[int] = deque()             # the others, the longest unused first


def free_ports(count: int) -> list[int]:
    """Find `count` different ports that are free now. Raises OSError if there are none.

    They are below the range of ephemeral ports: while a node is down, no outgoing connection can take its port, and
    none can connect to itself. Each process claims blocks of ports until it ends: the port of a node that is down is
    given to no cluster of another process. It returns a port again after OWN_MAX others, sooner only when all blocks
    are claimed. Programs that do not ask here may still take one.
    """
    ports: list[int] = []
    with contextlib.ExitStack() as held:    # all are held until the end, so that none is returned twice
        looked = 0
        while len(ports) < count:
            if (looked := looked + 1) > LOOKS_MAX:
                raise OSError(f"all {len(_used)} ports of this process are in use")
            port = _next()
            listener = held.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((HOST, port))
                listener.listen(1)
            except OSError:
                continue
            ports.append(port)
    return ports


def _next() -> int:
    """A port of this process: one not used yet, or the one returned longest ago. Raises OSError if it has none."""
    if not _unused and len(_used) < OWN_MAX:
        _claim()
    if not _unused and not _used:
        raise OSError(f"other processes have claimed all ports from {LOWEST} to {_highest()}: end some of them")
    port = (_unused or _used).popleft()
    _used.append(port)
    return port


def _claim() -> None:
    """Claim a block that no other process has, if there is one."""
    blocks = [first for first in range(LOWEST, _highest() - BLOCK + 1, BLOCK) if first not in _claims]
    random.SystemRandom().shuffle(blocks)
    for first in blocks:
        claim = socket.socket(socket.AF_UNIX)       # the kernel's own namespace, where names go with their process
        try:
            claim.bind(f"\0sockpqd-ports-{first}")
        except OSError:
            claim.close()
            continue
        _claims[first] = claim
        ports = list(range(first, first + BLOCK))
        random.SystemRandom().shuffle(ports)
        _unused.extend(ports)
        return


def _forget() -> None:
    """Leave the ports to the parent, in a forked child."""
    for claim in _claims.values():
        claim.close()
    for known in (_claims, _unused, _used):
        known.clear()


def _highest() -> int:
    try:
        lowest_outgoing = int(PORT_RANGE_FILE.read_text().split()[0])
    except (OSError, ValueError):
        return 32_768
    return lowest_outgoing if lowest_outgoing > LOWEST + 2000 else 65_536


os.register_at_fork(after_in_child=_forget)
