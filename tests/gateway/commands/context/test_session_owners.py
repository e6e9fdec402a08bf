"""Addresses that count as one."""

from __future__ import annotations

import pytest

from sockpqd.gateway.commands.context.session_owners import source


@pytest.mark.parametrize(("host", "expected"), [
    ("10.0.0.1", "10.0.0.1"),
    ("127.0.0.1", "127.0.0.1"),
    ("::ffff:10.0.0.1", "10.0.0.1"),
    ("::1", "::1"),
    ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
    ("2001:db8:1:2::", "2001:db8:1:2::/64"),
    ("fe80::1%eth0", "fe80::/64"),
    ("", ""),
    ("A", "A"),
])
def test_an_ipv6_client_is_known_by_its_network(host: str, expected: str) -> None:
    assert source(host) == expected
