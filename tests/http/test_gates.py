"""The gates before the application, without any connection: bodies and users."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Any

import pytest
from sockpq import AuthError
from sockpq.aio import Client
from sockpq_http.access.credentials import Credentials
from sockpq_http.access.peer import STATE, Peer
from sockpq_http.access.users import UserLimits, Users
from sockpq_http.problems.problem import Problem
from sockpq_http.routes.takes import _handed
from sockpq_http.server.account import ANSWERS_DIVISOR, Account, Body
from sockpq_http.server.gates import LARGE_BYTES, PIECE_BYTES, AnswerGate, BodyGate, UserGate
from sockpq_http.server.metrics import Metrics
from starlette.types import Message, Receive, Scope, Send


class Exchange:
    """A request that comes in these pieces, and its answer."""

    def __init__(self, pieces: Iterable[bytes], *, known: bool = False, **headers: str) -> None:
        """`known`: its connection is a user's."""
        peer = Peer()
        peer.known = known
        self.scope: Scope = {
            "type": "http", "path": "/v1/jobs", "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
            "state": {STATE: peer},
        }
        self._pieces = [*pieces]
        self.status = 0
        self.body = b""

    async def receive(self) -> Message:
        if not self._pieces:
            await asyncio.Event().wait()        # nothing more comes
        piece = self._pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": piece != b""}

    async def send(self, message: Message) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")


def gate(app: Any, **limits: float) -> BodyGate:
    account = Account(int(limits.pop("all_bytes_max", 15)), Metrics())
    return BodyGate(app, account, **{"bytes_max": 10, "timeout_s": 3600, **limits})     # type: ignore[arg-type]


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    message = await receive()
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": message["body"]})


async def passed(exchange: Exchange, one: BodyGate) -> Exchange:
    await one(exchange.scope, exchange.receive, exchange.send)
    return exchange


def test_a_body_is_passed_on_as_a_whole() -> None:
    done = asyncio.run(passed(Exchange([b"ab", b"cd", b""]), gate(echo)))
    assert (done.status, done.body) == (200, b"abcd")


def test_a_body_that_is_too_large_is_refused() -> None:
    for exchange in (Exchange([b"a" * 6, b"b" * 5, b""]), Exchange([], **{"content-length": "11"})):
        done = asyncio.run(passed(exchange, gate(echo)))
        assert (done.status, json.loads(done.body)["reason"]) == (413, "Data Too Large")


def test_a_body_that_stops_coming_is_refused() -> None:
    done = asyncio.run(passed(Exchange([b"a"]), gate(echo, timeout_s=0.05)))
    assert done.status == 408


def test_bodies_share_an_account_that_is_cleared() -> None:
    async def run() -> list[int]:
        release = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            await release.wait()
            await echo(scope, receive, send)

        one = gate(slow)
        first = asyncio.create_task(passed(Exchange([b"a" * 8, b""]), one))
        await asyncio.sleep(0)
        refused = await passed(Exchange([b"b" * 8, b""]), one)
        assert json.loads(refused.body)["reason"] == "Busy"
        release.set()
        done = await first
        again = await passed(Exchange([b"c" * 8, b""]), one)
        return [done.status, refused.status, again.status]

    assert asyncio.run(run()) == [200, 503, 200]


