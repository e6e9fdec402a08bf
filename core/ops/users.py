"""The users, which are part of the replicated state (spec/access 1.1), and the operations on them."""

from __future__ import annotations

from msgspec import Struct

from sockpqd.core.ops.logged import Logged


class User(Struct, frozen=True):
    """One user, authenticated by `key`. `rights`: as in USER SET."""

    rights: str
    key: bytes


class SetUser(Logged, tag=20, frozen=True):
    """Add the user `name`, or replace its rights and key (spec/access 1.1).

    Only the gateway interprets `rights`.
    """

    name: str
    rights: str
    key: bytes


class DeleteUser(Logged, tag=21, frozen=True):
    """Remove the user `name`. Replies: Accepted, UserNotFound."""

    name: str
