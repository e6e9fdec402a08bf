"""The users that are part of the replicated state (spec/access 1.1)."""

from __future__ import annotations

from msgspec import Struct


class User(Struct, frozen=True):
    """One user. `rights` is what USER SET said of them; whoever knows `key` is this user."""

    rights: str
    key: bytes
