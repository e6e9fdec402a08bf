"""Lets a node apply its whole journal at its start, as it does on a fast machine: before it takes a turn, and logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

import pytest

from sockpqd.cluster import limits


@contextmanager
def applied_at_once() -> Iterator[None]:
    """Let nodes of this process start inside."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "APPLYING_S", inf)
        yield
