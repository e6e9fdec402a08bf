"""How many clients the limit on file descriptors leaves room for."""

from __future__ import annotations

import logging
import resource
from typing import NamedTuple

from msgspec.structs import replace

from gateway.limits import FURTHER_PLACES, HANDSHAKES_MAX, REFUSED_PLACES, Limits

log = logging.getLogger("sockpqd")

OTHER_FILES = 48                # of the gateway that are no clients: its listeners, HTTP, files read or sent
HANDSHAKES_PART = 8             # of the room with TLS that is for connections that have not shaken hands yet


class Room(NamedTuple):
    """The limits, with what there is room for."""

    limits: Limits
    handshakes_max: int


def make_room(limits: Limits, node_files: int, *, tls: bool) -> Room:
    """Raise the soft limit, which usually is a leftover of select() (1024), to the hard one, and fit in.

    `node_files`: descriptors that the node needs for itself.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return fit(limits, None if hard == resource.RLIM_INFINITY else hard - node_files, tls=tls)


def fit(limits: Limits, files: int | None, *, tls: bool) -> Room:
    """As many clients as configured, or as there are files for (None: any number); the log says which."""
    handshakes = HANDSHAKES_MAX if tls else 0
    others = OTHER_FILES + FURTHER_PLACES + REFUSED_PLACES
    if files is None or files >= limits.connections_max + handshakes + others:
        return Room(limits, handshakes)
    room = max(files - others, 2)
    handshakes = min(handshakes, room // HANDSHAKES_PART)
    connections = min(limits.connections_max, room - handshakes)
    if connections < limits.connections_max:
        log.warning("limits.connections_max is lowered from %d to %d, because this process may open too few "
                    "files: raise its limit (LimitNOFILE)", limits.connections_max, connections)
    return Room(replace(limits, connections_max=connections), handshakes)
