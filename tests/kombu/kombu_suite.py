"""kombu's own tests of transports with this transport's connections: run by test_upstream.py, with kombu's sources.

The URLs are in the environment: KOMBU_URL, and FAILOVER_URL of the leader alone.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

import kombu
import pytest
from t.integration import common  # type: ignore[import-not-found]

URL = os.environ["KOMBU_URL"]
NOBODY = "sockpq://localhost:1"
NOBODY_S = 0.2          # until it is certain that no server listens: kombu tries twice, with two seconds in between
PATIENCE = 3            # the tests give a message one second to arrive: too little on a busy machine


class Patient(kombu.Connection):
    """A connection that lets arrivals take longer than the tests think."""

    def drain_events(self, *, timeout: float | None = None, **options: Any) -> Any:
        """Wait PATIENCE times as long."""
        return super().drain_events(timeout=timeout and PATIENCE * timeout, **options)


common.monotonic = lambda: time.monotonic() / PATIENCE      # the limit of the one test that waits in a loop of its own


@pytest.fixture(scope="session", autouse=True)
def empty() -> Iterator[None]:
    """One of the tests leaves messages behind."""
    with Patient(URL) as connection, contextlib.suppress(Exception):
        connection.default_channel.queue_purge("priority_requeue_test")
    return


@pytest.fixture
def connection() -> kombu.Connection:
    return Patient(URL)


@pytest.fixture
def invalid_connection() -> kombu.Connection:
    return Patient(NOBODY, connect_timeout=NOBODY_S)


@pytest.fixture
def failover_connection() -> kombu.Connection:
    return Patient(f"{NOBODY};{os.environ['FAILOVER_URL']}")


class TestBasic(common.BasicFunctionality):     # type: ignore[misc]
    def test_failed_connection_is_a_connection_error(self, invalid_connection: kombu.Connection) -> None:
        """As kombu has it for Redis."""
        with pytest.raises(Exception) as error:     # noqa: PT011
            invalid_connection.connection           # noqa: B018
        assert error.type in kombu.Connection(URL).get_transport_cls().connection_errors


class TestExchangeTypes(common.BaseExchangeTypes):      # type: ignore[misc]
    pass


class TestTimeToLive(common.BaseTimeToLive):            # type: ignore[misc]
    pass


class TestPriority(common.BasePriority):                # type: ignore[misc]
    PRIORITY_ORDER = "asc"


class TestMessage(common.BaseMessage):                  # type: ignore[misc]
    pass


class TestFailover(common.BaseFailover):                # type: ignore[misc]
    pass


class TestEventLoop(common.BaseEventLoop):              # type: ignore[misc]
    pass
