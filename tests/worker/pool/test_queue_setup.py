"""The settings of queues that tasks ask for: made once, where they are missing, or left to an operator."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import pytest
from sockpq import ForbiddenError, NotSupported
from sockpq.aio import Client
from sockpq.worker import App
from sockpq.worker.pool.queue_setup import set_up, wanted

from tests.client.real_server import RealServer


def app() -> App:
    made = App("127.0.0.1:1")
    made.task("a", name="one", retain=60, backoff=(2, 600))(lambda: None)
    made.task("a", name="two", retain=3600)(lambda: None)
    made.task("b", name="three", result=True, backoff=(0, 0))(lambda: None)
    made.task("c", name="four")(lambda: None)
    made.handler("d", backoff=(0.5, 5))(lambda job: None)
    return made


def test_what_tasks_ask_for() -> None:
    assert wanted(app(), "a") == {"retain": 3600, "backoff": (2, 600)}
    assert wanted(app(), "b") == {"retain": 3600}       # a pause of 0 is no back-off of a queue
    assert wanted(app(), "c") == {}
    assert wanted(app(), "d") == {"backoff": (0.5, 5)}


def test_settings_are_made_once_and_more_than_is_asked_for_stays(caplog: pytest.LogCaptureFixture) -> None:
    async def main(address: str) -> None:
        async with Client(address) as client:
            await client.queue_config("b", retain=7200, limit=3)
            for _ in range(2):
                await set_up(client, app(), app().queues)
            a, b, d = [await client.queue_config(queue) for queue in "abd"]
            assert (a["retain"], a["backoff"]) == ("3600", "2 600")
            assert (b["retain"], b["backoff"], b["limit"]) == ("7200", "OFF", "3")
            assert (d["retain"], d["backoff"]) == ("0", "0.5 5")
            assert {one.name for one in await client.queues()} == {"a", "b", "d"}

    with RealServer() as server, caplog.at_level(logging.INFO, "sockpq.worker"):
        asyncio.run(main(server.address))
    assert [record.getMessage() for record in caplog.records] == [
        "queue a is set up: QUEUE CONFIG a RETAIN 3600 BACKOFF 2 600",
        "queue d is set up: QUEUE CONFIG d BACKOFF 0.500 5",
    ]


@pytest.mark.parametrize(("error", "told"), [
    (ForbiddenError("403"), "an operator has to, by QUEUE CONFIG a RETAIN 3600 BACKOFF 2 600"),
    (NotSupported("501"), "keeps no jobs that have ended"),
])
def test_what_cannot_be_set_up_is_told(error: Exception, told: str, caplog: pytest.LogCaptureFixture) -> None:
    class Refusing:
        async def queue_config(self, queue: str, **settings: Any) -> dict[str, str]:
            raise error

    asyncio.run(set_up(cast(Client, Refusing()), app(), ("a", "c")))
    (record,) = caplog.records
    assert told in record.getMessage()
