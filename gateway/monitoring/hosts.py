"""By which names a browser may ask where no users are required."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from aiohttp import web

STRANGER = "where no users are required, ask by the address of this machine or as localhost"


def trusted_host(request: web.BaseRequest, own: str) -> bool:
    """Return whether the request names this machine, by an address, as localhost, or as `own`.

    Where nobody has to prove anything, another name may be a stranger's page that lets its name point to us.
    """
    try:
        name = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
    except ValueError:                  # "[::1"
        return False
    if name in ("localhost", own.lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
