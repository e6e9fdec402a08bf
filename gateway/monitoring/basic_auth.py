"""HTTP Basic authentication (RFC 7617): who may read /metrics, and which queues are named to him."""

from __future__ import annotations

import base64
import binascii
from typing import Protocol

from gateway.rights import Rights

ALL_QUEUES = ("",)


class Access(Protocol):
    """The users of this node."""

    async def check(self, user: str, secret: str, peer: str) -> Rights | None:
        """The rights of this user, None when there is none or this is not the secret. `peer`: who asks, HOST:PORT."""


async def admitted(access: Access | None, header: str | None, peer: str) -> tuple[str, ...] | None:
    """How the names of the queues begin that the user of an Authorization header may see; everybody sees all when
    `access` is None. None: it names no user, or not with the right secret.
    """
    if access is None:
        return ALL_QUEUES
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    rights = await access.check(user, secret, peer) if colon else None
    return None if rights is None else rights.seen
