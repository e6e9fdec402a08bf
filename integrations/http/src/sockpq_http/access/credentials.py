"""Credentials of a request: HTTP Basic, or Bearer with the same base64 of `user:secret`."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from binascii import Error
from typing import NamedTuple

from sockpq_http.problems.errors import CHALLENGE
from sockpq_http.problems.problem import Problem

USER = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
SECRET_CHARACTERS_MAX = 1024
HEADER_BYTES_MAX = 4096


class Credentials(NamedTuple):
    """A user of the cluster with a secret."""

    user: str
    secret: str

    def __repr__(self) -> str:
        return f"<Credentials of {self.user!r}>"

    @property
    def digest(self) -> bytes:
        """A hash of both for use as a key in tables, so that no secret is one."""
        return hashlib.blake2b(f"{self.user}\n{self.secret}".encode(), digest_size=16).digest()


def credentials_of(header: bytes | None) -> Credentials | None:
    """Return the credentials in a header `Authorization`, None without one. Raises Problem."""
    if header is None:
        return None
    scheme, _, word = header.strip().partition(b" ")
    if scheme.lower() not in (b"basic", b"bearer") or len(header) > HEADER_BYTES_MAX:
        raise refused("use Basic, or Bearer with the base64 of user:secret")
    try:
        user, colon, secret = b64decode(word.strip(), validate=True).decode().partition(":")
    except (Error, ValueError):
        raise refused("the credentials are not the base64 of user:secret") from None
    if not colon or not USER.fullmatch(user) or not _is_secret(secret):
        raise refused("the credentials are not the base64 of user:secret")
    return Credentials(user, secret)


def refused(why: str) -> Problem:
    """Return the answer to credentials that are not accepted."""
    return Problem(401, why, "auth-error", code=401, reason="Auth Required", headers=CHALLENGE)


def _is_secret(text: str) -> bool:
    return 0 < len(text) <= SECRET_CHARACTERS_MAX and text.isprintable() and " " not in text
