"""Checks whether the tables of the outbox can be read, for operators, and for a relay that connects."""

from __future__ import annotations

from sockpq_outbox.databases.base import Database, run
from sockpq_outbox.rows import transaction
from sockpq_outbox.sql import TABLES


def tables_are_missing(database: Database) -> str | None:
    """Return why the tables cannot be read, and what to do; None if they can."""
    for table in TABLES:
        try:
            with transaction(database):
                run(database.execute(f"SELECT 1 FROM {table} LIMIT 1", {}))
        except Exception as error:
            return f"the table {table} cannot be read ({error}): `pqoutbox create-tables` makes it"
    return None
