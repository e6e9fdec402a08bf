"""Rights are checked at each delivery, not only at the beginning: a change of a user ends or narrows what is going on.
"""

from __future__ import annotations

import asyncio

import pytest

from sockpqd.gateway import rights
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.limits import LINES_PER_PIECE
from sockpqd.gateway.rights import of_text
from tests.gateway.commands.context.test_splitting import PUTS
from tests.gateway.helpers.many_jobs import put, settle
from tests.gateway.helpers.memory import MemoryGateway, with_gateway

QUEUES = 4 * LINES_PER_PIECE


def account(text: str) -> Account:
    return Account(rights.of_text(text), None, None)


def users(**texts: str) -> dict[str, Account]:
    """Return users with these rights."""
    return {name: account(text) for name, text in texts.items()}


@pytest.mark.parametrize(("then", "ends"), [
    ({"boss": "admin"}, True), ({"boss": "admin", "ann": "get:q1*"}, True), ({"boss": "admin", "ann": "get"}, False),
])
def test_a_long_answer_ends_when_its_user_has_other_rights(then: dict[str, str], ends: bool) -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, ann = gateway.connect("boss", "boss"), gateway.connect("ann", "ann")
        for number in range(QUEUES):
            boss.send(b"PUT q%d 0 0\r\n" % number)
        await gateway.settle()
        ann.send(b"QUEUE LIST\r\n")
        said = b""
        while said.count(b"\r\n") < 2:
            await asyncio.sleep(0)
            said += ann.take()
        gateway.hub.access.file_users = users(**then)
        for _ in range(10):
            await gateway.settle()
        said += ann.take()
        assert said.startswith(b"200 OK %d\r\n" % QUEUES)
        assert ann.closed is ends
        assert (said.count(b"\r\n") < QUEUES) is ends
    with_gateway(test, users=users(boss="admin", ann="get"))


def test_a_subscription_ends_with_its_user_and_narrows_with_the_rights() -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, ann, bob = (gateway.connect(name, name) for name in ("boss", "ann", "bob"))
        for client in (ann, bob):
            client.send(b"SUBSCRIBE PUT|MSG\r\n")
        await gateway.settle()
        assert (ann.take(), bob.take()) == (b"200 OK 1\r\n", b"200 OK 1\r\n")
        gateway.hub.access.file_users = users(boss="admin", bob="get:mail*")
        for commands in (b"PUT news 0 0\r\nPUT mail 0 0\r\n", b"NOTIFY c 0\r\nNOTIFY mail.c 0\r\n"):
            boss.send(commands)
            await gateway.settle()
        assert ann.take() == b""
        assert bob.take() == b"250 3 PUT mail 0\r\n250 3 MSG mail.c 0\r\n"
        assert not bob.closed
        gateway.hub.subscriptions.notices_lost()        # which is told without rights
        await gateway.settle()
        assert ann.take() == b""
        assert ann.closed
        assert bob.take() == b"250 3 GAP 3 3\r\n"
    with_gateway(test, users=users(boss="admin", ann="get", bob="get"))


@pytest.mark.parametrize(("now", "answer"), [
    ({}, b"401 Auth Required\r\n"), ({"ann": "put:mail*"}, b"403 Forbidden\r\n"),
    ({"ann": "put:news*,queue"}, b"200 "),
])
@pytest.mark.parametrize("command", [
    "PUT news 0 4\r\nbo|dy", "PUT news 0 4 DELAY 9\r\n|body", "PUTS 2\r\nnews 0 0\r\n\r\nnews 1 2\r\na|b\r\n",
    "PUTS 2\r\nnews 0 0 DELAY 9\r\n\r\n|news 1 0\r\n\r\n",
])
def test_a_command_whose_data_come_later_is_executed_with_the_rights_of_that_moment(
    command: str, now: dict[str, str], answer: bytes,
) -> None:
    async def test(gateway: MemoryGateway) -> None:
        ann = gateway.connect("ann", "ann")
        first, rest = command.encode().split(b"|")
        ann.send(first)
        await gateway.settle()
        gateway.hub.access.file_users = users(boss="admin", **now)
        ann.send(rest)
        await gateway.settle()
        assert ann.take().startswith(answer)
        assert bool(list(gateway.cluster.machine.all_queue_names())) is (answer == b"200 ")
    with_gateway(test, users=users(boss="admin", ann="put"))


