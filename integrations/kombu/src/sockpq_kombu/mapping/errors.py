"""Maps errors of sockpq to kombu's: those that end the connection, and those that the program sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kombu.exceptions import OperationalError
from sockpq import (
    AuthError,
    Busy,
    ClientClosed,
    ForeignCluster,
    NotServing,
    OutcomeUnknown,
    ProtocolError,
    SockpqError,
    Unavailable,
)

# Errors after which a retry may help. A refused secret is not among them, nor another cluster: Celery would retry for
# ever.
CONNECTION = (
    Unavailable, OutcomeUnknown, ClientClosed, NotServing, Busy,
    ProtocolError, OSError,
)
LOST = (*CONNECTION, ForeignCluster)        # the connection is of no use, whether or not another one would be


@contextmanager
def errors_of_kombu() -> Iterator[None]:
    """Convert a refusal, such as of a full queue, to the OperationalError that callers of kombu expect."""
    try:
        yield
    except (*LOST, AuthError):
        raise
    except SockpqError as error:
        raise OperationalError(str(error)) from error


@contextmanager
def errors_of_publishers() -> Iterator[None]:
    """Like errors_of_kombu(), for programs that call Celery: a lost connection is an OperationalError, too."""
    try:
        with errors_of_kombu():
            yield
    except CONNECTION as error:
        raise OperationalError(str(error)) from error
