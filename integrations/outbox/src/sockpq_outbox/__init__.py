"""An outbox and an inbox for sockpqd in your own database: from COMMIT to effect, exactly once.

    outbox.put(session, "mail", json={"to": "ann"})         # arrives once if the transaction commits
    with inbox.once(session, job) as first: ..              # its effect happens once
"""

from sockpq_outbox import inbox, outbox
from sockpq_outbox.databases.base import Database
from sockpq_outbox.databases.found import database_of
from sockpq_outbox.errors import NoIdentity, OtherDatabase, OutboxError, UnknownDatabase
from sockpq_outbox.relay.relay import Relay
from sockpq_outbox.relay.statistics import Statistics
from sockpq_outbox.rows import Counts, Failed, Rows, transaction
from sockpq_outbox.sql import create_tables

__all__ = [
    "Counts",
    "Database",
    "Failed",
    "NoIdentity",
    "OtherDatabase",
    "OutboxError",
    "Relay",
    "Rows",
    "Statistics",
    "UnknownDatabase",
    "create_tables",
    "database_of",
    "inbox",
    "outbox",
    "transaction",
]
