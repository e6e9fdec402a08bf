"""Fits the connection limits to the process's limit on file descriptors."""

from __future__ import annotations

import logging
import resource
from typing import NamedTuple

from msgspec.structs import replace

from sockpqd.connections import RESERVED_SLOTS
from sockpqd.gateway.limits import HANDSHAKES_MAX, REFUSED_PLACES, Limits

log = logging.getLogger("sockpqd")

OTHER_FILES = 48                # of the gateway besides clients: listeners, HTTP, files being read or sent
HANDSHAKES_PART = 8             # with TLS, 1/8 of the descriptors is reserved for pending handshakes


class DescriptorBudget(NamedTuple):
    """The limits, lowered to the available descriptors."""

    limits: Limits
    handshakes_max: int


def make_room(limits: Limits, node_files: int, *, tls: bool) -> DescriptorBudget:
    """Raise the soft limit, usually a leftover from select() (1024), to the hard one, and fit the limits to it.

    `node_files`: descriptors that the cluster node needs.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return fit(limits, None if hard == resource.RLIM_INFINITY else hard - node_files, tls=tls)


def fit(limits: Limits, files: int | None, *, tls: bool) -> DescriptorBudget:
    """Allow as many clients as configured, or as descriptors permit (None: unlimited); logs if the limit is lowered."""
    handshakes = HANDSHAKES_MAX if tls else 0
    others = OTHER_FILES + RESERVED_SLOTS + REFUSED_PLACES
    if files is None or files >= limits.connections_max + handshakes + others:
        return DescriptorBudget(limits, handshakes)
    room = max(files - others, 2)
    handshakes = min(handshakes, room // HANDSHAKES_PART)
    connections = min(limits.connections_max, room - handshakes)
    if connections < limits.connections_max:
        log.warning("limits.connections_max is lowered from %d to %d, because this process cannot open enough "
                    "files: raise LimitNOFILE", limits.connections_max, connections)
    return DescriptorBudget(replace(limits, connections_max=connections), handshakes)
