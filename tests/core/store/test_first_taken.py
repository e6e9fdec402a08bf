"""The first running jobs of a queue or a session, whose ids may have come back out of order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sockpqd.core.sessions.session import Session
from sockpqd.core.store.job import first_taken
from sockpqd.core.store.queues import Queue

Owner = Queue | Session


@pytest.fixture(params=[lambda: Queue("q"), lambda: Session(1, 0, 0, 0, 0)], ids=["queue", "session"])
def owner(request: pytest.FixtureRequest) -> Owner:
    made: Callable[[], Owner] = request.param
    return made()


def test_they_come_in_rising_order(owner: Owner) -> None:
    owner.taken = dict.fromkeys((2, 5, 9))
    assert first_taken(owner, 2) == [2, 5]
    assert first_taken(owner, 7) == [2, 5, 9]


def test_those_that_an_undone_batch_brought_back_are_put_in_order_once(owner: Owner) -> None:
    owner.taken, owner.disordered = dict.fromkeys((5, 9, 2)), True
    assert first_taken(owner, 2) == [2, 5]
    assert list(owner.taken) == [2, 5, 9]
    assert not owner.disordered
