"""Verifies signatures: in two steps, so that a body is read only for a user who exists, and for a current request."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from msgspec import Struct

from sockpq_sqs.auth.canonical import canonical_request, string_to_sign
from sockpq_sqs.auth.head import Head
from sockpq_sqs.auth.refusals import incomplete, unknown_key, wrong_signature
from sockpq_sqs.auth.signature import END, SERVICE, Signature, signature_of
from sockpq_sqs.auth.users import Account

# Keys of a day, region and service that are remembered: each costs four digests to compute, and only keys that have
# verified a signature are remembered, so that strangers cannot fill the table.
KEYS_MAX = 1024

UNSIGNED_BODY = "UNSIGNED-PAYLOAD"
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Claim(Struct, frozen=True):
    """A request that may be its sender's: the signature is well-formed, current, and names a user."""

    head: Head
    signature: Signature
    user: Account


def utc_now() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)


class Verifier:
    """Verifies signatures of the users in `users`, by their access keys. `now` returns the time, in UTC."""

    def __init__(self, users: Mapping[str, Account], now: Callable[[], datetime] = utc_now) -> None:
        self._users = users
        self._now = now
        self._keys: dict[tuple[str, str, str], bytes] = {}      # of (secret, day, region)

    def claim(self, head: Head) -> Claim:
        """Return the claimed sender of the request, before the body is read. Raises SqsError."""
        signature = signature_of(head)
        user = self._users.get(signature.access_key)
        if user is None:
            raise unknown_key()
        signature.check_time(self._now())
        digest = head.header("X-Amz-Content-Sha256")
        if digest == UNSIGNED_BODY:
            if not head.secure:
                raise incomplete("A body without a signature is accepted over TLS only.")
        elif digest and not _DIGEST.fullmatch(digest):
            raise incomplete("x-amz-content-sha256 must be the SHA-256 of the body in hexadecimal.")
        return Claim(head, signature, user)

    def verify(self, claim: Claim, body: bytes) -> None:
        """Refuse a request, or a body, that its sender did not sign; raises SqsError."""
        given = claim.head.header("X-Amz-Content-Sha256")
        if given != UNSIGNED_BODY:
            digest = hashlib.sha256(body).hexdigest()
            if given and not hmac.compare_digest(given, digest):
                raise wrong_signature()
            given = digest
        signature = claim.signature
        canonical = canonical_request(claim.head, signature.headers, given)
        scope = claim.user.secret, signature.day, signature.region
        key = self._keys.get(scope) or signing_key(*scope)
        text = string_to_sign(signature.stamp, signature.scope, canonical)
        if not hmac.compare_digest(hmac.digest(key, text, "sha256").hex(), signature.digest):
            raise wrong_signature()
        if scope not in self._keys:
            if len(self._keys) >= KEYS_MAX:
                self._keys.clear()
            self._keys[scope] = key


def signing_key(secret: str, day: str, region: str) -> bytes:
    """Derive the key for a day ("20261130") and a region from a secret."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, SERVICE, END):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