MEMORY = 16 * PIECE_BYTES
MOST = MEMORY - MEMORY // ANSWERS_DIVISOR       # of all bodies


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def filled(*, known: bool, whole: bool = False) -> AsyncIterator[tuple[BodyGate, Account, Exchange]]:
    """A gate whose memory one body fills as far as bodies may, with the request of that body.

    `known`: it is a user's; `whole`: it waits for its turn, behind another one.
    """
    release = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        if len(message["body"]) > LARGE_BYTES:
            await release.wait()
        await send({"type": "http.response.start", "status": 200})

    account = Account(MEMORY, Metrics())
    one = BodyGate(app, account, MEMORY, 3600)
    before = 2 * PIECE_BYTES if whole else 0
    filling = Exchange([b"s" * PIECE_BYTES] * ((MOST - before) // PIECE_BYTES) + [b""] * whole, known=known)
    tasks = [asyncio.create_task(passed(Exchange([b"f" * before, b""], known=True), one))]
    await turns()
    tasks.append(asyncio.create_task(passed(filling, one)))
    await turns()
    assert not account.has_room(1)
    yield one, account, filling
    release.set()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert account.has_room(MOST)


@pytest.mark.parametrize("whole", [False, True], ids=("arriving", "waiting for its turn"))
@pytest.mark.parametrize("known", [False, True], ids=("small", "user"))
def test_a_body_of_a_stranger_makes_room_for_users_and_for_small_bodies(known: bool, whole: bool) -> None:
    async def run() -> None:
        async with filled(known=False, whole=whole) as (one, account, stranger):
            length = MOST // 2 if known else 5
            other = Exchange([b"other"], known=known, **{"content-length": str(length)})
            task = asyncio.create_task(passed(other, one))
            await turns()
            assert (stranger.status, json.loads(stranger.body)["reason"]) == (503, "Busy")
            assert other.status == 0                # the rest of it is awaited
            assert account.has_room(PIECE_BYTES)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_the_largest_body_of_a_stranger_makes_room_first() -> None:
    account, refused = Account(16, Metrics()), list[str]()
    with ExitStack() as stack:
        for name, size in (("small", 2), ("large", 6), ("middle", 4)):
            body = Body(known=False)
            stack.enter_context(account.arriving(body, partial(refused.append, name)))
            assert account.hold(body, size)
        assert account.hold(Body(known=True), 3, first=True)
        assert refused == ["large"]


def test_a_large_body_of_a_stranger_makes_nobody_leave() -> None:
    async def run() -> None:
        async with filled(known=False) as (one, _, stranger):
            for headers in ({"content-length": str(LARGE_BYTES + 1)}, {}):
                assert (await passed(Exchange([b"x"], **headers), one)).status == 503
            await turns()
            assert stranger.status == 0

    asyncio.run(run())


def test_a_body_of_a_user_makes_no_room_for_another_one() -> None:
    async def run() -> None:
        async with filled(known=True) as (one, _, user):
            assert (await passed(Exchange([b"x", b""], known=True), one)).status == 503
            assert (await passed(Exchange([b""]), one)).status == 200       # without a body
            await turns()
            assert user.status == 0

    asyncio.run(run())


@pytest.mark.parametrize("known", [False, True], ids=("stranger", "user"))
def test_bodies_that_fill_the_memory_cut_off_no_reader(known: bool) -> None:
    async def run() -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.body", "body": b"x" * 2 * PIECE_BYTES})

        async with filled(known=known) as (_, account, filling):
            readers = [Reader(0) for _ in range(2 if known else 3)]
            tasks = [
                asyncio.create_task(AnswerGate(app, account)(reader.scope, reader.receive, reader.send))
                for reader in readers
            ]
            await turns()
            assert not any(reader.cut_off.is_set() for reader in readers)
            assert filling.status == (0 if known else 503)
            for reader in readers:
                reader.cut_off.set()
            await asyncio.gather(*tasks)

    asyncio.run(run())


def test_large_bodies_take_turns_and_small_ones_overtake_them() -> None:
    async def run() -> list[int]:
        release, begun = asyncio.Event(), []

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            body = (await receive())["body"]
            begun.append(len(body))
            if len(body) > LARGE_BYTES:
                await release.wait()
            await send({"type": "http.response.start", "status": 200})

        one = gate(slow, bytes_max=1 << 20, all_bytes_max=1 << 20)
        large = [asyncio.create_task(passed(Exchange([b"a" * (LARGE_BYTES + more), b""]), one)) for more in (1, 2)]
        await asyncio.sleep(0)
        await passed(Exchange([b"small", b""]), one)
        order = [*begun]
        release.set()
        await asyncio.gather(*large)
        return [*order, *begun[len(order):]]

    assert asyncio.run(run()) == [LARGE_BYTES + 1, 5, LARGE_BYTES + 2]


def test_after_a_large_body_others_get_on_for_as_long_as_it_took() -> None:
    async def run() -> None:
        loop: Any = asyncio.get_running_loop()
        now = 0.0
        loop.time = lambda: now
        begun = 0

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal begun, now
            begun += 1
            now += 0.25

        one = gate(slow, bytes_max=1 << 20, all_bytes_max=1 << 20)
        exchanges = [Exchange([b"a" * (LARGE_BYTES + 1), b""]) for _ in range(2)]
        large = [asyncio.create_task(passed(exchange, one)) for exchange in exchanges]
        await turns()
        assert begun == 1
        now += 0.25
        await turns()
        assert begun == 2
        await asyncio.gather(*large)
        del loop.time

    asyncio.run(run())


class Reader:
    """A client that reads so many pieces of an answer, and then no more, until it is cut off."""

    def __init__(self, pieces: int) -> None:
        self._left = pieces
        self.cut_off = asyncio.Event()
        self.scope: Scope = {"type": "http", "state": {STATE: Peer("a", None, self.cut_off.set)}}
        self.received = 0

    async def receive(self) -> Message:
        raise AssertionError

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            self.received += len(message["body"])
            self._left -= 1
            if self._left < 0:
                await self.cut_off.wait()


def test_large_answers_share_the_account_and_who_has_read_nothing_for_longest_is_cut_off() -> None:
    async def run() -> None:
        account = Account(6 * PIECE_BYTES, Metrics())
        ended = 0

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal ended
            await send({"type": "http.response.start", "status": 200})
            await send({"type": "http.response.body", "body": b"x" * 3 * PIECE_BYTES})
            ended += 1

        async def answer(pieces: int) -> tuple[Reader, asyncio.Task[None]]:
            reader = Reader(pieces)
            task = asyncio.create_task(AnswerGate(app, account)(reader.scope, reader.receive, reader.send))
            for _ in range(5):
                await asyncio.sleep(0)
            return reader, task

        first, first_task = await answer(1)
        second, second_task = await answer(0)
        assert ended == 2                           # requests have given their places back
        assert account.has_room(PIECE_BYTES)        # 2 pieces of the first are left, and all of the second
        assert not account.has_room(PIECE_BYTES + 1)
        assert not first.cut_off.is_set()
        third, third_task = await answer(9)
        assert first.cut_off.is_set()
        assert not second.cut_off.is_set()
        await first_task
        await third_task
        assert third.received == 3 * PIECE_BYTES
        assert account.has_room(3 * PIECE_BYTES)
        assert not account.has_room(3 * PIECE_BYTES + 1)
        second.cut_off.set()
        await second_task
        assert account.has_room(6 * PIECE_BYTES - 6 * PIECE_BYTES // ANSWERS_DIVISOR)

    asyncio.run(run())


def test_one_answer_may_be_larger_than_the_account() -> None:
    async def run() -> int:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.body", "body": b"x" * 3 * PIECE_BYTES})

        reader = Reader(9)
        await AnswerGate(app, Account(PIECE_BYTES, Metrics()))(reader.scope, reader.receive, reader.send)
        assert not reader.cut_off.is_set()
        return reader.received

    assert asyncio.run(run()) == 3 * PIECE_BYTES


class Opened:
    """A maker of clients that remembers them."""

    def __init__(self) -> None:
        self.clients: list[Client] = []

    def __call__(self, credentials: Credentials | None) -> Client:
        self.clients.append(Client("127.0.0.1:1"))
        return self.clients[-1]


def test_users_share_a_bounded_number_of_clients() -> None:
    """Without credentials nothing is asked, so keys stand for users here."""
    async def run() -> None:
        opened = Opened()
        users = Users(opened, UserLimits(users_max=1))
        async with users.place(None, Peer()):
            with pytest.raises(Problem) as refused:
                await users._make_room()
            assert (refused.value.status, refused.value.kind) == (503, "busy")
        await users._make_room()                # now the idle one is closed
        assert len(users) == 0
        async with users.place(None, Peer()) as account:
            assert account.client is opened.clients[-1]
        assert len(opened.clients) == 2
        await users.close()

    asyncio.run(run())


def test_a_client_is_known_once_the_cluster_has_executed_something_for_its_user() -> None:
    async def run() -> list[tuple[int, bool]]:
        found: list[tuple[int, bool]] = []
        users = Users(Opened(), UserLimits())

        async def ask(status: int) -> None:
            async def app(scope: Scope, receive: Receive, send: Send) -> None:
                await send({"type": "http.response.start", "status": status})

            recognised: list[None] = []
            exchange = Exchange([])
            exchange.scope["state"] = {STATE: Peer("a", lambda: recognised.append(None))}
            await UserGate(app, users)(exchange.scope, exchange.receive, exchange.send)
            found.append((exchange.status, bool(recognised)))

        for status in (400, 401, 200, 404, 401, 404):
            await ask(status)
        await users.close()
        return found

    assert asyncio.run(run()) == [(400, False), (401, False), (200, True), (404, True), (401, True), (404, False)]


class Refused(Client):
    """A client whose user the cluster does not accept."""

    async def connect(self, *, timeout: float | None = None) -> None:
        raise AuthError("403 Forbidden")


def test_refused_credentials_are_not_tried_again_at_once() -> None:
    async def run() -> int:
        made: list[Client] = []

        def make(_: Credentials | None) -> Client:
            made.append(Refused("127.0.0.1:1"))
            return made[-1]

        users = Users(make, UserLimits())
        for secret in ("one", "one", "two", "one"):
            with pytest.raises(Problem) as refused:
                async with users.place(Credentials("mail", secret), Peer()):
                    pass
            assert refused.value.status == 401
        return len(made)

    assert asyncio.run(run()) == 2


class Gone:
    """A caller whose client has hung up just when its take had jobs."""

    def __init__(self) -> None:
        self.client = self
        self.returned: list[tuple[list[str], bool]] = []

    async def is_gone(self) -> bool:
        return True

    async def later_many(self, jobs: list[str], first: bool) -> None:
        self.returned.append((jobs, first))


def test_jobs_of_a_client_that_has_hung_up_go_back() -> None:
    caller: Any = Gone()
    jobs: Any = ["job"]
    answer = asyncio.run(_handed(caller, jobs))
    assert (bytes(answer.body), caller.returned) == (b'{"jobs":[]}', [(["job"], True)])


def test_a_request_waits_for_a_place_and_not_for_ever() -> None:
    async def run() -> None:
        users = Users(Opened(), UserLimits(connections_max=1, waiting_max=1, patience_s=0.05))
        async with users.place(None, Peer()):
            with pytest.raises(Problem):
                async with users.place(None, Peer()):
                    pass
        async with users.place(None, Peer()):           # the one that has given up holds none
            pass
        await users.close()

    asyncio.run(run())
