"""The rights that a relay needs: those of docs/OUTBOX.md are enough, and a row beyond them fails alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq_outbox import Relay, database_of, outbox, transaction

from devcluster.cluster import LocalCluster
from sockpqd.gateway.auth import scrypt
from tests.waiting import until

SECRET = "of-the-relay"
RIGHTS = '["put:sockpq.outbox.default*", "get:sockpq.outbox.default*", "put:mail*"]'


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a node with a user for the relay."""
    with LocalCluster(1) as cluster:
        (name,) = cluster.names
        users = cluster.folder / "users.toml"
        users.write_text(f'[users.relay]\nrights = {RIGHTS}\nscrypt = "{scrypt.hashed(SECRET).text}"\n')
        users.chmod(0o600)
        config = cluster.config_file(name)
        config.write_text(f'{config.read_text()}\n[auth]\nusers_file = "{users}"\n')
        cluster.kill(name)
        cluster.restart(name, wait=False)
        yield cluster.server(name)


def test_a_relay_needs_few_rights(server: str, sqlite_file: Path) -> None:
    shop = sqlite3.connect(sqlite_file)
    for queue in ("mail", "secrets", "mail"):
        outbox.put(shop, queue, b"")
    shop.commit()
    with Relay(f"sqlite:///{sqlite_file}", server, user="relay", secret=SECRET, poll=0.02) as relay:
        until(lambda: relay.statistics.put == 2)
    assert relay.statistics.failed == 1
    with transaction(database_of(shop)) as rows:
        (failure,) = rows.failures(9)
    assert failure.queue == "secrets"
    assert failure.error.startswith("ForbiddenError: ")
    shop.close()
