"""OUTBOX: a task is a row of the caller's transaction, then a job, once."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import sockpq_django
from django.core.management import CommandError, call_command
from django.db import connections, transaction
from django.test import override_settings
from django.utils import timezone
from sockpq import Client
from sockpq_django.api import TaskResultDoesNotExist, TaskResultStatus
from sockpq_django.backend import SockpqBackend
from sockpq_django.database.rows import row_of
from sockpq_django.database.transactions import TransactionWarning
from sockpq_django.models import InboxMark, OutboxRelay, OutboxRow
from sockpq_django.operations.relaying import database_for_relay, relay_of
from sockpq_django.tasks.names import parsed_id
from sockpq_django.testing import run_tasks
from sockpq_outbox import create_tables

from tests.django.conftest import Configure
from tests.django.shop import tasks
from tests.django.shop.models import Effect, Order
from tests.waiting import until

READY, SUCCESSFUL, FAILED = TaskResultStatus.READY, TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED

pytestmark = pytest.mark.usefixtures("tables")


@contextmanager
def relaying(backend: SockpqBackend) -> Iterator[None]:
    """Relay within the block, in a thread, as `manage.py sockpq_relay` does."""
    relay = relay_of(backend)

    def run() -> None:
        try:
            relay.run()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        relay.stop()
        thread.join()


def status(result: Any) -> Any:
    result.refresh()
    return result.status


def test_a_task_of_each_committed_order_and_none_of_others(cluster: Configure, client: Client) -> None:
    backend = cluster(OUTBOX="default", PREFIX="shop.")
    results = []
    for number in range(6):
        with transaction.atomic():
            order = Order.objects.create(name=str(number))
            results.append(tasks.effect.using(priority=number).enqueue(order.name))
            transaction.set_rollback(number % 3 == 0)
    assert client.total().jobs == 0
    assert OutboxRow.objects.count() == 4
    with relaying(backend):
        until(lambda: OutboxRow.objects.count() == 0)
    assert client.total("shop.default").jobs == 4
    assert backend.run() == 4
    assert sorted(one.name for one in Effect.objects.all()) == ["1", "2", "4", "5"]
    for number, result in enumerate(results):
        if number % 3:
            assert status(result) == SUCCESSFUL
        else:
            with pytest.raises(TaskResultDoesNotExist):
                result.refresh()


def test_a_task_in_the_outbox_has_its_result_and_is_equal(cluster: Configure) -> None:
    backend = cluster(OUTBOX="default")
    at = timezone.now() + timedelta(hours=1)
    result = tasks.add.using(priority=-3, run_after=at).enqueue(1, 2)
    assert backend.get_result(result.id) == result


def test_savepoints(cluster: Configure) -> None:
    cluster(OUTBOX="default")
    with transaction.atomic():
        tasks.note.enqueue("kept")
        with transaction.atomic():
            tasks.note.enqueue("dropped")
            transaction.set_rollback(True)
    assert OutboxRow.objects.count() == 1


def test_the_row_is_in_the_database_of_the_outbox(cluster: Configure) -> None:
    backend = cluster(OUTBOX="other")
    with transaction.atomic(using="other"):
        result = tasks.note.enqueue("x")
    assert (OutboxRow.objects.count(), OutboxRow.objects.using("other").count()) == (0, 1)
    assert status(result) == READY
    with relaying(backend):
        until(lambda: OutboxRow.objects.using("other").count() == 0)
    assert backend.run() == 1


def test_a_task_in_the_outbox_is_cancelled_by_the_transaction(cluster: Configure) -> None:
    cluster(OUTBOX="default")
    result = tasks.note.enqueue("x")
    with transaction.atomic():
        assert sockpq_django.cancel(result.id)
        transaction.set_rollback(True)
    assert status(result) == READY
    assert sockpq_django.cancel(result.id)
    assert not sockpq_django.cancel(result.id)
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


def test_a_row_that_the_relay_has_is_cancelled_when_it_is_a_job(cluster: Configure) -> None:
    backend = cluster(OUTBOX="default")
    backend.run()               # which makes the settings of the queues
    result = tasks.note.enqueue("x")
    OutboxRow.objects.update(batch="relay.1")
    relay = threading.Timer(0.3, _put_and_forget, (backend, result.id))
    relay.start()
    assert sockpq_django.cancel(result.id)
    relay.join()
    assert status(result) == FAILED


def _put_and_forget(backend: SockpqBackend, result_id: str) -> None:
    """Do what the relay does with a row that it has: put its job, then remove the row."""
    task_id = parsed_id(result_id)
    assert task_id is not None
    row = row_of("default", backend.settings, task_id)
    assert row is not None
    backend._put(task_id, row.seen.body, row.seen.priority, row.at)
    OutboxRow.objects.all().delete()
    connections.close_all()


def test_a_row_that_stays_with_its_relay_is_not_cancelled(
    cluster: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster(OUTBOX="default")
    monkeypatch.setattr("sockpq_django.backend.RELAYED_S", 0.1)
    result = tasks.note.enqueue("x")
    OutboxRow.objects.update(batch="relay.1")
    assert not sockpq_django.cancel(result.id)


def test_what_the_cluster_refuses_has_failed(cluster: Configure, client: Client) -> None:
    backend = cluster(OUTBOX="default")
    client.queue_config("default", data_bytes_max=300)
    result, other = tasks.note.enqueue("x" * 1000), tasks.note.enqueue("y")
    with relaying(backend):
        until(lambda: OutboxRow.objects.filter(batch=None).count() == 0)
        until(lambda: status(other) == READY and not OutboxRow.objects.exclude(batch="failed").exists())
    result.refresh()
    assert (result.status, result.errors[0].exception_class) == (FAILED, sockpq_django.TaskRefused)
    assert "413" in result.errors[0].traceback
    assert result.finished_at is not None


def test_the_worker_does_what_the_transaction_of_another_task_has_enqueued(cluster: Configure) -> None:
    backend = cluster(OUTBOX="default")
    tasks.enqueue_another.enqueue("inner")
    assert backend.run() == 2
    assert tasks.RAN == ["inner"]


def test_in_memory_rows_are_run_and_rolled_back_ones_are_not(memory: Configure) -> None:
    memory(OUTBOX="default")
    with transaction.atomic():
        tasks.note.enqueue("never")
        transaction.set_rollback(True)
    result = tasks.note.enqueue("kept")
    assert status(result) == READY
    assert run_tasks() == 1
    assert tasks.RAN == ["kept"]
    assert status(result) == SUCCESSFUL


def test_the_relay_removes_old_marks_of_the_inbox(cluster: Configure) -> None:
    backend = cluster(OUTBOX="default")
    InboxMark.objects.create(job="old", created=time.time() - 8 * 86_400)
    InboxMark.objects.create(job="new", created=time.time())
    with relaying(backend):
        until(lambda: InboxMark.objects.count() == 1)
    assert InboxMark.objects.get().job == "new"


def test_without_an_outbox_there_is_no_relay(cluster: Configure) -> None:
    cluster()
    with pytest.raises(CommandError, match="no OUTBOX"):
        call_command("sockpq_relay")


def test_the_tables_are_those_of_the_relay() -> None:
    """Compare the columns that the migration has made with those that `pqoutbox create-tables` makes."""
    connection = connections["default"]
    tables = [model._meta.db_table for model in (OutboxRow, OutboxRelay, InboxMark)]

    def columns() -> dict[str, list[tuple[Any, ...]]]:
        found = {}
        with connection.cursor() as cursor:
            for table in tables:
                (key,) = connection.introspection.get_primary_key_columns(cursor, table)
                found[table] = [
                    # SQLite says of the key of a table with ids that it may be NULL, which it may not.
                    (one.name, one.name == key, one.null_ok and one.name != key)
                    for one in connection.introspection.get_table_description(cursor, table)
                ]
        return found

    made = columns()
    with transaction.atomic(), connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"DROP TABLE {table}")
        for statement in create_tables(connection.vendor):
            cursor.execute(statement)
        assert columns() == made
        transaction.set_rollback(True)


@override_settings(DEBUG=True)
def test_transactions_that_a_task_does_not_depend_on_are_warned_of(memory: Configure) -> None:
    memory()
    with transaction.atomic(), pytest.warns(TransactionWarning, match="before the COMMIT") as caught:
        tasks.note.enqueue("x")
    assert caught[0].filename == __file__
    memory(OUTBOX="default")
    with transaction.atomic(using="other"), pytest.warns(TransactionWarning, match="'other', but the outbox is in"):
        tasks.note.enqueue("x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tasks.note.enqueue("x")
        with transaction.atomic(using="other"), transaction.atomic():
            tasks.note.enqueue("x")
        with override_settings(DEBUG=False), transaction.atomic(using="other"):
            tasks.note.enqueue("x")


def test_of_postgresql_the_relay_gets_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"dbname": "a shop", "user": "ann", "password": "p&w", "host": "/run/postgresql", "prepare_threshold": None}

    class Connection:
        vendor = "postgresql"

        def get_connection_params(self) -> dict[str, Any]:
            return dict(given)

    monkeypatch.setattr("sockpq_django.operations.relaying.connections", {"pg": Connection()})
    assert database_for_relay("pg") == "postgresql:///a%20shop?user=ann&password=p%26w&host=%2Frun%2Fpostgresql"
    del given["host"]                           # it is that of PGHOST, or the default
    assert database_for_relay("pg") == "postgresql:///a%20shop?user=ann&password=p%26w"


@pytest.mark.skipif(connections["other"].vendor != "sqlite", reason="another database")
def test_of_others_the_relay_gets_the_alias() -> None:
    assert database_for_relay("other") == "other"
