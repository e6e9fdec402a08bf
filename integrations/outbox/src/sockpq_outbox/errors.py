"""Errors of this distribution. What the cluster refuses is an error of the client library."""

from __future__ import annotations


class OutboxError(Exception):
    """Base of all errors of this distribution."""


class UnknownDatabase(OutboxError, TypeError):
    """The session, connection or URL is of a library or database that is not supported."""


class NoIdentity(OutboxError):
    """The job has nothing by which it is recognized when it is delivered again."""


class OtherDatabase(OutboxError):
    """The ledger in the cluster belongs to the outbox of another database."""


class TablesMissing(OutboxError):
    """The relay cannot read a table of the outbox. Internal: it is logged, and the relay tries again."""


class Superseded(OutboxError):
    """Another relay has taken over. Internal: the relay waits for its next turn."""
