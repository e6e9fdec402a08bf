"""Server addresses as people write them: "host:port", "host", "[::1]:11361"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sockpq.errors import BadArguments

DEFAULT_PORT = 11361


class Address(NamedTuple):
    """The address at which a server listens for clients."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_server(text: str, default_port: int | None = DEFAULT_PORT) -> Address:
    """Parse an address; a port is mandatory if there is no default. Raises BadArguments, TypeError."""
    if not isinstance(text, str):
        raise TypeError(f"a server is a string 'host:port', not {type(text).__name__}")
    text = text.strip()
    host, separator, port = text.rpartition(":")
    if not separator or text.endswith("]"):
        if default_port is None:
            raise BadArguments(f"the port is missing in server address {text!r} (host:port)")
        host, port = text, str(default_port)
    bracketed = host.startswith("[") and host.endswith("]")
    if bracketed:
        host = host[1:-1]
    strange = not host.isprintable() or any(character in host for character in "[] /,")
    if not host or strange or (":" in host and not bracketed):
        raise BadArguments(f"not a server address: {text!r} (host:port)")
    if not (port.isascii() and port.isdigit() and len(port) < 10 and 0 < int(port) < 65536):
        raise BadArguments(f"not a port: {port!r} in server address {text!r}")
    return Address(host, int(port))


def parse_servers(servers: str | Iterable[str]) -> tuple[Address, ...]:
    """Parse a list of addresses, or one string with commas; duplicates count once. Raises BadArguments, TypeError."""
    texts = [part for part in servers.split(",") if part.strip()] if isinstance(servers, str) else list(servers)
    addresses = tuple(dict.fromkeys(parse_server(text) for text in texts))
    if not addresses:
        raise BadArguments("the list of servers is empty")
    return addresses
