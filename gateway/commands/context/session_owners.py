"""The source address of a client, as used by limits per user and address."""

from __future__ import annotations

import ipaddress

NETWORK_BITS = 64       # of IPv6: one host can use any number of addresses within its /64


def source(host: str) -> str:
    """Return what counts as this client's address: its IPv4 address, or its /64 network for IPv6.

    `host`: as reported by the operating system. Anything else, like "" for a client that is gone, is returned as it is.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)         # an IPv4 client on a port that listens on ::
    if address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, NETWORK_BITS), strict=False))
