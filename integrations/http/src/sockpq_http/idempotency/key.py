"""The key of a request, and the word that stands for it in the cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated

from fastapi import Header

from sockpq_http.limits import KEY_CHARACTERS_MAX
from sockpq_http.problems.problem import Problem

OF_JOBS = "sockpq-header-"      # headers of a request with which the headers of a job begin

Key = Annotated[str | None, Header(
    alias="Idempotency-Key", min_length=1, max_length=KEY_CHARACTERS_MAX,
    description="A request that is repeated with the same key is executed once.",
)]


def word_of(key: str, user: str, method: str, path: str) -> str:
    """Return the key that the cluster remembers: each user and each path has keys of its own.

    A structured string, `"8e03978e"`, is the same key as one without quotes.
    """
    plain = key[1:-1] if len(key) > 2 and key[0] == key[-1] == '"' else key
    text = "\n".join((user, method, path, plain))
    return f"http:{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[:48]}"


def fingerprint_of(query: str, headers: Mapping[str, str], body: bytes) -> str:
    """Return what distinguishes a request from others with the same method and path."""
    kept = sorted(pair for pair in headers.items() if pair[0].startswith(OF_JOBS) or pair[0] == "content-type")
    digest = hashlib.sha256(repr((query, kept)).encode("utf-8", "surrogateescape"))
    digest.update(body)
    return digest.hexdigest()[:32]


def other_request() -> Problem:
    """Return the answer to a request whose key was used for a different request."""
    return Problem(422, "this Idempotency-Key was used for another request: each needs its own", "key-used")
