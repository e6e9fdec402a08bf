"""The relay with two clusters used as one: each prefix of the map has a ledger, in the cluster that owns it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sockpq_outbox import Relay, database_of, outbox, transaction

from tests.client.pair import Pair
from tests.waiting import until


def test_each_namespace_has_a_ledger(sqlite_file: Path) -> None:
    shop = sqlite3.connect(sqlite_file)

    def put(*queues: str) -> None:
        for queue in queues:
            outbox.put(shop, queue, b"")
        shop.commit()

    def waiting() -> tuple[int, int, int]:
        with transaction(database_of(shop)) as rows:
            return rows.counts()[:3]

    with Pair() as pair:
        pair.set({"b.": "b"})
        put("mail", "b.film", "mail", "b.film", "b.film")
        with Relay(f"sqlite:///{sqlite_file}", pair.a.servers[0], poll=0.02) as relay:
            until(lambda: waiting() == (0, 0, 0))
            assert (sum(pair.count("a", "mail")), sum(pair.count("b", "b.film"))) == (2, 3)
            assert sum(pair.count("a", "sockpq.outbox.default")) == 1
            assert sum(pair.count("b", "b.sockpq.outbox.default")) == 1
            # The map changes while the relay works: what it does not know yet is refused, and looked up again.
            pair.set({"b.": "b", "c.": "b"})
            put("c.song", "mail")
            until(lambda: waiting() == (0, 0, 0))
            assert (sum(pair.count("b", "c.song")), sum(pair.count("a", "mail"))) == (1, 3)
        assert relay.statistics.failed == 0
    shop.close()
