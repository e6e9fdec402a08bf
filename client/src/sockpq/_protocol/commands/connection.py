"""Commands about the connection itself: AUTH, and attaching it to a session."""

from __future__ import annotations

import re
from functools import partial

from sockpq._protocol import arguments
from sockpq._protocol.command import Command, Hidden, Repeat, single
from sockpq._protocol.reader import accepted, expect, failure, fields_of

SESSION_CLOSE = b"SESSION CLOSE RELEASE\r\n"

SESSION_RELEASE_FIRST: Command[None] = single("SESSION CLOSE RELEASE FIRST", accepted, Repeat.FREELY)

_SID = re.compile(r"[0-9]{1,20}_[0-9a-f]{1,64}")
_NONCE = re.compile(r"(?:[0-9a-fA-F]{2}){8,128}")


def session_open(ttl: float) -> Command[str]:
    """SESSION TTL: open a session that ends `ttl` seconds after its last use; returns its name."""
    return single(f"SESSION TTL {arguments.session_ttl(ttl)}", _opened, Repeat.FREELY)


def session_attach(sid: str) -> Command[None]:
    """SESSION <sid>: attach this connection to that session."""
    return single(f"SESSION {sid}", partial(_attached, sid), Repeat.FREELY)


def auth(user: str, secret: bytes) -> Command[None]:
    """AUTH with the secret itself."""
    return _hidden(b"AUTH %s %s\r\n" % (user.encode(), secret))


def auth_challenge(user: str) -> Command[bytes]:
    """AUTH with the user alone: the server answers with a nonce."""
    return single(f"AUTH {user}", _nonce, Repeat.FREELY)


def auth_response(secret: bytes, nonce: bytes) -> Command[None]:
    """AUTH with the proof that the client has the secret."""
    import hmac  # it brings OpenSSL along, and a client on the same machine or with TLS needs no proof

    return _hidden(f"AUTH {hmac.digest(secret, nonce, 'sha256').hex()}\r\n".encode())


def _hidden(line: bytes) -> Command[None]:
    return single("", accepted, Repeat.FREELY)._replace(line=Hidden(line))


def _opened(text: str) -> str:
    fields = fields_of(text)
    expect(len(fields) == 4 and fields[0] == "SESSION" and fields[2] == "TTL", "the answer to SESSION")
    expect(_SID.fullmatch(fields[1]) is not None, f"not a session: {fields[1][:100]!r}")
    return fields[1]


def _attached(sid: str, text: str) -> None:
    fields = fields_of(text)
    expect(len(fields) == 6 and fields[1] == sid and fields[4] == "LAST", f"the answer to SESSION {sid}")


def _nonce(text: str) -> bytes:
    if not text.startswith("334 "):
        raise failure(text)
    expect(_NONCE.fullmatch(text, 4) is not None, "the answer to AUTH")
    return bytes.fromhex(text[4:])
