"""The tables as SQLAlchemy's, for programs whose migrations are made by Alembic. They are those of `sql.py`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, LargeBinary, MetaData, String, Table, Text
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT
from sqlalchemy.dialects.mysql import VARCHAR as MYSQL_VARCHAR
from sqlalchemy.types import TypeEngine

from sockpq_outbox.sql import IDENTITY_MAX


def outbox_tables(metadata: MetaData) -> tuple[Table, Table]:
    """Return the table of jobs and the table of ledgers."""
    jobs = Table(
        "sockpq_outbox", metadata,
        Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
        Column("batch", _word(64)),
        Column("queue", _word(255), nullable=False),
        Column("body", LargeBinary().with_variant(LONGBLOB, "mysql", "mariadb"), nullable=False),
        Column("options", _text(), nullable=False),
        Column("created", Double, nullable=False),
        Column("failed", Double),
        Column("error", _text()),
        Index("sockpq_outbox_batch", "batch", "id"),
        sqlite_autoincrement=True,
    )
    ledgers = Table(
        "sockpq_outbox_relay", metadata,
        Column("name", _word(255), primary_key=True),
        Column("holder", _word(64), nullable=False),
        Column("identity", _word(64), nullable=False),
    )
    return jobs, ledgers


def inbox_table(metadata: MetaData) -> Table:
    """Return the table of marks."""
    return Table(
        "sockpq_inbox", metadata,
        Column("job", _word(IDENTITY_MAX), primary_key=True),
        Column("created", Double, nullable=False),
        Index("sockpq_inbox_created", "created"),
    )


def _word(length: int) -> TypeEngine[str]:
    exact = MYSQL_VARCHAR(length, charset="ascii", collation="ascii_bin")
    return String(length).with_variant(exact, "mysql", "mariadb")


def _text() -> TypeEngine[str]:
    return Text().with_variant(LONGTEXT, "mysql", "mariadb")
