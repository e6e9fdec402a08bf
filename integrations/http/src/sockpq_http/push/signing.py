"""Signatures of requests by Standard Webhooks, with secrets that rotate.

https://www.standardwebhooks.com: `webhook-id`, `webhook-timestamp` and `webhook-signature`, which has an HMAC-SHA256 of
"id.timestamp.body" for each secret. While a secret is replaced the file has both, so receivers may know either.
"""

from __future__ import annotations

import hmac
import logging
import os
import stat
import time
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

LOG = logging.getLogger("sockpq-http")

PREFIX = "whsec_"
KEY_BYTES_MIN, KEY_BYTES_MAX = 24, 64       # as Standard Webhooks asks for
SECRETS_MAX = 10
LOOK_S = 1.0                                # a change of the file is noticed this late at most

Seen = tuple[int, int, int, int]            # of one state of the file


class SecretError(Exception):
    """The file of secrets cannot be used; the message says why, without anything of the secrets."""


class Secrets:
    """The keys in a file, one a line, the newest first. The file is read again when it has changed."""

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Read the file; raises SecretError."""
        self._path = Path(path)
        self._clock = clock
        self._looked = clock()
        self._seen, self._keys = self._read()

    def keys(self) -> tuple[bytes, ...]:
        """Return the keys now. A file that has become unusable leaves the former ones in use, with a warning."""
        now = self._clock()
        if now - self._looked >= LOOK_S:
            self._looked = now
            try:
                if self._look() != self._seen:
                    self._seen, self._keys = self._read()
                    LOG.info("read the secrets in %s again", self._path)
            except SecretError as error:
                LOG.warning("the secrets read before stay in use: %s", error)
        return self._keys

    def _read(self) -> tuple[Seen, tuple[bytes, ...]]:
        seen = self._look()
        try:
            lines = self._path.read_text("ascii").split()
        except OSError as error:
            raise SecretError(f"{self._path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise SecretError(f"{self._path}: has characters that no secret has") from None
        if not 1 <= len(lines) <= SECRETS_MAX:
            raise SecretError(f"{self._path}: needs 1 to {SECRETS_MAX} secrets, one a line")
        return seen, tuple(self._key(number, line) for number, line in enumerate(lines, 1))

    def _key(self, number: int, line: str) -> bytes:
        try:
            key = b64decode(line.removeprefix(PREFIX), validate=True)
        except NotBase64:
            key = b""
        if not line.startswith(PREFIX) or not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
            raise SecretError(
                f"{self._path}: line {number} is not {PREFIX} and {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes in base64; "
                f"`echo {PREFIX}$(head -c 32 /dev/urandom | base64 -w 0)` makes a secret"
            )
        return key

    def _look(self) -> Seen:
        """Return a value that differs between states of the file; raises SecretError if others may read it."""
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise SecretError(f"{self._path}: {error.strerror}") from None
        if found.st_mode & (stat.S_IROTH | stat.S_IWOTH):
            raise SecretError(f"{self._path}: everybody may read or write it; `chmod o-rw {self._path}`")
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def signature_headers(keys: tuple[bytes, ...], message: str, now_s: int, body: bytes) -> dict[str, str]:
    """Return the headers of Standard Webhooks. `message`: its id; `now_s`: Unix time."""
    signed = f"{message}.{now_s}.".encode() + body
    signatures = (b64encode(hmac.digest(key, signed, sha256)).decode() for key in keys)
    return {
        "webhook-id": message,
        "webhook-timestamp": str(now_s),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
