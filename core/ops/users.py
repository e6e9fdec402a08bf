"""The users that are part of the replicated state (spec/access 1.1)."""

from __future__ import annotations

from msgspec import Struct

USERS_MAX = 10_000      # each change makes a new table of them, which must stay cheap


class User(Struct, frozen=True):
    """One user. `rights` is what USER SET said of them; whoever knows `key` is this user."""

    rights: str
    key: bytes
