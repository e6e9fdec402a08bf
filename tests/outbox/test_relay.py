"""The relay between SQLite and a real node: each committed row arrives once, whatever happens in between."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sockpq import Client, Key, OutcomeUnknown
from sockpq.testing import Server
from sockpq_outbox import Database, OtherDatabase, Relay, database_of, outbox, transaction
from sockpq_outbox.relay import ledger as ledgers
from sockpq_outbox.relay.lane import Lane, Settings
from sockpq_outbox.relay.ledger import Ledger
from sockpq_outbox.relay.statistics import Statistics
from sockpq_outbox.rows import Namespace

from tests.waiting import until

LEDGER = "sockpq.outbox.default"


class Crash(BaseException):
    """The end of a relay, which nothing in it handles."""


@pytest.fixture
def client(own_server: Server) -> Iterator[Client]:
    own_server.empty()
    with Client(own_server.address) as client:
        yield client


@pytest.fixture
def shop(sqlite_file: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(sqlite_file)
    yield connection
    connection.close()


@pytest.fixture
def database(sqlite_file: Path) -> Iterator[Database]:
    connection = sqlite3.connect(sqlite_file)
    yield database_of(connection)
    connection.close()


@pytest.fixture
def new_lane(client: Client) -> Callable[..., Lane]:
    """Make the one lane of another relay."""
    return lambda **settings: Lane(Namespace(), client, Settings(lease=60, **settings), Statistics())


def relay_of(path: Path, client: Client, **settings: object) -> Relay:
    return Relay(f"sqlite:///{path}", client, poll=0.02, **settings)      # type: ignore[arg-type]


def put(shop: sqlite3.Connection, *texts: str, queue: str = "mail") -> None:
    for text in texts:
        outbox.put(shop, queue, text)
    shop.commit()


def arrived(client: Client, queue: str = "mail") -> list[str]:
    return [job.data.decode() for job in client.peek_queue(queue, "ready", 1000)]


def drained(lane: Lane, database: Database) -> None:
    """Take turns until nothing is left to do, the removal of the last batch included."""
    for _ in range(100):
        if not lane.turn(database, 0):
            return
    raise AssertionError("there is no end")


def counts(database: Database) -> tuple[int, int, int]:
    with transaction(database) as rows:
        return rows.counts()[:3]


def test_committed_rows_arrive_in_order_and_are_gone(
    shop: sqlite3.Connection, client: Client, sqlite_file: Path, database: Database,
) -> None:
    put(shop, "1", "2")
    outbox.put(shop, "mail", "never")
    shop.rollback()
    with relay_of(sqlite_file, client) as relay:
        until(lambda: len(arrived(client)) == 2)
        put(shop, "3")
        until(lambda: len(arrived(client)) == 3)
        until(lambda: counts(database) == (0, 0, 0))
        assert relay.statistics.holds
    assert arrived(client) == ["1", "2", "3"]
    assert (relay.statistics.put, relay.statistics.takeovers) == (3, 1)
    ledger = client.peek(Key(LEDGER, "ledger"))
    assert ledger is not None
    assert ledger.state == "ready"          # given back: another relay need not wait for the end of the lease


def test_all_options_arrive(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
) -> None:
    outbox.put(shop, "mail", json={"to": "ann"}, priority=5, key="a1", headers={"x": "y"}, number=True, tries=3,
               group="g1", dedup=("d1", 60))
    outbox.put(shop, "mail", b"", delay=3600)
    client.put("other", b"", item="some_item")
    outbox.put(shop, "mail", b"", after="some_item")
    shop.commit()
    drained(new_lane(), database)
    job = client.get("mail", expire=60, meta=True, headers=True)
    assert job is not None
    assert (job.json(), job.priority, job.key, job.group, job.headers["x"]) == ({"to": "ann"}, 5, "a1", "g1", "y")
    assert job.number is not None
    assert len(client.peek_queue("mail", "delayed", 9)) == 2
    outbox.put(shop, "mail", b"", dedup=("d1", 60))
    shop.commit()
    drained(new_lane_after(client, new_lane), database)
    assert client.get("mail", expire=60) is None


def new_lane_after(client: Client, new_lane: Callable[..., Lane]) -> Lane:
    """Make a lane when the lease of the one before has ended."""
    end_lease(client)
    return new_lane()


def end_lease(client: Client) -> None:
    """Let the lease of the ledger end."""
    ledger = client.peek(Key(LEDGER, "ledger"))
    assert ledger is not None
    assert ledger.id is not None
    client.later(ledger.id)


# what the cluster refuses

def test_what_is_refused_for_good_is_marked_and_the_rest_arrives(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
) -> None:
    client.put("mail", "first", key="a1")
    put(shop, "1")
    outbox.put(shop, "mail", "twice", key="a1")
    shop.execute("UPDATE sockpq_outbox SET options = '{\"tries\": 0}' WHERE id = 1")
    outbox.put(shop, "mail", bytes(9 << 20))
    put(shop, "2")
    shop.execute("INSERT INTO sockpq_outbox (queue, body, options, created) VALUES ('mail', x'', 'no JSON', 5)")
    put(shop, "3")
    lane = new_lane()
    drained(lane, database)
    assert arrived(client) == ["first", "2", "3"]
    with transaction(database) as rows:
        failures = {failure.id: failure.error.partition(":")[0] for failure in rows.failures(9)}
    assert failures == {1: "BadArguments", 2: "JobExists", 3: "DataTooLarge", 5: "JSONDecodeError"}
    client.delete(Key("mail", "a1"))
    with transaction(database) as rows:
        assert rows.retry_failed() == 4
    drained(lane, database)
    assert arrived(client) == ["2", "3", "twice"]


def test_a_full_queue_takes_what_it_has_room_for_and_others_go_on(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
) -> None:
    client.queue_create("mail", capacity=2)
    put(shop, "1", "2", "3")
    put(shop, "a", queue="other")
    put(shop, "4", "5")
    lane = new_lane()
    drained(lane, database)
    assert (arrived(client), arrived(client, "other")) == (["1", "2"], ["a"])
    assert counts(database) == (3, 0, 0)
    for expected in ("1", "2", "3", "4", "5"):
        job = client.get("mail", expire=60)
        assert job is not None
        assert job.text == expected
        job.done()
        retry(lane)
        drained(lane, database)
        assert lane.blocked.keys() == ({"mail"} if counts(database)[0] else set())
    assert counts(database) == (0, 0, 0)


def retry(lane: Lane) -> None:
    """Let the pauses of all queues end."""
    for queue, blocked in lane.blocked.items():
        lane.blocked[queue] = blocked._replace(until=0.0)


def test_the_pauses_before_a_queue_is_tried_again_grow(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
) -> None:
    client.queue_create("mail")
    client.queue_pause("mail", "in")
    put(shop, "1")
    lane = new_lane()
    drained(lane, database)
    assert (lane.blocked["mail"].pause_s, counts(database)) == (1.0, (1, 0, 0))
    put(shop, "a", queue="other")
    drained(lane, database)             # before that it is not even asked
    assert (lane.blocked["mail"].pause_s, arrived(client, "other")) == (1.0, ["a"])
    for pause_s in (2.0, 4.0, 8.0, 16.0, 30.0, 30.0):
        retry(lane)
        drained(lane, database)
        assert lane.blocked["mail"].pause_s == pause_s
    client.queue_resume("mail")
    retry(lane)
    drained(lane, database)
    assert (arrived(client), lane.blocked) == (["1"], {})


def test_a_batch_is_no_longer_than_a_transaction_may_be(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
) -> None:
    for _ in range(4):
        outbox.put(shop, "mail", bytes(5 << 20))
    shop.commit()
    lane = new_lane()
    drained(lane, database)
    assert (client.total("mail").jobs, lane._statistics.batches) == (4, 2)


# takeovers

def test_a_relay_that_dies_before_the_batch_is_put(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(shop, "1", "2")
    lane = new_lane()
    lane.turn(database, 0)
    monkeypatch.setattr(Ledger, "put", crash)
    with pytest.raises(Crash):
        lane.turn(database, 0)
    monkeypatch.undo()
    assert counts(database) == (0, 2, 0)
    drained(new_lane_after(client, new_lane), database)
    assert (arrived(client), counts(database)) == (["1", "2"], (0, 0, 0))


def crash(*_: object) -> None:
    raise Crash


def test_a_relay_that_dies_when_the_batch_is_put(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
) -> None:
    put(shop, "1", "2")
    lane = new_lane()
    lane.turn(database, 0)
    lane.turn(database, 0)
    assert (arrived(client), counts(database)) == (["1", "2"], (0, 2, 0))
    drained(new_lane_after(client, new_lane), database)
    assert (arrived(client), counts(database)) == (["1", "2"], (0, 0, 0))


def test_a_relay_that_wakes_up_after_its_lease_changes_nothing(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(shop, "1", "2")
    zombie = new_lane()
    zombie.turn(database, 0)
    batch_of = Ledger.put

    def asleep(ledger: Ledger, batch: str, rows: list[object]) -> None:
        monkeypatch.undo()
        drained(new_lane_after(client, new_lane), database)
        batch_of(ledger, batch, rows)       # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "put", asleep)
    assert zombie.turn(database, 0) is False
    assert not zombie.holds
    assert (arrived(client), counts(database)) == (["1", "2"], (0, 0, 0))


def test_a_relay_that_wakes_up_between_two_batches_claims_nothing(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
) -> None:
    zombie = new_lane()
    drained(zombie, database)
    other = new_lane_after(client, new_lane)
    drained(other, database)
    put(shop, "1")
    assert zombie.turn(database, 0) is False
    assert (zombie.holds, counts(database)) == (False, (1, 0, 0))
    drained(other, database)
    assert arrived(client) == ["1"]


def test_a_relay_that_wakes_up_while_it_leaves_out_a_row(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client.put("mail", "first", key="a1")
    outbox.put(shop, "mail", "twice", key="a1")
    shop.commit()
    zombie = new_lane()
    zombie.turn(database, 0)
    leave_out = Lane._leave_out

    def asleep(lane: Lane, *arguments: object) -> None:
        monkeypatch.undo()
        client.delete(Key("mail", "a1"))
        drained(new_lane_after(client, new_lane), database)
        put(shop, "2")
        leave_out(lane, *arguments)         # type: ignore[arg-type]

    monkeypatch.setattr(Lane, "_leave_out", asleep)
    assert zombie.turn(database, 0) is False
    assert (arrived(client), counts(database)) == (["twice"], (1, 0, 0))


def test_a_relay_that_wakes_up_before_it_has_the_fence(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drained(new_lane(), database)
    end_lease(client)
    put(shop, "1")
    take = ledgers.take

    def asleep(*arguments: object, make: bool) -> Ledger | None:
        taken = take(*arguments, make=make)         # type: ignore[arg-type]
        monkeypatch.undo()
        other = new_lane_after(client, new_lane)
        drained(other, database)
        put(shop, "2")
        other.turn(database, 0)
        return taken

    monkeypatch.setattr("sockpq_outbox.relay.lane.take", asleep)
    assert new_lane().turn(database, 0) is False
    assert counts(database) == (0, 1, 0)        # of the other one, which goes on
    assert arrived(client) == ["1", "2"]


def test_a_relay_that_dies_while_it_takes_over_for_the_first_time(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the ledger says of its database has been committed there."""
    put(shop, "1")
    check = Ledger.check

    def dies(ledger: Ledger, identity: str, adopt: bool) -> str:
        check(ledger, identity, adopt)
        raise Crash

    monkeypatch.setattr(Ledger, "check", dies)
    with pytest.raises(Crash):
        new_lane().turn(database, 0)
    monkeypatch.undo()
    drained(new_lane(), database)
    assert arrived(client) == ["1"]


