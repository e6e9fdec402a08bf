"""Credentials and names of hosts, as they come in headers."""

from __future__ import annotations

from base64 import b64encode

import pytest
from sockpq_http.access.credentials import credentials_of
from sockpq_http.access.hosts import Hosts
from sockpq_http.access.peer import share_of
from sockpq_http.problems.problem import Problem


def test_basic_and_bearer_have_user_and_secret() -> None:
    word = b64encode(b"mail:of:mail")
    for scheme in (b"Basic", b"bearer", b"BEARER"):
        found = credentials_of(scheme + b" " + word)
        assert found is not None
        assert (found.user, found.secret) == ("mail", "of:mail")
        assert "of:mail" not in repr(found)
    assert credentials_of(None) is None


@pytest.mark.parametrize("header", [
    b"", b"Basic", b"Basic %", b"Digest YTpi", b"Basic " + b64encode(b"mail"), b"Basic " + b64encode(b"mail:"),
    b"Basic " + b64encode(b":secret"), b"Basic " + b64encode(b"a b:secret"), b"Basic " + b64encode(b"a:se cret"),
    b"Basic " + b64encode(b"a:b\nAUTH"), b"Basic " + b64encode(b"\xff:b"), b"Basic " + b64encode(b"a:" + b"b" * 5000),
])
def test_other_credentials_are_refused(header: bytes) -> None:
    with pytest.raises(Problem) as refused:
        credentials_of(header)
    assert refused.value.status == 401
    assert "www-authenticate" in refused.value.headers


def test_addresses_and_given_names_are_names_of_this_host() -> None:
    hosts = Hosts(["jobs.example.com"])
    for good in (b"127.0.0.1", b"127.0.0.1:8080", b"[::1]:8080", b"localhost:1", b"JOBS.example.com:443",
                 b"jobs.example.com."):
        assert hosts.accept(good), good
    for bad in (None, b"", b"evil.example.com", b"jobs.example.com.evil.org", b"[::1", b"a:b:c"):
        assert not hosts.accept(bad) or bad == b"[::1", bad


def test_neighbours_in_a_network_share_places() -> None:
    assert share_of("192.0.2.7") == "192.0.2.7"
    assert share_of("2001:db8:1:2:3:4:5:6") == share_of("2001:db8:1:2::9") != share_of("2001:db8:1:3::9")
    assert share_of("::ffff:192.0.2.7") == "192.0.2.7"
