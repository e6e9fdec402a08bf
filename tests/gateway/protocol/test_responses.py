"""Responses that are not made of a reply."""

from __future__ import annotations

from gateway.protocol.responses import CAPS, FEATURES


def test_caps_lists_each_feature_once() -> None:
    assert CAPS.partition(b"\r\n")[2].splitlines() == list(dict.fromkeys(FEATURES))
