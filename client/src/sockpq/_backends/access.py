"""Authentication: how a client proves its user, and which certificates it trusts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sockpq._protocol import arguments
from sockpq._protocol.command import Command
from sockpq._protocol.commands import connection
from sockpq.errors import BadArguments

if TYPE_CHECKING:
    import ssl

# True: the CAs of the system; a path: of a file with CAs. As a string: ssl is loaded where it is needed only.
Tls: TypeAlias = "bool | str | os.PathLike[str] | ssl.SSLContext | None"


class Login:
    """A user with their secret, which is never shown."""

    __slots__ = ("_secret", "user")

    def __init__(self, user: str, secret: str) -> None:
        """Raises BadArguments, TypeError."""
        self.user = arguments.user(user)
        self._secret = arguments.secret(secret)

    def plain(self) -> Command[None]:
        """AUTH with the secret in it: only for a connection that nobody else can read."""
        return connection.auth(self.user, self._secret)

    def challenge(self) -> Command[bytes]:
        """AUTH for every other one: ask for a nonce."""
        return connection.auth_challenge(self.user)

    def response(self, nonce: bytes) -> Command[None]:
        """The answer to it."""
        return connection.auth_response(self._secret, nonce)


class Access(NamedTuple):
    """What every connection of a client begins with."""

    tls: ssl.SSLContext | None = None       # None: plain TCP
    login: Login | None = None              # None: no AUTH


def access(tls: Tls, user: str | None, secret: str | None) -> Access:
    """From what a caller gives. Raises BadArguments, TypeError."""
    if (user is None) != (secret is None):
        raise BadArguments("user and secret go together: one of them is missing")
    login = None if user is None or secret is None else Login(user, secret)
    return Access(_context(tls), login)


def _context(tls: Tls) -> ssl.SSLContext | None:
    if tls is None:
        return None

    import ssl  # most clients use no TLS, and it takes as long to load as the rest of this library

    if isinstance(tls, ssl.SSLContext):
        return _strict(tls)
    if tls is not True and not isinstance(tls, str | os.PathLike):
        raise TypeError(f"tls is None, True, the path of a CA file or an ssl.SSLContext, not {type(tls).__name__}")
    try:
        return _strict(ssl.create_default_context(cafile=None if tls is True else tls))
    except (OSError, ValueError) as error:      # SSLError is an OSError; ValueError: a zero byte in the name
        said = getattr(error, "strerror", None) or error
        reason = "there is no certificate in it" if isinstance(error, ssl.SSLError) else said
        raise BadArguments(f"tls: the CA file {tls!s} cannot be used: {reason}") from error


def _strict(context: ssl.SSLContext) -> ssl.SSLContext:
    """A connection that is cut must not look like one that the server has ended; Python 3.11.2 lets it."""
    import ssl

    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    return context
