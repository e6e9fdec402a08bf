"""The URLs of queues, `<origin><base>/<account>/<name>`, and the part of a request's path that counts.

The origin is the host and port of the request, as SDKs of JavaScript and PHP send later requests to the URL of the
queue; behind a proxy the settings name it. Of a path only the last two parts count, so a proxy may put others before
them.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import unquote, urlsplit

from sockpq_sqs.auth import Head
from sockpq_sqs.settings import Http

HOSTS_KNOWN_MAX = 1000          # answers that are remembered, as parsing a host takes as long as decoding a message

_QUEUE = re.compile(r".*/([0-9]{12}/[^/]{1,240})/?")
_HOST = re.compile(r"[A-Za-z0-9_.:\[\]-]{1,255}")


class Urls:
    """The origin of a request, and the host names under which this program may be addressed."""

    def __init__(self, http: Http, listening: str) -> None:
        """`listening`: HOST:PORT, for requests that do not say which host they mean."""
        self._fixed = http.url
        self._base = http.base
        self._names = {"localhost", *(name.lower().removesuffix(".") for name in http.hosts)}
        self._listening = listening
        self._known: dict[str, bool] = {}       # whether a host is ours

    def origin(self, head: Head) -> str:
        """Return the beginning of the URLs of queues for the sender of this request."""
        if self._fixed:
            return self._fixed + self._base
        host = head.header("Host")
        if not _HOST.fullmatch(host):
            host = self._listening
        return f"{'https' if head.secure else 'http'}://{host}{self._base}"

    def is_own(self, head: Head) -> bool:
        """Return whether a request names this program: by an address, as localhost, or by a name of the settings.

        A foreign web site can let its own name resolve to this machine, so that a browser treats us as a part of it.
        """
        for host in head.headers.getall("Host", ()):
            own = self._known.get(host)
            if own is None:
                own = self._owns(host)
                if len(self._known) >= HOSTS_KNOWN_MAX:
                    self._known.clear()
                self._known[host] = own
            if not own:
                return False
        return True

    def _owns(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
        except ValueError:                      # "[::1"
            return False
        return name in self._names or _is_address(name)


def queue_path(path: str) -> str | None:
    """Return "<account>/<name>" of the path of a queue's URL, None for another path."""
    match = _QUEUE.fullmatch(path) if path != "/" else None
    return None if match is None else unquote(match[1])


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
