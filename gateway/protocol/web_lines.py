"""Detects lines of HTTP, which end a connection of another protocol.

A web page can make a browser send any data to any address, including this port, after a request line and headers.
Without this check those lines would be refused and the data after them executed. With TLS a browser sends bytes chosen
by a server, a session ticket, so the first bytes of TLS end the connection, too.
"""

from __future__ import annotations

import re

from sockpqd.gateway.protocol.command import Words

HOST = b"host:"                 # every request of a browser has such a header
HANDSHAKE = b"\x16\x03"         # what each connection of TLS begins with
_VERSION = re.compile(rb"HTTP/\d(\.\d)?")


def is_request_line(words: Words) -> bool:
    """Return whether this is the first line of a request (method, target and version), or the beginning of TLS."""
    return (len(words) > 2 and _VERSION.fullmatch(words[-1]) is not None) or words[0].startswith(HANDSHAKE)


def is_host_line(line: bytes) -> bool:
    """Return whether this is the header that names the host."""
    return line[: len(HOST)].lower() == HOST
