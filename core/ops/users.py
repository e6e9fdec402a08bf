"""The users, which are part of the replicated state (spec/access 1.1), and the operations on them."""

from __future__ import annotations

from sockpqd.core.ops.logged import Logged


class User(Logged, frozen=True):
    """One user, authenticated by `key`. `rights`: as in USER SET; only the gateway interprets them."""

    rights: str
    key: bytes


class SetUser(Logged, tag=20, frozen=True):
    """Add the user `name`, or replace its rights and key; None: remove it (spec/access 1.1).

    Replies: Accepted, TooManyUsers; UserNotFound, if there is none to remove.
    """

    name: str
    user: User | None
