"""Maps errors of sockpq to kombu's: those that end the connection, and those that the program sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

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


class _ErrorsOfKombu:
    """See errors_of_kombu(). Each message passes here, and a generator would take twice as long."""

    def __enter__(self) -> None:
        ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, SockpqError) and not isinstance(error, (*LOST, AuthError)):
            raise OperationalError(str(error)) from error


_ERRORS_OF_KOMBU = _ErrorsOfKombu()


def errors_of_kombu() -> AbstractContextManager[None]:
    """Convert a refusal, such as of a full queue, to the OperationalError that callers of kombu expect."""
    return _ERRORS_OF_KOMBU


@contextmanager
def errors_of_publishers() -> Iterator[None]:
    """Like errors_of_kombu(), for programs that call Celery: a lost connection is an OperationalError, too."""
    try:
        with errors_of_kombu():
            yield
    except CONNECTION as error:
        raise OperationalError(str(error)) from error
