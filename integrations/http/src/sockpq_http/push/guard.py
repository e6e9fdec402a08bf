"""Keeps requests away from addresses that are not public: this host, private networks, metadata services.

A URL, or the answer of DNS for its host, may come from somebody who wants this program to reach what they cannot
(server-side request forgery). So the address is judged, not the name: a name is resolved once for a connection, what
must not be reached is left out, and the connection is made to one of the addresses that were judged. TLS and the header
`Host` still use the name. A second check is made where the socket is created, so no path of the HTTP library avoids it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Lookup = Callable[[str], Awaitable[list[str]]]

# Not public, from the registries of special-purpose addresses (RFC 6890 and its successors), with the reason to print.
REFUSED_V4 = tuple((ip_network(network), reason) for network, reason in (
    ("0.0.0.0/8", "this host"),
    ("10.0.0.0/8", "a private network"),
    ("100.64.0.0/10", "a shared address of a provider's network (CGNAT)"),
    ("127.0.0.0/8", "a loopback address"),
    ("168.63.129.16/32", "a service of the cloud's host"),      # of Azure, in a public range
    ("169.254.0.0/16", "a link-local address, where clouds have their metadata"),
    ("172.16.0.0/12", "a private network"),
    ("192.0.0.0/24", "reserved for protocols"),
    ("192.0.2.0/24", "reserved for documents"),
    ("192.88.99.0/24", "a relay of 6to4"),
    ("192.168.0.0/16", "a private network"),
    ("198.18.0.0/15", "reserved for benchmarks"),
    ("198.51.100.0/24", "reserved for documents"),
    ("203.0.113.0/24", "reserved for documents"),
    ("224.0.0.0/4", "a multicast address"),
    ("240.0.0.0/4", "reserved"),                                # with the broadcast address
))
GLOBAL_V6 = IPv6Network("2000::/3")     # everything public is in there; loopback, link-local and the like are not
REFUSED_V6 = tuple((ip_network(network), reason) for network, reason in (
    ("2001::/23", "reserved for protocols, such as Teredo"),
    ("2001:db8::/32", "reserved for documents"),
    ("2002::/16", "an address of 6to4, which has an IPv4 address in it"),
    ("3fff::/20", "reserved for documents"),
))
NOT_GLOBAL_V6 = tuple((ip_network(network), reason) for network, reason in (
    ("::1/128", "a loopback address"),
    ("fc00::/7", "a private network"),
    ("fe80::/10", "a link-local address"),
    ("ff00::/8", "a multicast address"),
))
NAT64 = IPv6Network("64:ff9b::/96")     # the IPv4 address is in the last 32 bits
LOOKUP_THREADS = 2                      # of one target; a name server that does not answer holds up this target alone


class RefusedAddress(OSError):
    """An address that must not be connected to; the message says why. An OSError, as HTTP libraries expect it."""


def parse_network(text: str) -> Network:
    """Return the network of "10.1.0.0/16" or "10.1.2.3"; raises ValueError."""
    return ip_network(text)


class AddressRule:
    """Decides which addresses may be connected to."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        """`allow`: networks that may be connected to even though they are not public."""
        self._allowed = tuple(parse_network(one) for one in allow)

    def check(self, text: str) -> None:
        """Raise RefusedAddress unless this IP address may be connected to."""
        address = _plain(ip_address(text))
        if any(address.version == network.version and address in network for network in self._allowed):
            return
        if reason := _refusal(address):
            raise RefusedAddress(f"{address} is {reason}; `allow` names networks that may be reached nevertheless")

    def check_host(self, host: str) -> None:
        """Raise RefusedAddress if the host is an IP address that must not be connected to; a name passes."""
        try:
            ip_address(host)
        except ValueError:
            return
        self.check(host)


def _plain(address: Address) -> Address:
    """Return the IPv4 address within an IPv6 address that stands for one (IPv4-mapped, NAT64), else the address."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
        if address.scope_id is not None:
            return IPv6Address(int(address))        # the interface says nothing about the address
    return address


def _refusal(address: Address) -> str | None:
    """Return why an address is not public; None if it is."""
    if isinstance(address, IPv4Address):
        return next((reason for network, reason in REFUSED_V4 if address in network), None)
    if address not in GLOBAL_V6:
        return next((reason for network, reason in NOT_GLOBAL_V6 if address in network), "not a public address")
    return next((reason for network, reason in REFUSED_V6 if address in network), None)


class Guard(AbstractResolver):
    """Resolves the names of one target, and makes the sockets of its connections; see the top of this file."""

    def __init__(self, rule: AddressRule | None, lookup: Lookup | None = None) -> None:
        """`rule`: None judges nothing, for connections to a proxy, which must judge. `lookup`: DNS by default."""
        self._rule = rule
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, "sockpq DNS")
        self._lookup = lookup or self._ask_dns

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host that may be connected to; raises RefusedAddress when there is none."""
        found: list[ResolveResult] = []
        refusal: RefusedAddress | None = None
        for address in await self._lookup(host):
            try:
                self._check(address)
            except RefusedAddress as error:
                refusal = error
                continue
            found.append(ResolveResult(
                hostname=host, host=address, port=port, proto=socket.IPPROTO_TCP, flags=socket.AI_NUMERICHOST,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
            ))
        if not found:
            raise refusal or OSError(f"{host} has no address")
        return found

    def socket(self, address: tuple[Any, ...]) -> socket.socket:
        """Make the socket for a connection to this address, of getaddrinfo; raises RefusedAddress."""
        family, kind, protocol, _, place = address
        self._check(place[0])
        return socket.socket(family, kind, protocol)

    async def close(self) -> None:
        """Cancel lookups that wait, and let the threads end with those in progress."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _check(self, address: str) -> None:
        if self._rule is not None:
            self._rule.check(address)

    async def _ask_dns(self, host: str) -> list[str]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        )
        return list(dict.fromkeys(str(one[4][0]) for one in found))
