"""A port that clients connect to: its fixed user, if any, and the networks it admits."""

from __future__ import annotations

import ipaddress

from msgspec import Struct


class Port(Struct, frozen=True):
    """The rules of one client port.

    `user`: the user all its clients act as; None: clients authenticate. `networks`: the networks that may connect, all
    if empty.
    """

    user: str | None = None
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    def admits(self, host: str) -> bool:
        """Return whether this address may connect."""
        if not self.networks:
            return True
        address = ipaddress.ip_address(host.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped       # an IPv4 client on a port that listens on ::
        return any(address in network for network in self.networks)


def fixed_port(user: str | None, networks: tuple[str, ...]) -> Port:
    """Return the port whose clients act as this user; raises ValueError for an invalid network."""
    return Port(user, tuple(ipaddress.ip_network(network) for network in networks))
