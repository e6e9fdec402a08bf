"""What a port that clients connect to is for."""

from __future__ import annotations

import ipaddress

from msgspec import Struct


class Port(Struct, frozen=True):
    """`user`: who everybody is there, None: who can prove it. `networks`: who may connect, everybody when empty."""

    user: str | None = None
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    def admits(self, host: str) -> bool:
        """May this address connect?"""
        if not self.networks:
            return True
        address = ipaddress.ip_address(host.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped       # an IPv4 client of a port that listens on ::
        return any(address in network for network in self.networks)


def legacy_port(user: str, networks: tuple[str, ...]) -> Port:
    """The port of a [[listen.legacy]]; raises ValueError for what is not a network."""
    return Port(user, tuple(ipaddress.ip_network(network) for network in networks))
