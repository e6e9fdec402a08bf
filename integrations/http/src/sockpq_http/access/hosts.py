"""Names under which this program may be addressed: a web page with a name that points here gets no answer."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address


class Hosts:
    """The accepted values of `Host`: every address, localhost, and the names that the operator gives."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset({"localhost", *(name.lower().rstrip(".") for name in names)})

    def accept(self, header: bytes | None) -> bool:
        """Return whether a request with this header `Host` is answered."""
        if header is None:
            return False
        host = _without_port(header.decode("latin-1").strip().lower())
        return host.rstrip(".") in self._names or _is_address(host)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
