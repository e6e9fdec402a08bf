"""The lines of waiters for jobs: who is first, also while waiters for many queues leave."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core import Get
from sockpqd.gateway.protocol.responses import QUEUE_EMPTY
from sockpqd.gateway.waiting import job_waiters, wait_lists
from sockpqd.gateway.waiting.wait_lists import MANY_NAMES, WaitLists
from tests.gateway.helpers.memory import MemoryGateway, with_gateway

MANY = tuple(f"m{number}" for number in range(MANY_NAMES + 1))


class CountedLines(wait_lists.Lines[str | None]):
    """Lines that count how many waiters are taken out."""

    discarded = 0

    def discard(self, key: str | None, number: int) -> None:
        CountedLines.discarded += 1
        super().discard(key, number)


@pytest.mark.parametrize("seed", range(20))
def test_those_that_have_left_are_passed_over(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_lists, "MANY_NAMES", 2)
    random, lists, names, items = Random(seed), WaitLists(), [*"abcdef", None], [None, "i", "k"]
    waiting: dict[int, Get] = {}
    before: dict[int, Get] = {}
    for step in range(400):
        chance = random.random()
        if chance < 0.4:
            some = [name for name in names[:-1] if random.random() < 0.6]
            number, get = step, Get(tuple(some) or None, item=random.choice(items))     # type: ignore[arg-type]
            if before and random.random() < 0.3:        # one that has left comes back
                number, get = before.popitem()
            lists.add(get, number)
            waiting[number] = get
        elif chance < 0.8 and waiting:
            number = random.choice(list(waiting))
            before[number] = waiting.pop(number)
            lists.remove(before[number], number)
        else:
            lists.clear(random.randrange(4))
        for name in names[:-1]:
            assert name is not None
            for item in items:
                expected = min((number for number, get in waiting.items()
                                if get.item == item and (get.queues is None or name in get.queues)), default=None)
                found = lists.first(name) if item is None else lists.first_of_item(name, item)
                assert found == expected, (step, name, item)
            waits = sum(name in (get.queues or ()) for get in waiting.values())
            assert lists.waiting(name) == waits
            assert lists.in_line(name) or not waits
    while lists.clear(5):
        pass
    for number, get in waiting.items():
        lists.remove(get, number)
    while lists.clear(5):
        pass
    assert not lists._queues
    assert not lists._items
    assert not lists._dropped
    assert not any(lists.in_line(name) for name in "abcdef")


def test_a_waiter_for_many_queues_leaves_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_lists, "Lines", CountedLines)

    async def test(gateway: MemoryGateway) -> None:
        stays = gateway.connect()
        stays.send(b"GETB m0\r\n")
        clients = [gateway.connect() for _ in range(50)]
        for client in clients:
            client.send(b"GETB %b\r\n" % "|".join(MANY).encode())
            await gateway.settle()
        CountedLines.discarded = 0
        for client in clients:
            client.vanish()
        for client in clients:
            client.transport._connection.connection_lost(None)
        assert CountedLines.discarded == 0
        assert gateway.hub.job_waiters.waiting("m0") == 1
        await gateway.settle()
        assert CountedLines.discarded == len(clients) * len(MANY)
        gateway.connect().send(b"PUT m0 0 1\r\nx")
        await gateway.settle()
        assert stays.take() == b"200 OK m0 1 0 1\r\nx"
    with_gateway(test)


def test_those_who_come_back_find_fewer_that_have_left() -> None:
    lists = WaitLists()
    for number in range(100):
        lists.add(Get(MANY), number)
    for number in range(50):
        lists.remove(Get(MANY), number)
    left = [len(lists._left)]
    for number in range(100, 150):
        lists.add(Get(MANY), number)
        lists.remove(Get(MANY), number)         # and is cut at once
        left.append(len(lists._left))
    assert left[-1] <= 2
    assert left == sorted(left, reverse=True)


@pytest.mark.parametrize("item", [None, "i"])
def test_lines_that_all_have_left_are_dropped_in_portions(item: str | None) -> None:
    gone: list[str] = []
    lists = WaitLists(gone.append)
    for number in range(160):
        lists.add(Get(MANY, item=item), number)
    for number in range(160):
        assert lists.remove(Get(MANY, item=item), number)
    assert (lists.waiting("m0"), gone) == (0, [])
    assert all(map(lists.in_line, MANY))            # so none of these queues counts as unused yet
    assert lists.clear(110)                         # the numbers of a line take as long as ten names
    assert len(gone) == 10
    assert sum(map(lists.in_line, MANY)) == len(MANY) - 10
    while lists.clear(110):
        pass
    assert sorted(gone) == sorted(MANY)
    assert not any(map(lists.in_line, MANY))


def test_those_that_are_passed_over_together_again_and_again_leave_no_lines() -> None:
    lists = WaitLists()
    for number in range(3):
        lists.add(Get(MANY), number)
    for _ in range(50):
        for number in range(3):
            lists.remove(Get(MANY), number)
        for number in range(3):
            lists.add(Get(MANY), number)
    assert len(lists._dropped) <= 1
    assert lists.waiting("m0") == 3


def test_a_queue_that_many_have_left_is_not_unused_before_that_is_noted() -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.connect().send(b"".join(b"QUEUE CREATE %b IDLE 60\r\n" % name.encode() for name in MANY))
        await gateway.settle()
        gateway.cluster.commit()
        client = gateway.connect()
        client.send(b"GETB %b\r\n" % "|".join(MANY).encode())
        await gateway.settle()
        gateway.cluster.pass_time(100)
        client.vanish()
        client.transport._connection.connection_lost(None)
        gateway.hub.job_waiters.idle_queues._look()
        assert not gateway.cluster.in_flight
        await gateway.settle()
        gateway.cluster.pass_time(50)
        await gateway.settle()
        assert not gateway.cluster.in_flight
        gateway.cluster.pass_time(100)
        await gateway.settle()
        gateway.hub.job_waiters.idle_queues._look()
        assert gateway.cluster.in_flight
        gateway.cluster.commit()
        await gateway.settle()
    with_gateway(test, automatic=False)


def test_when_the_time_of_many_is_up_their_gets_are_proposed_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_waiters, "NAMES_SENT_AT_ONCE", 3 * len(MANY))

    async def test(gateway: MemoryGateway) -> None:
        clients = [gateway.connect(str(number)) for number in range(10)]
        for client in clients:
            client.send(b"GETB %b WITHIN 3600000\r\n" % "|".join(MANY).encode())
        await gateway.settle()
        waiters = gateway.hub.job_waiters
        for waiter in list(waiters._queued.values()):
            waiters._time_out(waiter)
        clients[0].vanish()
        clients[0].transport._connection.connection_lost(None)      # meanwhile
        proposed = []
        for _ in range(4):
            waiters._send_due()
            proposed.append(len(gateway.cluster.in_flight))
        assert proposed == [3, 6, 9, 9]
        await gateway.settle()
        gateway.cluster.commit()
        await gateway.settle()
        assert [client.take() for client in clients[1:]] == [QUEUE_EMPTY] * 9
    with_gateway(test, automatic=False)


def test_when_all_have_left_the_lines_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_lists, "Lines", CountedLines)

    async def test(gateway: MemoryGateway) -> None:
        clients = [gateway.connect() for _ in range(50)]
        for client in clients:
            client.send(b"GETB %b\r\n" % "|".join(MANY).encode())
            await gateway.settle()
        CountedLines.discarded = 0
        gateway.hub.job_waiters.stop()
        assert CountedLines.discarded == 0
        assert not gateway.hub.job_waiters._wait_lists._queues
    with_gateway(test)
