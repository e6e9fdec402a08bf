"""The visitor of a page: user, rights, and tokens that prove that an action comes from one of our pages."""

from __future__ import annotations

import hmac
import secrets
import time
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import Struct

from sockpqd.connections import is_loopback
from sockpqd.gateway.monitoring.basic_auth import HttpAccess, authenticated
from sockpqd.gateway.rights import Rights, of_text

TOKEN_S = 12 * 3600             # a page may be that old when something on it is pressed
EVERYTHING = of_text("admin")


class Visitor(Struct, frozen=True):
    """A person with a browser.

    `user` is None if no users are required and everything is allowed; `secure`: nobody can eavesdrop.
    """

    user: str | None
    rights: Rights
    address: str
    secure: bool

    def sees(self, queue: str) -> bool:
        """Return whether they have any right on this queue."""
        return queue.startswith(self.rights.seen)

    def manages(self, queue: str) -> bool:
        """Return whether they have the right `queue` for it, which jobs and settings need."""
        return queue.startswith(self.rights.queue)

    @property
    def admin(self) -> bool:
        """True if the visitor administers the cluster."""
        return "" in self.rights.admin


async def visitor_of(access: HttpAccess | None, request: web.BaseRequest) -> Visitor | None:
    """Return the visitor who sent this request, None if they did not authenticate."""
    address = request.remote or "?"
    secure = request.secure or is_loopback(address)
    if access is None:
        return Visitor(None, EVERYTHING, address, secure)
    known = await authenticated(access, request.headers.get("Authorization"), f"{address}:HTTP")
    return None if known is None else Visitor(*known, address, secure)


class Tokens:
    """Tokens for the forms on pages. They belong to a user, and to this process."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def new(self, visitor: Visitor) -> str:
        """Return a token for this visitor's forms."""
        return self._token(visitor, int(time.time() // TOKEN_S))

    def good(self, visitor: Visitor, token: str) -> bool:
        """Return whether this token belongs to this visitor and has not expired."""
        period = int(time.time() // TOKEN_S)
        return any(hmac.compare_digest(self._token(visitor, at).encode(), token.encode())
                   for at in (period, period - 1))

    def _token(self, visitor: Visitor, period: int) -> str:
        return hmac.digest(self._key, f"{period} {visitor.user}".encode(), "sha256").hex()


def same_origin(request: web.BaseRequest) -> bool:
    """Return False if the browser reports that the request comes from a page of another origin."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("Origin")
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("Host")
    except ValueError:                  # "http://[::1"
        return False
