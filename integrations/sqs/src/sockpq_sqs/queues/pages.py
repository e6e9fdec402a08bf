"""Pages of a sorted list of names."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Sequence

from sockpq_sqs.model.errors import invalid, wrong

PAGE_MAX = 1000


def page_of(names: Sequence[str], size: int | None, token: str | None) -> tuple[Sequence[str], str | None]:
    """Return a page of names and the token of the next one. Without a size there is one page only. Raises SqsError."""
    if size is not None and not 1 <= size <= PAGE_MAX:
        raise wrong(size, "MaxResults", f"MaxResults must be an integer between 1 and {PAGE_MAX}.")
    start = bisect_right(names, _last_of(token)) if token else 0
    end = start + (size or PAGE_MAX)
    more = size is not None and end < len(names)
    return names[start:end], _token(names[end - 1]) if more else None


def _token(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode()


def _last_of(token: str) -> str:
    try:
        return base64.b64decode(token, altchars="-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise invalid("Invalid or expired next token.") from None
