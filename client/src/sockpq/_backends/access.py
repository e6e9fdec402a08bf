"""Authentication: how a client proves its user, and which certificates it trusts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sockpq._backends.given_file import GivenFile
from sockpq._protocol import arguments
from sockpq._protocol.command import Command
from sockpq._protocol.commands import connection
from sockpq.errors import BadArguments

if TYPE_CHECKING:
    import ssl

# True: the CAs of the system; a path: of a file with CAs. A string annotation, as ssl is imported only where it is
# needed.
Tls: TypeAlias = "bool | str | os.PathLike[str] | ssl.SSLContext | None"


class Login:
    """A user with their secret, which is never shown."""

    __slots__ = ("_secret", "user")

    def __init__(self, user: str, secret: str) -> None:
        """Check the arguments; raises BadArguments, TypeError."""
        self.user = arguments.user(user)
        self._secret = arguments.secret(secret)

    def plain(self) -> Command[None]:
        """AUTH with the secret in it: only for a connection that nobody else can read."""
        return connection.auth(self.user, self._secret)

    def challenge(self) -> Command[bytes]:
        """AUTH for every other one: ask for a nonce."""
        return connection.auth_challenge(self.user)

    def response(self, nonce: bytes) -> Command[None]:
        """Return the answer to the challenge of the server."""
        return connection.auth_response(self._secret, nonce)


class Access:
    """TLS and login for every connection of a client. Settings given as files are read again when the files change."""

    def __init__(
        self, tls: Tls = None, user: str | None = None, secret: str | None = None,
        secret_file: str | os.PathLike[str] | None = None,
    ) -> None:
        """Build the access from a caller's arguments. Raises BadArguments, TypeError."""
        if secret is not None and secret_file is not None:
            raise BadArguments("a secret and a file with one exclude each other")
        if (user is None) != (secret is None and secret_file is None):
            raise BadArguments("user and secret go together: one of them is missing")
        self._ca: GivenFile[ssl.SSLContext] | None = None
        self._context: ssl.SSLContext | None = None
        if isinstance(tls, str | os.PathLike):
            self._ca = _ca_file(tls)
        else:
            self._context = _context(tls)
        self._secret: GivenFile[Login] | None = None
        self._login: Login | None = None
        if user is not None and secret_file is not None:
            self._secret = _secret_file(user, secret_file)
        elif user is not None and secret is not None:
            self._login = Login(user, secret)

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The TLS context, None for plain TCP."""
        return self._ca.value if self._ca else self._context

    @property
    def login(self) -> Login | None:
        """User and secret, None without AUTH."""
        return self._secret.value if self._secret else self._login

    def read_again(self) -> None:
        """Read files that have changed, before a connection is opened."""
        for file in (self._ca, self._secret):
            if file:
                file.read_again()

    def is_outdated(self, refused: ssl.SSLContext | Login) -> bool:
        """Read the files again; return whether the setting that a server refused has been replaced since."""
        for file in (self._ca, self._secret):
            if file:
                file.read_again(whatever=True)
        return refused is not self.tls and refused is not self.login


def _ca_file(path: str | os.PathLike[str]) -> GivenFile[ssl.SSLContext]:
    try:
        return GivenFile(path, lambda: _trusting(path))
    except BadArguments:
        raise
    except (OSError, ValueError) as error:      # ValueError: a zero byte in the name
        raise _unusable(path, error) from error


def _secret_file(user: str, path: str | os.PathLike[str]) -> GivenFile[Login]:
    def login() -> Login:
        try:
            return Login(user, Path(path).read_text("utf-8").removesuffix("\n").removesuffix("\r"))
        except UnicodeDecodeError:          # it would tell a part of the secret
            raise BadArguments(f"the secret in {path!s} is not UTF-8") from None

    try:
        return GivenFile(path, login)
    except BadArguments:
        raise
    except (OSError, ValueError) as error:      # ValueError: a zero byte in the name
        raise BadArguments(f"cannot read the secret: {error}") from error


def _context(tls: Tls) -> ssl.SSLContext | None:
    if tls is None:
        return None

    import ssl  # most clients use no TLS, and it takes as long to load as the rest of this library

    if isinstance(tls, ssl.SSLContext):
        return _strict(tls)
    if tls is not True:
        raise TypeError(f"tls is None, True, the path of a CA file or an ssl.SSLContext, not {type(tls).__name__}")
    return _trusting(None)


def _trusting(ca: str | os.PathLike[str] | None) -> ssl.SSLContext:
    """Return a context for servers with certificates of the authorities in this file, None: the system's."""
    import ssl

    try:
        return _strict(ssl.create_default_context(cafile=ca))
    except (OSError, ValueError) as error:
        raise _unusable(ca or "of the system", error) from error


def _unusable(ca: str | os.PathLike[str], error: OSError | ValueError) -> BadArguments:
    import ssl

    said = getattr(error, "strerror", None) or error
    reason = "there is no certificate in it" if isinstance(error, ssl.SSLError) else said     # which is an OSError
    return BadArguments(f"tls: the CA file {ca!s} cannot be used: {reason}")


def _strict(context: ssl.SSLContext) -> ssl.SSLContext:
    """Make a truncated connection an error instead of a regular end, which it is by default in Python 3.11.2."""
    import ssl

    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    return context
