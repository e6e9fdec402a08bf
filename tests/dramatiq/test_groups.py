"""Callbacks of groups: once, when all messages of the group are done."""

from __future__ import annotations

from typing import Any

import dramatiq
import pytest
from sockpq import Client
from sockpq_dramatiq import SockpqBroker, SockpqGroupCallbacks

from tests.dramatiq.workers import filled, work_off, working
from tests.waiting import until


@pytest.fixture
def ran(broker: SockpqBroker) -> list[Any]:
    """The numbers that actors were run with, and None for the callback."""
    broker.add_middleware(SockpqGroupCallbacks(broker))
    return []


def actors(ran: list[Any]) -> tuple[Any, Any]:
    @dramatiq.actor(max_retries=0)
    def one(number: int) -> int:
        ran.append(number)
        if number in failing:
            raise RuntimeError
        return number

    @dramatiq.actor
    def finished() -> None:
        ran.append(None)

    return one, finished


failing: set[int] = set()


@pytest.fixture(autouse=True)
def _none_fails() -> None:
    failing.clear()


def grouped(members: list[Any], *callbacks: Any) -> Any:
    group = dramatiq.group(members)
    for callback in callbacks:
        group.add_completion_callback(callback)
    return group


def test_callbacks_run_once_behind_all_messages(broker: SockpqBroker, own_client: Client, ran: list[Any]) -> None:
    one, finished = actors(ran)
    grouped([one.message(number) for number in range(5)], finished.message(), finished.message()).run()
    work_off(broker, threads=4)
    assert sorted(ran[:5]) == [0, 1, 2, 3, 4]
    assert ran[5:] == [None, None]
    assert filled(own_client) == []
    assert own_client.items() == []


def test_a_group_may_run_twice(broker: SockpqBroker, ran: list[Any]) -> None:
    one, finished = actors(ran)
    group = grouped([one.message(1), one.message(2)], finished.message())
    group.run()
    work_off(broker)
    group.run()
    work_off(broker)
    assert ran.count(None) == 2


def test_a_message_that_failed_is_waited_for_until_it_is_brought_back(
    broker: SockpqBroker, own_client: Client, ran: list[Any],
) -> None:
    one, finished = actors(ran)
    failing.add(2)
    grouped([one.message(number) for number in range(3)], finished.message()).run()
    with working(broker):
        until(lambda: len(own_client.peek_queue("default", "dead", 10)) == 1 and len(ran) == 3)
        until(lambda: own_client.queue_stat("dramatiq.groups")["ready"] == 1)
        assert None not in ran
        failing.clear()
        assert own_client.kick("default", 1) == 1
        until(lambda: None in ran)
    assert ran.count(None) == 1


def test_a_message_that_is_delivered_twice_counts_once(
    broker: SockpqBroker, own_client: Client, ran: list[Any],
) -> None:
    """The first worker does the work and loses the message before the acknowledgement."""
    taken_over: list[int] = []

    @dramatiq.actor
    def one(number: int) -> None:
        ran.append(number)
        if number == 0 and not taken_over:
            taken_over.append(1)
            own_client.later(dramatiq.middleware.CurrentMessage.get_current_message().job.id, delay=0.5)

    @dramatiq.actor
    def finished() -> None:
        ran.append(None)

    grouped([one.message(0), one.message(1)], finished.message()).run()
    work_off(broker, threads=1)
    assert ran == [0, 1, 0, None]


def test_pipelines_in_a_group(broker: SockpqBroker, ran: list[Any]) -> None:
    @dramatiq.actor
    def add(x: int, y: int) -> int:
        ran.append(x + y)
        return x + y

    @dramatiq.actor
    def finished() -> None:
        ran.append(None)

    grouped([add.message(1, 1) | add.message(10), add.message(5, 5)], finished.message()).run()
    work_off(broker)
    assert sorted(ran[:-1]) == [2, 10, 12]
    assert ran[-1] is None


def test_a_group_whose_item_was_cancelled_has_no_callback(
    broker: SockpqBroker, own_client: Client, ran: list[Any], caplog: pytest.LogCaptureFixture,
) -> None:
    one, finished = actors(ran)
    grouped([one.message(1)], finished.message()).run()
    (item,) = [totals.name for totals in own_client.items()]
    own_client.item_cancel(item)
    work_off(broker)
    assert ran == [1]
    assert f"The group {item} is not known any more" in caplog.text
