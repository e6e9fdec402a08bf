"""HTTP Basic authentication (RFC 7617): which users may read /metrics and /events, and which names they see."""

from __future__ import annotations

import base64
import binascii
from typing import Protocol

from sockpqd.gateway.rights import Rights

ALL_QUEUES = ("",)


class HttpAccess(Protocol):
    """Checks the users of HTTP requests."""

    async def check(self, user: str, secret: str, peer: str) -> Rights | None:
        """Return the user's rights, None for an unknown user or a wrong secret. `peer`: the client, HOST:PORT."""


async def authenticated(access: HttpAccess, header: str | None, peer: str) -> tuple[str, Rights] | None:
    """Return the user of an Authorization header and their rights; None: unknown user or wrong secret."""
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    rights = await access.check(user, secret, peer) if colon else None
    return None if rights is None else (user, rights)
