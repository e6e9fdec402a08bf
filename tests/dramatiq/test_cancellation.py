"""Messages that are cancelled while they wait, before their actor begins, and while it runs."""

from __future__ import annotations

import threading
import time

import dramatiq
from sockpq import Client
from sockpq_dramatiq import Abort, SentMessage, SockpqBroker

from tests.dramatiq.workers import filled, work_off, working
from tests.waiting import PATIENCE_S, until


def test_a_message_that_waits_is_removed(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor
    def one() -> None: ...

    first, second = one.send(), one.send_with_options(delay=60_000)
    assert isinstance(first, SentMessage)
    assert first.abort()
    assert not first.abort()
    assert broker.cancel(second)
    assert filled(own_client) == []


def test_a_message_of_another_program_is_found_by_its_id(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor
    def one() -> None: ...

    sent, _ = one.send(), one.send()
    plain = dramatiq.Message(**sent.asdict())
    assert broker.cancel(plain)
    assert not broker.cancel(plain)
    assert own_client.queue_stat("default")["ready"] == 1


def test_an_actor_that_runs_is_interrupted(broker: SockpqBroker, own_client: Client) -> None:
    begun, aborted = threading.Event(), threading.Event()

    @dramatiq.actor(max_retries=3, min_backoff=1)
    def long() -> None:
        begun.set()
        end = time.monotonic() + PATIENCE_S
        try:
            while time.monotonic() < end:
                time.sleep(0.01)
        except Abort:
            aborted.set()
            raise

    sent = long.send()
    with working(broker):
        assert begun.wait(PATIENCE_S)
        assert broker.cancel(sent)
        assert aborted.wait(PATIENCE_S)
    assert filled(own_client) == []            # neither a retry nor a dead letter


def test_a_message_that_waits_in_the_worker_is_skipped(broker: SockpqBroker, own_client: Client) -> None:
    ran: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    @dramatiq.actor
    def one(number: int) -> None:
        ran.append(number)
        begun.set()
        assert go_on.wait(PATIENCE_S)

    one.send(1)
    with working(broker, threads=1):
        assert begun.wait(PATIENCE_S)
        second = one.send(2)
        until(lambda: own_client.queue_stat("default")["running"] == 2)
        assert broker.cancel(second)
        until(lambda: any(message.cancelled for message in broker._cancellations._held.values()))
        go_on.set()
        broker.join("default", timeout=120_000)
    assert ran == [1]


def test_after_the_broker_is_closed_nothing_listens(broker: SockpqBroker) -> None:
    broker.emit_before("worker_boot", None)
    events = broker._cancellations._events
    assert events is not None
    assert events.position is not None          # it listens before any message is taken: no cancellation is missed
    assert listens()
    broker.close()
    until(lambda: not listens())


def listens() -> bool:
    """Return whether a thread waits for cancelled messages."""
    return any(thread.name == "sockpq cancel" for thread in threading.enumerate())


def test_after_the_last_worker_nothing_listens(broker: SockpqBroker) -> None:
    @dramatiq.actor
    def one() -> None: ...

    one.send()
    work_off(broker)
    until(lambda: not listens())
