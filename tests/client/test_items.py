"""Items: counts, retries, and jobs that wait for what becomes of one, against the real gateway in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from sockpq import BadArguments, Client, ItemNotFound, ItemStat, ItemTotals, Job, Stored, aio
from sockpq._protocol.command import Command
from sockpq._protocol.commands import batches, items, jobs

from tests.client.conftest import MakeClient
from tests.client.real_server import RealServer


@pytest.fixture
def server() -> Iterator[RealServer]:
    with RealServer() as server:
        yield server


@pytest.fixture
def client(server: RealServer, make_client: MakeClient) -> Client:
    return make_client(server.address, timeout=60)


def take(client: Client, queue: str) -> Job:
    job = client.get(queue, expire=30)
    assert job is not None
    return job


@pytest.mark.parametrize(("command", "line"), [
    (jobs.put("q", b"", after="a", when="done"), b"PUT q 0 0 AFTER a WHEN DONE\r\n"),
    (jobs.put("q", b"", after=["a", "b"], when="end", key="k"), b"PUT q 0 0 AFTER a|b WHEN END KEY k\r\n"),
    (jobs.put("q", b"", after="a", when="failed", number=True), b"PUT q 0 0 AFTER a WHEN FAILED NUMBER\r\n"),
    (jobs.put_to(["q", "r"], b"", after="a", when="end"), b"PUT q|r 0 0 AFTER a WHEN END\r\n"),
    (jobs.publish("t", b"", after="a", when="end"), b"PUT @t 0 0 AFTER a WHEN END\r\n"),
    (batches.puts("q", [b""], after="a", when="failed")[0], b"PUT q 0 0 AFTER a WHEN FAILED\r\n"),
    (items.item_stat("a@b"), b"ITEM STAT a@b\r\n"),
    (items.items(), b"ITEM LIST\r\n"),
    (items.items("order_"), b"ITEM LIST order_*\r\n"),
    (items.item_retry("a"), b"ITEM RETRY a\r\n"),
])
def test_lines(command: Command[Any], line: bytes) -> None:
    assert command.line == line
    assert items.NEEDS[0] in command.needs


def test_what_is_refused_before_it_is_sent() -> None:
    for wrong in (
        lambda: jobs.put("q", b"", when="end"),
        lambda: jobs.put("q", b"", after="a", when="never"),        # type: ignore[arg-type]
        lambda: items.item_stat("a b"),
        lambda: items.items("a*"),
        lambda: items.item_retry(""),
    ):
        with pytest.raises(BadArguments):
            wrong()


def test_the_jobs_of_an_item_are_counted_and_retried(client: Client) -> None:
    client.put_many("q", [b"a", b"b", b"c"], item="order_1")
    client.put("later", b"d", item="order_1", delay=60)
    client.put("bill", b"", after="order_1")
    take(client, "q").done()
    take(client, "q").bury()
    take(client, "q").bury(here=True)
    stat = client.item_stat("order_1")
    assert stat == ItemStat(ready=0, delayed=1, running=0, dead=1, buried=1, done=1, waiters=1)
    assert stat.unfinished == 3
    assert client.items("order_") == [ItemTotals("order_1", 3, 2)]
    assert client.items("other_") == []
    assert client.item_retry("order_1") == 2
    assert client.item_stat("order_1")[:5] == (2, 1, 0, 0, 0)
    for call in (client.item_stat, client.item_retry):
        with pytest.raises(ItemNotFound):
            call("order_2")


def test_jobs_wait_for_the_failure_of_an_item_or_for_its_end(client: Client) -> None:
    client.put("q", b"", item="i")
    assert client.put("failed", b"", after="i", when="failed") == Stored()
    client.put_to(["ended", "told"], b"", after="i", when="end")
    client.put("done", b"", after="i", when="done")
    take(client, "q").bury()
    for queue in "failed", "ended", "told":
        take(client, queue).done()
    assert client.get("done", expire=30) is None
    take(client, "q_dead").done()
    take(client, "done").done()
    assert client.put("failed", b"", after="i", when="failed").outcome == "dropped"
    assert client.get("failed", expire=30) is None


def test_the_client_for_asyncio_does_the_same(server: RealServer) -> None:
    async def main() -> None:
        async with aio.Client(server.address, timeout=60) as client:
            await client.put("q", b"a", item="i")
            assert (await client.item_stat("i")).ready == 1
            assert await client.items() == [ItemTotals("i", 1, 0)]
            assert await client.item_retry("i") == 0
    asyncio.run(main())
