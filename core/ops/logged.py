"""The base of everything that is written into the log."""

from __future__ import annotations

from msgspec import Struct


class Logged(Struct, array_like=True, forbid_unknown_fields=True, gc=False, frozen=True):
    """An operation, or a part of one: an array of its fields, after its tag if it has one.

    A record with more fields than this program knows cannot be decoded. Otherwise an older program would execute an
    operation without the option that a newer one gave it, and replicas would differ (spec/state-machine 1.7).
    """
