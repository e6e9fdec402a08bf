"""Stored secrets: salted scrypt hashes, `<n>$<r>$<p>$<salt>$<hash>` with the last two in base64."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

from msgspec import Struct

from sockpqd.gateway.limits import SCRYPT_BYTES_MAX

# 16 MiB and about 50 ms per guess.
N, R, P = 1 << 14, 8, 1
N_MIN, N_MAX = 1 << 10, 1 << 20
R_MAX, P_MAX = 32, 16
SALT_BYTES, HASH_BYTES = 16, 32
BYTES_MIN, BYTES_MAX = 8, 64        # of a salt or hash in the users file


class Scrypt(Struct, frozen=True):
    """The hash of a secret, with its parameters."""

    n: int
    r: int
    p: int
    salt: bytes
    digest: bytes

    def matches(self, secret: str) -> bool:
        """Return whether this is the secret. Slow, and always takes the same time."""
        return hmac.compare_digest(_digest(secret, self.n, self.r, self.p, self.salt, len(self.digest)), self.digest)

    @property
    def text(self) -> str:
        """The form used in the users file."""
        salt, digest = (base64.b64encode(value).decode("ascii") for value in (self.salt, self.digest))
        return f"{self.n}${self.r}${self.p}${salt}${digest}"


def hashed(secret: str) -> Scrypt:
    """Hash a secret with a new salt."""
    salt = secrets.token_bytes(SALT_BYTES)
    return Scrypt(N, R, P, salt, _digest(secret, N, R, P, salt, HASH_BYTES))


def of_text(text: str) -> Scrypt:
    """Parse a hash from its text form; raises ValueError, whose message does not contain the text."""
    parts = text.split("$")
    try:
        n, r, p = (_number(part) for part in parts[:3])
        salt, digest = (base64.b64decode(part, validate=True) for part in parts[3:])
    except (ValueError, binascii.Error):
        raise ValueError("is not what sockpqd --hash-secret prints") from None
    if n & (n - 1) or not N_MIN <= n <= N_MAX or not 1 <= r <= R_MAX or not 1 <= p <= P_MAX:
        raise ValueError(f"n must be a power of two from {N_MIN} to {N_MAX}, r at most {R_MAX}, p at most {P_MAX}")
    if 128 * n * r > SCRYPT_BYTES_MAX:
        raise ValueError(f"would need {128 * n * r} bytes of memory for each AUTH; {SCRYPT_BYTES_MAX} are allowed")
    if not all(BYTES_MIN <= len(value) <= BYTES_MAX for value in (salt, digest)):
        raise ValueError(f"salt and hash must have {BYTES_MIN} to {BYTES_MAX} bytes")
    return Scrypt(n, r, p, salt, digest)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError
    return int(text)


def _digest(secret: str, n: int, r: int, p: int, salt: bytes, size: int) -> bytes:
    return hashlib.scrypt(
        secret.encode(), salt=salt, n=n, r=r, p=p, maxmem=2 * SCRYPT_BYTES_MAX, dklen=size,
    )
