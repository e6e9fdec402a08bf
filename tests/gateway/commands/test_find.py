"""FIND: how much one call looks at, how many search at a time, and what a user is shown."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from sockpqd.core import LENGTHS, FindPlace, Section
from sockpqd.gateway.limits import FIND_SLICE, FINDS_MAX, FINDS_OF_ONE_MAX
from sockpqd.gateway.protocol.arguments import ArgumentError
from sockpqd.gateway.protocol.grammar.find import cursor
from sockpqd.gateway.protocol.grammar.find import find as parse
from tests.gateway.auth.test_rights_when_told import users
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway, with_gateway

MODULE = "sockpqd.gateway.commands.find"


async def said(gateway: MemoryGateway, client: MemoryClient, line: bytes) -> list[bytes]:
    """Return the lines of the answer."""
    client.send(line + b"\r\n")
    await gateway.settle()
    return client.take().split(b"\r\n")[:-1]


async def all_pages(gateway: MemoryGateway, client: MemoryClient, line: bytes) -> list[list[bytes]]:
    """Return the lines of each page of a search, to its end."""
    pages: list[list[bytes]] = []
    where = b""
    while True:
        head, *lines = await said(gateway, client, line + where)
        pages.append(lines)
        match head.split():
            case [b"200", b"OK", count]:
                assert int(count) == len(lines)
                return pages
            case [b"200", b"OK", count, b"NEXT", word]:
                assert int(count) == len(lines)
                assert len(word) <= 512
                where = b" FROM " + word
            case _:
                raise AssertionError(head)


@pytest.mark.parametrize("limit", ["FIND_JOBS_MAX", "FIND_BYTES_MAX"])
def test_one_call_looks_at_so_much_and_says_where_to_go_on(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.{limit}", 10)

    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        for number in range(50):
            client.send(b"PUT %b 0 1%b\r\nx" % (b"ab"[number % 2:][:1], b" KEY last" if number == 48 else b""))
        await gateway.settle()
        client.take()
        pages = await all_pages(gateway, client, b"FIND * KEY last*")
        assert 5 <= len(pages) <= 8
        assert sum(map(len, pages)) == 1
        pages = await all_pages(gateway, client, b"FIND *")
        assert all(len(page) <= 10 for page in pages)
        assert len({line for page in pages for line in page}) == sum(map(len, pages)) == 50
    with_gateway(test)


def test_a_search_has_turns_as_others_have() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client, other = gateway.connect(), gateway.connect()
        for _ in range(5 * FIND_SLICE):
            client.send(b"PUT q 0 0\r\n")
        await gateway.settle()
        client.take()
        machine, looks = gateway.cluster.machine, list[int]()
        find = machine.find

        def watched(*arguments: Any) -> Any:
            found = find(*arguments)
            looks.append(found.looked)
            if sum(looks) >= 2 * FIND_SLICE and not other.transport._written:
                other.send(b"PING\r\n")
            return found

        machine.find = watched      # type: ignore[method-assign]
        client.send(b"FIND q KEY none*\r\n")
        await gateway.settle()
        assert max(looks) <= FIND_SLICE
        assert sum(looks) == 5 * FIND_SLICE
        assert (client.take(), other.take()) == (b"200 OK 0\r\n", b"200 OK\r\n")
    with_gateway(test)


def test_slices_of_all_searches_follow_each_other_after_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = [gateway.connect(f"10.0.0.{number}") for number in range(FINDS_MAX)]
        clients[0].send(b"PUT q 0 0\r\n" * (3 * FIND_SLICE))
        await gateway.settle()
        clients[0].take()
        machine, done = gateway.cluster.machine, list[str]()
        find, sleep = machine.find, asyncio.sleep

        async def rest(seconds: float) -> None:
            done.append("rest")
            await sleep(0)

        def look(*arguments: Any) -> Any:
            found = find(*arguments)
            done.extend(["look"] * (found.looked > 0))
            return found

        machine.find = look      # type: ignore[method-assign]
        monkeypatch.setattr(f"{MODULE}.asyncio.sleep", rest)
        for client in clients:
            client.send(b"FIND q KEY none*\r\n")
        for _ in range(800):
            await sleep(0)
        assert [client.take() for client in clients] == [b"200 OK 0\r\n"] * FINDS_MAX
        assert done.count("look") == 3 * FINDS_MAX
        assert ("look", "look") not in set(pairwise(done))
    with_gateway(test)


def test_one_user_has_only_a_share_of_the_places() -> None:
    async def test(gateway: MemoryGateway) -> None:
        greedy = [gateway.connect("10.0.0.1") for _ in range(FINDS_OF_ONE_MAX + 1)]
        other = gateway.connect("10.0.0.2")
        greedy[0].send(b"PUT q 0 0\r\n" * 3000)
        await gateway.settle()
        greedy[0].take()
        for client in (*greedy, other):
            client.send(b"FIND q KEY none*\r\n")
        await asyncio.sleep(0)
        assert gateway.hub.searches.taken == FINDS_OF_ONE_MAX + 1
        for _ in range(40):
            await gateway.settle()
        assert [client.take() for client in greedy] == [b"200 OK 0\r\n"] * FINDS_OF_ONE_MAX + [b"503 Busy\r\n"]
        assert other.take() == b"200 OK 0\r\n"
        assert gateway.hub.searches.taken == 0
    with_gateway(test)


def test_few_search_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = [gateway.connect(f"10.0.0.{number}") for number in range(FINDS_MAX + 2)]
        clients[0].send(b"PUT q 0 0\r\n" * 3000)
        await gateway.settle()
        clients[0].take()
        for client in clients[:-1]:
            client.send(b"FIND q KEY none*\r\n")
        for _ in range(80):
            await gateway.settle()
        answers = [client.take() for client in clients[:-1]]
        assert answers.count(b"503 Busy\r\n") == 1
        assert answers.count(b"200 OK 0\r\n") == FINDS_MAX
        for client in clients[1:5]:         # one that goes away makes room
            client.send(b"FIND q KEY none*\r\n")
            client.vanish()
        await gateway.settle()
        assert gateway.hub.searches.taken == 0
        assert await said(gateway, clients[-1], b"FIND q KEY none*") == [b"200 OK 0"]
    with_gateway(test)


def test_a_user_finds_what_lies_in_queues_of_the_right() -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, ann, bob = (gateway.connect(name, name) for name in ("boss", "ann", "bob"))
        boss.send(b"PUT ann_1 0 0\r\nPUT other 0 0\r\nPUT ann_2 0 0\r\n")
        await gateway.settle()
        boss.take()
        assert [line.split()[0] for line in await said(gateway, ann, b"FIND *")] == [b"200", b"ann_1", b"ann_2"]
        assert await said(gateway, ann, b"FIND * FROM R0,0,1:other") == [b"200 OK 0"]
        assert await said(gateway, ann, b"FIND ann_1|other") == [b"403 Forbidden"]
        assert len(await said(gateway, ann, b"FIND ann_1|ann_2")) == 3
        assert await said(gateway, bob, b"FIND *") == [b"200 OK 0"]
        assert await said(gateway, bob, b"FIND ann_1") == [b"403 Forbidden"]
        assert len(await said(gateway, boss, b"FIND *")) == 4
    with_gateway(test, users=users(boss="admin", ann="queue:ann_*", bob="get,put"))


def test_a_place_is_one_word_there_and_back() -> None:
    name, most = "q" * 255, 2**63
    places = [FindPlace(name, section, (most,) * length) for section, length in LENGTHS.items()]
    places += [FindPlace(name, section) for section in Section]
    places += [FindPlace(name, Section.ENDED, (most,) * 13), FindPlace("a:b", Section.READY, (-most, 0, 1))]
    for place in places:
        word = cursor(place).encode()
        assert len(word) <= 512
        command = parse([b"FIND", b"*", b"FROM", word])
        assert command.arguments[-1] == place


@pytest.mark.parametrize("word", [
    b"", b"R", b"R:", b":q", b"X1:q", b"R1:q", b"R1,2,3,4:q", b"O1:q", b"U-:q", b"U1,:q", b"Ug:q",
    b"U%b:q" % (b"f" * 17), b"E1:q", b"E%b:q" % b",".join([b"1"] * 14), b"U1:%b" % (b"q" * 256),
    b"U1:q\xff", b"U1:" + b"q" * 600,
])
def test_a_word_that_is_no_place_is_refused(word: bytes) -> None:
    with pytest.raises(ArgumentError):
        parse([b"FIND", b"*", b"FROM", word])


@pytest.mark.parametrize("word", [
    b"U%b:q" % (b"f" * 16), b"E%b,-%b:q" % (b"f" * 16, b"f" * 16), b"Effffffffffffffff,1:q",
    b"R-ffffffffffffffff,0,0:q", b"D-1,-1:q", b"B-1:q", b"U-1:q", b"E-1,1:q", b"O:q", b"E:none", b"D:zzz",
])
def test_any_place_is_good_for_a_search(word: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"QUEUE CREATE q RETAIN 60\r\nPUT q 0 0 NUMBER\r\nPUT q 0 0 DELAY 9\r\nPUT q 0 0\r\n")
        client.send(b"GET q\r\nDONE 1\r\nGET q\r\n")
        await gateway.settle()
        client.take()
        (head, *lines) = await said(gateway, client, b"FIND * STATE READY|DELAYED|RUNNING|DONE|BURIED FROM " + word)
        assert head == b"200 OK %d" % len(lines)
        assert len(lines) <= 4
    with_gateway(test)