@pytest.mark.parametrize("now", [{}, {"ann": "queue:other*,get"}])
@pytest.mark.parametrize(("number", "answer"), [(b"", b""), (b"REQ 1 ", b"504 Outcome Unknown\r\n")])
@pytest.mark.parametrize(
    "command", [b"QUEUE PURGE q ALL", b"QUEUE DELETE q FORCE", b"QUEUE MOVE q p", b"KICK q 10000", PUTS],
)
def test_the_portions_of_a_command_end_with_the_right_for_it(
    command: bytes, number: bytes, answer: bytes, now: dict[str, str],
) -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, ann = gateway.connect("boss", "boss"), gateway.connect("ann", "ann")
        ann.send(b"SESSION\r\n")
        await put(gateway, boss)
        if command.startswith(b"KICK"):
            boss.send(b"GET q COUNT 10000 EXPIRE 1 THEN DEAD\r\n")
            await settle(gateway)
            for _ in range(4):
                gateway.cluster.pass_time(2)
        await settle(gateway)
        ann.take()
        ann.send(number + command + b"\r\n")
        await gateway.settle()
        gateway.cluster.commit(1)
        await gateway.settle()
        assert gateway.cluster.in_flight, "there is more to do"
        gateway.hub.access.file_users = users(boss="admin", **now)
        gateway.cluster.commit()
        operations = sum(map(len, gateway.cluster.log))
        await settle(gateway)
        assert sum(map(len, gateway.cluster.log)) == operations, "nothing more is executed"
        assert ann.take() == answer
        assert ann.closed
    with_gateway(test, automatic=False, users=users(boss="admin", ann="queue,put"))


@pytest.mark.parametrize(("now", "answer"), [({}, b"401 Auth Required\r\n"), ({"ann": "get"}, b"403 Forbidden\r\n")])
def test_a_clone_is_refused_when_its_user_is_no_administrator_any_more(now: dict[str, str], answer: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, ann = gateway.connect("boss", "boss"), gateway.connect("ann", "ann")
        boss.send(b"PUT kept 0 0\r\n")
        await gateway.settle()
        boss.take()
        snapshot = b"".join(gateway.cluster.machine.snapshot())
        boss.send(b"PUT later 0 0\r\n")
        await gateway.settle()
        ann.send(b"CLONE %d\r\n" % len(snapshot) + snapshot[:-1])
        await gateway.settle()
        gateway.hub.access.file_users = users(boss="admin", **now)
        ann.send(snapshot[-1:] + b"PING\r\n")
        await gateway.settle()
        assert ann.take() == answer + b"200 OK\r\n"
        assert gateway.cluster.machine.ready("later") == 1
    with_gateway(test, users=users(boss="admin", ann="admin"))


def test_a_stored_answer_is_given_to_its_user_only_and_with_the_right_for_it() -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, ann, bob = (gateway.connect(name, name) for name in ("boss", "ann", "bob"))
        boss.send(b"PUT q 0 6\r\nsecret")
        ann.send(b"SESSION\r\nREQ 1 GET q\r\n")
        await gateway.settle()
        sid = ann.take().split()[3]
        bob.send(b"SESSION %s\r\nREQ 1 GET q\r\nTAKEN\r\n" % sid)
        await gateway.settle()
        assert bob.take() == b"404 Session Not Found\r\n" * 3
        gateway.hub.access.file_users = users(boss="admin", ann="put,get:other*")
        ann.send(b"REQ 1 GET q\r\n")
        await gateway.settle()
        assert ann.take() == b"403 Forbidden\r\n"
    with_gateway(test, users=users(boss="admin", ann="get", bob="get"))


@pytest.mark.parametrize("in_file", [True, False])
def test_a_connection_ends_with_the_secret_that_was_said_on_it(*, in_file: bool) -> None:
    old, new = b"old-secret-of-ann", b"new-secret-of-ann"

    async def test(gateway: MemoryGateway) -> None:
        boss, ann, legacy = gateway.connect("boss", "boss"), gateway.connect("ann"), gateway.connect("app", "ann")
        if not in_file:
            boss.send(b"USER SET ann put %s\r\n" % old.hex().encode())
            await gateway.settle()
        ann.send(b"AUTH ann %s\r\nPUT q 0 0\r\n" % old)
        await gateway.settle()
        assert ann.take() == b"200 OK\r\n" * 2

        def replace(rights: str, key: bytes) -> None:
            if in_file:
                gateway.hub.access.file_users = {**users(boss="admin"), "ann": Account(of_text(rights), key, None)}
            else:
                boss.send(b"USER SET ann %s %s\r\n" % (rights.encode(), key.hex().encode()))

        replace("put,get", old)
        await gateway.settle()
        ann.send(b"PUT q 0 0\r\n")
        await gateway.settle()
        assert ann.take() == b"200 OK\r\n", "other rights are no other secret"
        replace("put,get", new)
        await gateway.settle()
        for client, answer in ((ann, b"401 Auth Required\r\n"), (legacy, b"200 OK\r\n")):
            client.send(b"PUT q 0 0\r\n")
            await gateway.settle()
            assert client.take() == answer
        ann.send(b"AUTH ann %s\r\nPUT q 0 0\r\n" % new)
        await gateway.settle()
        assert ann.take() == b"200 OK\r\n" * 2
    before = {"ann": Account(of_text("put"), old, None)} if in_file else {}
    with_gateway(test, users=users(boss="admin") | before)
