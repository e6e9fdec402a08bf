"""From where a client comes, as far as limits ask that are meant for one user at one address."""

from __future__ import annotations

import ipaddress

NETWORK_BITS = 64       # of IPv6: whoever has one address has as many as he likes with the same first half


def source(host: str) -> str:
    """What counts as the address of this client: an IPv4 address, or the /64 network of an IPv6 one.

    `host`: as the operating system tells it; what is no address, as "" of a client that has gone, is itself.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)         # an IPv4 client of a port that listens on ::
    if address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, NETWORK_BITS), strict=False))