def test_an_answer_that_is_lost_is_not_guessed(
    shop: sqlite3.Connection, client: Client, sqlite_file: Path, database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(shop, "1", "2")
    batch_of = Ledger.put

    def lost(ledger: Ledger, batch: str, rows: list[object]) -> None:
        monkeypatch.undo()
        batch_of(ledger, batch, rows)       # type: ignore[arg-type]
        raise OutcomeUnknown("no answer")

    monkeypatch.setattr(Ledger, "put", lost)
    with relay_of(sqlite_file, client) as relay:
        put(shop, "3")
        until(lambda: len(arrived(client)) == 3 and counts(database) == (0, 0, 0))
    assert arrived(client) == ["1", "2", "3"]
    assert (relay.statistics.errors, relay.statistics.takeovers) == (1, 2)


def test_one_works_and_another_waits(
    shop: sqlite3.Connection, client: Client, sqlite_file: Path, own_server: Server,
) -> None:
    with relay_of(sqlite_file, client) as first:
        until(lambda: first.statistics.holds)
        second = Relay(f"sqlite:///{sqlite_file}", own_server.address, poll=0.02)
        second.start()
        put(shop, "1")
        until(lambda: arrived(client) == ["1"])
        assert not second.statistics.holds
    put(shop, "2")
    until(lambda: arrived(client) == ["1", "2"])
    until(lambda: second.statistics.holds)
    second.stop()


# mistakes of operators

def test_two_databases_do_not_share_a_ledger(
    client: Client, database: Database, new_lane: Callable[..., Lane], tmp_path: Path,
) -> None:
    drained(new_lane(), database)
    end_lease(client)
    with sqlite3.connect(":memory:") as other:
        from sockpq_outbox import create_tables

        for statement in create_tables("sqlite"):
            other.execute(statement)
        other.commit()
        with pytest.raises(OtherDatabase, match="give each of them a --name"):
            new_lane().turn(database_of(other), 0)
        lane = new_lane(adopt=True)
        assert lane.turn(database_of(other), 0)
        put(other, "1")
        drained(lane, database_of(other))
    assert arrived(client) == ["1"]
    other.close()
    end_lease(client)
    with pytest.raises(OtherDatabase):
        new_lane().turn(database, 0)


def test_a_relay_of_another_database_ends(client: Client, sqlite_file: Path) -> None:
    client.put(LEDGER, "some_identity h.1", key="ledger")
    with pytest.raises(OtherDatabase):
        relay_of(sqlite_file, client).run()


def test_a_job_that_is_no_ledger_is_buried(
    shop: sqlite3.Connection, client: Client, database: Database, new_lane: Callable[..., Lane],
) -> None:
    client.put(LEDGER, "garbage")
    put(shop, "1")
    lane = new_lane()
    assert lane.turn(database, 0) is False
    drained(lane, database)
    assert arrived(client) == ["1"]


def test_missing_tables_are_waited_for(
    client: Client, sqlite_file: Path, shop: sqlite3.Connection, caplog: pytest.LogCaptureFixture,
) -> None:
    shop.execute("ALTER TABLE sockpq_outbox_relay RENAME TO away")
    shop.commit()
    put(shop, "1")
    with relay_of(sqlite_file, client) as relay:
        until(lambda: relay.statistics.errors > 1)
        shop.execute("ALTER TABLE away RENAME TO sockpq_outbox_relay")
        shop.commit()
        until(lambda: arrived(client) == ["1"])
    assert "no such table: sockpq_outbox_relay" in caplog.text


def test_old_failures_and_marks_are_removed(
    client: Client, sqlite_file: Path, shop: sqlite3.Connection, database: Database,
) -> None:
    shop.execute("INSERT INTO sockpq_outbox (batch, queue, body, options, created, failed) "
                 "VALUES ('failed', 'a', x'', '{}', 1, 1)")
    shop.execute("INSERT INTO sockpq_inbox (job, created) VALUES ('1', 1)")
    shop.commit()
    with relay_of(sqlite_file, client):
        until(lambda: counts(database) == (0, 0, 0))
        until(lambda: not shop.execute("SELECT 1 FROM sockpq_inbox").fetchall())


@pytest.mark.parametrize(
    ("settings", "text"), [({"rows_max": 0}, "1 to 900"), ({"rows_max": 901}, "1 to 900"), ({"lease": 0.5}, "lease"),
                           ({"poll": 0}, "polls")],
)
def test_settings_are_checked(settings: dict[str, float], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Relay("sqlite:///x.db", **settings)     # type: ignore[arg-type]
