"""The users, which are part of the replicated state (spec/access 1.1), and the operations on them."""

from __future__ import annotations

from msgspec import Struct


class User(Struct, frozen=True):
    """One user, who proves to know `key`. `rights`: as USER SET has given them."""

    rights: str
    key: bytes


class SetUser(Struct, array_like=True, tag=20, gc=False, frozen=True):
    """`name` is a user from now on, or has these rights and this key from now on (spec/access 1.1).

    What the words of `rights` mean is known by those who ask for them.
    """

    name: str
    rights: str
    key: bytes


class DeleteUser(Struct, array_like=True, tag=21, gc=False, frozen=True):
    """`name` is no user any more."""

    name: str
