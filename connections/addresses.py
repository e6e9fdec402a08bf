"""Tells addresses of this machine from others."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether this host name or address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback      # an IPv4 client on a port that listens on [::]
    return address.is_loopback
