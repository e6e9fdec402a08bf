"""Batches: how many entries they have, and their ids."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sockpq_sqs.model.errors import SqsError

ENTRIES_MAX = 10
ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


def check_entries(member: str, ids: Sequence[str]) -> None:
    """Check a batch by the ids of its entries; `member`: how they are called in the request. Raises SqsError."""
    if not ids:
        raise SqsError("EmptyBatchRequest", f"There should be at least one {member} in the request.")
    if len(ids) > ENTRIES_MAX:
        raise SqsError(
            "TooManyEntriesInBatchRequest",
            f"Maximum number of entries per request are {ENTRIES_MAX}. You have sent {len(ids)}.",
        )
    seen = set()
    for one in ids:
        if not ID.fullmatch(one):
            raise SqsError(
                "InvalidBatchEntryId",
                "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most "
                "80 letters long.",
            )
        if one in seen:
            raise SqsError("BatchEntryIdsNotDistinct", f"Id {one} repeated.")
        seen.add(one)
