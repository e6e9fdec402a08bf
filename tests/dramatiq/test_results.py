"""Results in the cluster."""

from __future__ import annotations

import threading
import time
from typing import Any

import dramatiq
import pytest
from dramatiq.results import ResultFailure, ResultMissing, Results, ResultTimeout
from sockpq import Client
from sockpq_dramatiq import SockpqBroker, SockpqResults

from tests.dramatiq.conftest import Brokers
from tests.dramatiq.workers import filled, work_off, working
from tests.waiting import until


@pytest.fixture
def broker(brokers: Brokers) -> SockpqBroker:
    made = brokers(results=SockpqResults(ttl=3600))
    dramatiq.set_broker(made)
    return made


def test_a_result_is_there_when_its_message_is_done(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor(store_results=True)
    def add(x: int, y: int) -> int:
        return x + y

    sent = add.send(1, 2)
    with pytest.raises(ResultMissing):
        sent.get_result()
    work_off(broker)
    assert sent.get_result() == 3
    (stored,) = own_client.peek_queue("dramatiq.results", count=10)
    assert stored.key is not None
    assert len(stored.key) == 32                # the hash that Dramatiq makes of queue, actor and id
    assert own_client.items() == []


def test_a_result_is_stored_with_the_acknowledgement_or_not_at_all(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor(store_results=True)
    def taken_over() -> int:
        own_client.bury(dramatiq.middleware.CurrentMessage.get_current_message().job.id)
        return 1

    sent = taken_over.send()
    work_off(broker)
    with pytest.raises(ResultMissing):
        sent.get_result()


def test_a_wait_for_a_result_asks_twice_however_long_it_takes(broker: SockpqBroker) -> None:
    @dramatiq.actor(store_results=True)
    def slow() -> str:
        assert go_on.wait(60)
        return "done"

    go_on, got = threading.Event(), []
    sent = slow.send()
    waiting = threading.Thread(target=lambda: got.append(sent.get_result(block=True, timeout=100_000)))
    with working(broker):
        before = peeks(broker)
        waiting.start()
        until(lambda: peeks(broker) == before + 2)
        time.sleep(0.5)
        assert peeks(broker) == before + 2
        go_on.set()
        waiting.join()
    assert got == ["done"]
    assert peeks(broker) == before + 3


def peeks(broker: SockpqBroker) -> int:
    """The number of times that the client has looked at a job."""
    calls = broker.client.stats().calls
    return calls["PEEK"].calls if "PEEK" in calls else 0


def test_a_wait_has_an_end(broker: SockpqBroker) -> None:
    @dramatiq.actor(store_results=True)
    def one() -> int:
        return 1

    sent = one.send()
    with pytest.raises(ResultTimeout):
        sent.get_result(block=True, timeout=100)
    with pytest.raises(ResultTimeout):
        sent.get_result(block=True, timeout=0)
    work_off(broker)
    assert sent.get_result(block=True, timeout=0) == 1


def test_the_failure_of_a_message_is_a_result(broker: SockpqBroker) -> None:
    @dramatiq.actor(store_results=True, max_retries=0)
    def fail() -> None:
        raise ValueError("no")

    sent = fail.send()
    with working(broker), pytest.raises(ResultFailure, match="ValueError"):
        sent.get_result(block=True, timeout=100_000)


def test_a_result_is_removed_after_its_time(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor(store_results=True, result_ttl=200)
    def one() -> int:
        return 1

    one.send()
    work_off(broker)
    until(lambda: filled(own_client) == [])


def test_a_large_result_is_stored_before_the_acknowledgement(broker: SockpqBroker) -> None:
    @dramatiq.actor(store_results=True)
    def large() -> str:
        return "x" * 3_000_000

    sent = large.send()
    work_off(broker)
    assert len(sent.get_result()) == 3_000_000


def test_results_of_a_group_and_of_a_pipeline(broker: SockpqBroker) -> None:
    @dramatiq.actor(store_results=True)
    def add(x: int, y: int) -> int:
        return x + y

    group = dramatiq.group([add.message(1, 2), add.message(3, 4)]).run()
    pipe: Any = (add.message(1, 2) | add.message(3)).run()
    with working(broker):
        assert list(group.get_results(block=True, timeout=100_000)) == [3, 7]
        assert pipe.get_result(block=True, timeout=100_000) == 6


def test_a_program_without_a_broker_may_read_results(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor(store_results=True)
    def one() -> int:
        return 1

    sent = one.send()
    work_off(broker)
    assert sent.get_result(backend=SockpqResults(own_client)) == 1
    with pytest.raises(RuntimeError, match="no client"):
        sent.get_result(backend=SockpqResults())


def test_a_backend_of_another_client_stores_too(brokers: Brokers, own_client: Client) -> None:
    broker = brokers()
    broker.add_middleware(Results(backend=SockpqResults(own_client)))

    @dramatiq.actor(store_results=True, broker=broker)
    def one() -> int:
        return 1

    sent = one.send()
    work_off(broker)
    assert sent.get_result(backend=broker.get_results_backend()) == 1
