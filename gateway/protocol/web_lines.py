"""Lines of HTTP, at which a connection ends that is not HTTP.

A browser sends what a web page wants it to, to any address that it reaches: to this port as well, with a request line
and headers before it. Without this, those lines would be refused and what comes behind them executed. In TLS a browser
sends what it got from a server earlier, a session ticket of any bytes, so the first bytes of TLS are no command either.
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
