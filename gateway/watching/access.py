"""HTTP Basic authentication (RFC 7617): who may read /metrics."""

from __future__ import annotations

import base64
import binascii
from typing import Protocol


class Access(Protocol):
    """The users of this node."""

    async def check(self, user: str, secret: str, peer: str) -> object | None:
        """The rights of this user, None when there is none or this is not the secret. `peer`: who asks, HOST:PORT."""


async def admitted(access: Access | None, header: str | None, peer: str) -> bool:
    """Does an Authorization header name a user, with the right secret? Everybody is admitted when `access` is None."""
    if access is None:
        return True
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return False
    try:
        user, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return bool(colon) and await access.check(user, secret, peer) is not None
