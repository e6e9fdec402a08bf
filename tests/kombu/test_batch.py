"""`publish_batch` publishes the messages of a block together: all of them, or none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from uuid import uuid4

import pytest
from celery import Celery
from kombu.exceptions import OperationalError
from sockpq import Client
from sockpq.testing import Server
from sockpq_kombu.background import event_loop
from sockpq_kombu.batch import publish_batch
from sockpq_kombu.channels import collected
from sockpq_kombu.link import Link


@pytest.fixture
def app(own_server: Server) -> Iterator[Celery]:
    made = Celery(broker=f"sockpq://{own_server.address}/{uuid4().hex}")
    made.conf.broker_transport_options = {"program": uuid4().hex}       # otherwise kombu shares connections
    with closing(made):
        yield made


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of messages of each transaction."""
    commit, counts = Link.commit, list[int]()

    def counted(link: Link, commands: list[object]) -> None:
        counts.append(len(commands))
        commit(link, commands)      # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(Link, "commit", counted)
    return counts


def queue_of(app: Celery) -> str:
    return f"{str(app.conf.broker_url).rpartition('/')[2]}.celery"


def waiting(app: Celery, client: Client) -> list[object]:
    """Return the ids of the tasks that wait, in order."""
    jobs = client.peek_queue(queue_of(app), count=100)
    return [json.loads(job.data.partition(b"\n")[0])["headers"]["id"] for job in jobs]


def test_nothing_is_sent_before_the_end_and_then_all_in_order(
    app: Celery, own_client: Client, commits: list[int]
) -> None:
    first = app.send_task("tests.add").id
    with publish_batch():
        sent = [app.send_task("tests.add", (number,)).id for number in range(20)]
        assert waiting(app, own_client) == [first]
    assert waiting(app, own_client) == [first, *sent]
    assert commits == [20]


def test_a_block_that_raises_publishes_nothing(app: Celery, own_client: Client) -> None:
    with suppress(KeyError), publish_batch():
        app.send_task("tests.add")
        raise KeyError
    after = app.send_task("tests.add")
    assert waiting(app, own_client) == [after.id]


def test_if_one_is_refused_none_is_published(app: Celery, own_client: Client) -> None:
    app.send_task("tests.add")
    own_client.queue_config(queue_of(app), capacity=2)
    with pytest.raises(OperationalError, match="Queue Full"), publish_batch():
        [app.send_task("tests.add") for _ in range(2)]
    assert len(waiting(app, own_client)) == 1


def test_the_outermost_block_publishes(app: Celery, own_client: Client, commits: list[int]) -> None:
    with publish_batch():
        with publish_batch():
            app.send_task("tests.add")
        app.send_task("tests.add")
        assert commits == []
    assert commits == [2]


def test_more_than_a_transaction_holds(
    app: Celery, own_client: Client, commits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collected, "COMMANDS_MAX", 4)
    with publish_batch():
        sent = [app.send_task("tests.add").id for _ in range(7)]
    assert waiting(app, own_client) == sent
    assert commits == [3, 3, 1]


def test_an_event_loop_cannot_wait_for_it() -> None:
    event_loop.enter_event_loop()
    try:
        with pytest.raises(RuntimeError, match="event loop"), publish_batch():
            pytest.fail("the block was entered")
    finally:
        event_loop.leave_event_loop()


def test_other_brokers_are_left_alone() -> None:
    with closing(Celery(broker="memory://")) as app, publish_batch():
        app.send_task("tests.add")
        with app.connection_for_read() as connection:
            assert connection.default_channel._size("celery") == 1
