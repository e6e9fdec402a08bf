"""The guard of addresses: public ones may be connected to, and a name is resolved once and judged."""

from __future__ import annotations

import asyncio
import socket

import pytest
from sockpq_http.push.guard import AddressRule, Guard, RefusedAddress

PUBLIC = ("8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "223.255.255.255",
          "2606:4700::1111", "2a00:1450:4001::1", "64:ff9b::808:808", "::ffff:8.8.8.8")
NOT_PUBLIC = (
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "168.63.129.16", "100.64.0.1", "100.100.100.200", "100.127.255.255", "192.0.0.192", "192.0.2.1",
    "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "ff02::1", "2001:db8::1",
    "2001::1", "2002:7f00:1::", "3fff::1", "5f00::1", "::127.0.0.1", "64:ff9b:1::7f00:1",
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:7f00:1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_reached(address: str) -> None:
    AddressRule().check(address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_any_other_address_is_refused(address: str) -> None:
    with pytest.raises(RefusedAddress):
        AddressRule().check(address)


@pytest.mark.parametrize(("network", "address"), [
    ("10.1.0.0/16", "10.1.2.3"), ("10.1.0.0/16", "::ffff:10.1.2.3"), ("fd12::/16", "fd12::1"), ("::1", "::1"),
    ("127.0.0.1", "127.0.0.1"), ("fe80::/10", "fe80::1%eth0"),
])
def test_an_allowed_network_may_be_reached(network: str, address: str) -> None:
    AddressRule([network]).check(address)


def test_what_is_allowed_opens_nothing_else() -> None:
    rule = AddressRule(["10.1.0.0/16", "::1"])
    for address in ("10.2.0.1", "127.0.0.1", "169.254.169.254", "fe80::1"):
        with pytest.raises(RefusedAddress):
            rule.check(address)


def test_the_refusal_says_why() -> None:
    with pytest.raises(RefusedAddress, match=r"169\.254\.169\.254 is a link-local address, where clouds have"):
        AddressRule().check("::ffff:169.254.169.254")


def test_a_host_that_is_a_name_is_judged_when_it_is_resolved() -> None:
    AddressRule().check_host("localhost")
    with pytest.raises(RefusedAddress):
        AddressRule().check_host("::1")


def test_addresses_that_are_not_public_are_left_out_of_the_answer_of_dns() -> None:
    async def lookup(host: str) -> list[str]:
        return ["127.0.0.1", "8.8.8.8", "::1", "2606:4700::1111"]

    async def main() -> list[tuple[str, int]]:
        guard = Guard(AddressRule(), lookup)
        found = [(one["host"], one["family"]) for one in await guard.resolve("example.com", 443)]
        await guard.close()
        return found

    assert asyncio.run(main()) == [("8.8.8.8", socket.AF_INET), ("2606:4700::1111", socket.AF_INET6)]


def test_a_name_without_any_public_address_is_refused() -> None:
    async def main() -> None:
        guard = Guard(AddressRule())
        try:
            await guard.resolve("localhost", 80)
        finally:
            await guard.close()

    with pytest.raises(RefusedAddress):
        asyncio.run(main())


def test_no_socket_is_made_for_an_address_that_is_not_public() -> None:
    guard = Guard(AddressRule())
    with pytest.raises(RefusedAddress):
        guard.socket((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("169.254.169.254", 80)))
    guard.socket((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("8.8.8.8", 80))).close()
