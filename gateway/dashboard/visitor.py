"""Who asks for a page: their user and rights, and tokens by which an action is known to come from a page of ours."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import time
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import Struct

from gateway.monitoring.basic_auth import Access, authenticated
from gateway.rights import Rights, of_text

TOKEN_S = 12 * 3600             # a page may be that old when something on it is pressed
EVERYTHING = of_text("admin")


class Visitor(Struct, frozen=True):
    """Somebody with a browser. `user`: None where no users are required, and everybody may do everything."""

    user: str | None
    rights: Rights
    address: str

    def sees(self, queue: str) -> bool:
        """Return whether they have any right on this queue."""
        return queue.startswith(self.rights.seen)

    def manages(self, queue: str) -> bool:
        """Return whether they have the right `queue` for it, which jobs and settings need."""
        return queue.startswith(self.rights.queue)

    @property
    def admin(self) -> bool:
        """Whether they administer the cluster."""
        return "" in self.rights.admin


async def visitor_of(access: Access | None, request: web.BaseRequest) -> Visitor | None:
    """Return who sent this request, None if they do not prove it."""
    address = request.remote or "?"
    if access is None:
        return Visitor(None, EVERYTHING, address)
    known = await authenticated(access, request.headers.get("Authorization"), f"{address}:HTTP")
    return None if known is None else Visitor(*known, address)


class Tokens:
    """Tokens for the forms on pages. They belong to a user, and to this process."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def new(self, visitor: Visitor) -> str:
        """Return a token for this visitor's forms."""
        return self._token(visitor, int(time.time() // TOKEN_S))

    def good(self, visitor: Visitor, token: str) -> bool:
        """Return whether this is a token of this visitor, and not too old."""
        period = int(time.time() // TOKEN_S)
        return any(hmac.compare_digest(self._token(visitor, at).encode(), token.encode())
                   for at in (period, period - 1))

    def _token(self, visitor: Visitor, period: int) -> str:
        return hmac.digest(self._key, f"{period} {visitor.user}".encode(), "sha256").hex()


def same_origin(request: web.BaseRequest) -> bool:
    """Return whether a browser says that the request comes from a page of this very address."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("Host")


def trusted_host(request: web.BaseRequest, own: str) -> bool:
    """Return whether the request names this machine, by an address, as localhost, or as `own`.

    Where nobody has to prove anything, another name may be a stranger's page that lets its name point to us.
    """
    name = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
    if name in ("localhost", own.lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
