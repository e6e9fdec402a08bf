"""Items: counts, retries, and jobs that wait for the outcome of an item, against the real gateway in memory."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any, BinaryIO

import pytest
from sockpq import (
    BadArguments,
    Client,
    ItemCancelled,
    ItemNotFound,
    ItemNotHeld,
    ItemStat,
    ItemTotals,
    Job,
    Stored,
)
from sockpq._protocol.command import Command
from sockpq._protocol.commands import batches, items, jobs

from tests.client.conftest import MakeClient
from tests.client.real_server import RealServer
from tests.client.scripted_server import ScriptedServer
from tests.client.test_fair_shares import answered
from tests.waiting import until


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
    (items.items(held=True), b"ITEM LIST HELD\r\n"),
    (items.item_retry("a"), b"ITEM RETRY a\r\n"),
    (items.item_hold(), b"ITEM HOLD NEW\r\n"),
    (items.item_hold("a", expire=5.5), b"ITEM HOLD a EXPIRE 5.500\r\n"),
    (items.item_hold(expire=60, then="release"), b"ITEM HOLD NEW EXPIRE 60 THEN RELEASE\r\n"),
    (items.item_release("a"), b"ITEM RELEASE a\r\n"),
    (items.item_cancel("a"), b"ITEM CANCEL a\r\n"),
    (items.item_cancel("a", "late"), b"ITEM CANCEL a REASON late\r\n"),
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
        lambda: items.item_hold("NEW"),
        lambda: items.item_hold("a", expire=0.9),
        lambda: items.item_hold("a", expire=86_401),
        lambda: items.item_hold("a", then="cancel"),
        lambda: items.item_hold("a", expire=5, then="later"),       # type: ignore[arg-type]
        lambda: items.item_cancel("a", "two words"),
    ):
        with pytest.raises(BadArguments):
            wrong()


def test_answers_of_holds() -> None:
    assert answered(items.item_hold().read(), b"200 OK IS i.7") == "i.7"
    assert answered(items.item_hold("a").read(), b"200 OK") == "a"
    assert answered(items.item_release("a").read(), b"200 OK") is False
    assert answered(items.item_release("a").read(), b"200 OK FINI") is True
    for line, error in ((b"404 Item Not Held", ItemNotHeld), (b"409 Item Cancelled", ItemCancelled)):
        with pytest.raises(error):
            answered(items.item_release("a").read(), line)
    lines = [b"READY 1", b"DELAYED 0", b"RUNNING 2", b"DEAD 0", b"BURIED 0", b"DONE 3", b"CANCELLED 4", b"HELD 1",
             b"CANCELLING 1", b"WAITERS 5", b"COLOUR 7"]
    assert answered(items.item_stat("a").read(), b"200 OK 11", *lines) == ItemStat(1, 0, 2, 0, 0, 3, 5, 4, True, True)
    assert answered(items.items().read(), b"200 OK 1", b"a 3 1 1 0 7") == [ItemTotals("a", 3, 1, True, False)]


class Holding:
    """Answers the commands of a hold; `heard`: these commands."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.release = b"200 OK FINI"

    def __call__(self, connection: socket.socket, source: BinaryIO, line: str) -> None:
        self.heard.append(line)
        answers = {"HOLD": b"200 OK IS i1", "CANCEL": b"200 OK 2", "RELEASE": self.release}
        connection.sendall(answers[line.split()[1]] + b"\r\n")


@pytest.fixture
def holding(make_client: MakeClient) -> Iterator[tuple[Holding, Client]]:
    holding = Holding()
    with ScriptedServer(holding, features=items.NEEDS) as server:
        yield holding, make_client(server.address, timeout=60)


def test_a_block_holds_an_item(holding: tuple[Holding, Client]) -> None:
    server, client = holding
    with client.hold(expire=60) as item:
        assert item == "i1"
        assert server.heard == ["ITEM HOLD NEW EXPIRE 60"]
    assert server.heard[1:] == ["ITEM RELEASE i1"]


def test_a_block_that_raises_cancels_its_item(holding: tuple[Holding, Client]) -> None:
    server, client = holding
    with pytest.raises(ZeroDivisionError), client.hold():
        _ = 1 / 0
    assert server.heard == ["ITEM HOLD NEW", "ITEM CANCEL i1", "ITEM RELEASE i1"]


def test_a_hold_that_was_over_before_its_block_is_told(holding: tuple[Holding, Client]) -> None:
    server, client = holding
    server.release = b"404 Item Not Held"
    with pytest.raises(ItemNotHeld), client.hold():
        pass
    with pytest.raises(ZeroDivisionError), client.hold():       # the first error counts
        _ = 1 / 0


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


def test_a_held_item_does_not_end(server: RealServer, client: Client) -> None:
    with client.hold(expire=60) as item:
        client.put("bill", b"", after=item)
        client.put("q", b"a", item=item)
        assert not take(client, "q").done().item_done
        assert client.items(held=True) == [ItemTotals(item, 0, 0, held=True)]
        assert client.item_stat(item).held
        client.put("q", b"b", item=item)
        assert client.get("bill", expire=30) is None
    assert take(client, "q").done().item_done
    take(client, "bill").done()
    assert client.item_hold("order_1", expire=5, then="release") == "order_1"
    assert client.item_hold("order_1", expire=20, then="release") == "order_1"
    server.pass_time(10)
    assert client.item_release("order_1")
    with pytest.raises(ItemNotHeld):
        client.item_release("order_1")


def test_a_cancelled_item_takes_no_jobs_and_ends_with_its_running_ones(server: RealServer, client: Client) -> None:
    client.put_many("q", [b"a", b"b"], item="i")
    client.put("never", b"", after="i")
    job = take(client, "q")
    assert client.item_cancel("i", "late") == 2
    server.pass_time(1)                             # what waits is removed in portions, behind the answer
    until(lambda: client.item_stat("i").cancelled)
    stat = client.item_stat("i")
    assert (stat.unfinished, stat.cancelled, stat.cancelling) == (1, 1, True)
    assert client.items() == [ItemTotals("i", 1, 0, cancelling=True)]
    for refused in (
        lambda: client.put("q", b"c", item="i"), lambda: client.item_hold("i"), lambda: client.item_retry("i"),
    ):
        with pytest.raises(ItemCancelled):
            refused()
    job.done()
    server.pass_time(1)
    until(lambda: (client.items(), client.total("never").jobs) == ([], 0))
    with pytest.raises(ItemNotFound):
        client.item_cancel("i")


def test_an_exception_leaves_nothing_of_a_held_item(server: RealServer, client: Client) -> None:
    def half() -> None:
        with client.hold() as item:
            client.put("q", b"a", item=item)
            raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        half()
    server.pass_time(1)
    until(lambda: (client.items(), client.total("q").jobs) == ([], 0))


def test_holds_are_part_of_transactions(client: Client) -> None:
    with client.transaction() as t:
        t.item_hold()
        t.put("q", b"a", item="order_1")
        t.item_hold("order_1")
    new, _, named = t.results
    assert {one.name for one in client.items(held=True)} == {new, named} == {new, "order_1"}
    with client.transaction() as t:
        t.item_release(new)
        t.item_release("order_1")
    assert t.results == [True, False]
