"""The drain after a run asks in all queues all the time, so none with IDLE ends before it is empty."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.chaos.workload import extended_actors
from tests.chaos.workload.history import Get, GetMany, Outcome
from tests.chaos.workload.load import Running


class OneQueueIsLong:
    """A client that always gets a job of the plain queues."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.ended: list[int] = []

    def get(self, command: Get) -> Any:
        return SimpleNamespace(outcome=Outcome.OK, handed=SimpleNamespace(id=1))

    def get_many(self, command: GetMany) -> Any:
        self.asked.append(tuple(command.queues))
        return SimpleNamespace(outcome=Outcome.OK, given=[])

    def done(self, number: int) -> None:
        self.ended.append(number)


def test_queues_with_idle_are_asked_while_others_are_still_long() -> None:
    running: Any = object.__new__(Running)
    running._queues = ("q",)
    client: Any = OneQueueIsLong()
    assert not running._take(client)
    assert client.ended == [1]
    assert set(extended_actors.IDLE_S) <= set(client.asked[0])
