"""Parses addresses as written in the configuration."""

from __future__ import annotations

import ipaddress


def split_address(address: str) -> tuple[str, int]:
    """Split "host:port" or "[v6]:port" into host and port; raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ValueError(f"{address!r} is not host:port")
    if host.startswith("[") and host.endswith("]"):
        return str(ipaddress.IPv6Address(host[1:-1])), int(port)
    if ":" in host or any(letter.isspace() for letter in host):
        raise ValueError(f"{address!r} is not host:port (an IPv6 address goes in brackets)")
    return host, int(port)
