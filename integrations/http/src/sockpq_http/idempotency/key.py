"""The key of a request, and the word that stands for it in the cluster."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import Header

from sockpq_http.limits import KEY_CHARACTERS_MAX

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
