"""Maps errors of the client library to those after which Dramatiq tries again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dramatiq.errors import ConnectionClosed
from sockpq import (
    Busy,
    ClientClosed,
    NotServing,
    OutcomeUnknown,
    ProtocolError,
    QueueFull,
    QueuePaused,
    Unavailable,
)

LOST = (Unavailable, OutcomeUnknown, ClientClosed, NotServing, Busy, ProtocolError, OSError)
# Refusals that end by themselves, or when an operator acts: what waits for them is tried again.
FOR_NOW = (QueueFull, QueuePaused, Busy)


@contextmanager
def errors_of_dramatiq() -> Iterator[None]:
    """Raise ConnectionClosed where the cluster did not answer: workers wait a moment and try again."""
    try:
        yield
    except LOST as error:
        raise ConnectionClosed(error) from error
