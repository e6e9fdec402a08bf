"""Responses that are not made of a reply."""

from __future__ import annotations

import pytest

from sockpqd.core.levels import FEATURE_LEVEL, FIRST_LEVEL
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.responses import FEATURES, caps, cluster_id


def words(answer: bytes) -> list[bytes]:
    """Return the words of CAPS."""
    head, _, data = answer.partition(b"\r\n")
    assert head == b"200 OK %d" % len(data)
    return data.splitlines()


def test_caps_lists_each_feature_once() -> None:
    assert words(caps(FEATURE_LEVEL)) == list(dict.fromkeys(word for some in FEATURES.values() for word in some))
    assert all(FIRST_LEVEL <= level <= FEATURE_LEVEL for level in FEATURES)


def test_caps_lists_a_feature_from_its_level_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "FEATURES", {1: (b"old",), 3: (b"new",)})
    caps.cache_clear()
    assert [words(caps(level)) for level in (1, 2, 3, 4)] == [[b"old"], [b"old"], [b"old", b"new"], [b"old", b"new"]]
    caps.cache_clear()


def test_before_the_first_leader_was_heard_a_cluster_has_no_id() -> None:
    assert cluster_id(None, None) == b"200 OK - -\r\n"


def test_the_first_eight_bytes_of_the_id_are_shown() -> None:
    assert cluster_id(bytes(range(16)), None) == b"200 OK 0001020304050607 -\r\n"
