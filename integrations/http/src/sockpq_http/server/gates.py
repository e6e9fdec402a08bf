"""Gates before the application: the name of the host, the body of the request, its user with a place, the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sockpq_http.access.credentials import credentials_of
from sockpq_http.access.hosts import Hosts
from sockpq_http.access.large_turns import LargeTurns
from sockpq_http.access.peer import peer_of
from sockpq_http.access.turns import HungUp
from sockpq_http.access.users import Users
from sockpq_http.problems.errors import AGAIN
from sockpq_http.problems.problem import Problem
from sockpq_http.server.account import Account, Body

API = "/v1/"
LARGE_BYTES = 65_536        # a body above it takes milliseconds to read
TURN_S = 1.0                # after which another one begins, as a request may wait for a job or the disks
PIECE_BYTES = 65_536        # of an answer: as much as a connection holds before it waits for its reader
CLOSE = {"connection": "close"}         # what is left of a body that is refused is not worth reading


class HostGate:
    """Refuses requests for another host than this one: a web page could make a browser send them."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and not self._hosts.accept(header(scope, b"host")):
            problem = Problem(400, "this is no name of this host: name it with --host", "wrong-host", headers=CLOSE)
            await problem.answer()(scope, receive, send)
            return
        await self._app(scope, receive, send)


class BodyGate:
    """Reads the body of a request, within limits, before the request takes a place."""

    def __init__(self, app: ASGIApp, account: Account, bytes_max: int, timeout_s: float) -> None:
        self._app = app
        self._account = account
        self._bytes_max = bytes_max
        self._timeout_s = timeout_s
        self._turns = LargeTurns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        data = bytearray()
        body = Body(known=peer_of(scope).known)
        try:
            try:
                whole = await self._arrive(scope, receive, body, data)
            except Problem as problem:
                data.clear()
                await problem.answer()(scope, receive, send)
                return
            if whole and len(data) > LARGE_BYTES:
                await self._in_turn(scope, data, receive, send)
            elif whole:
                await self._app(scope, _again(data, receive), send)
        finally:
            self._account.release(body)

    async def _in_turn(self, scope: Scope, data: bytearray, receive: Receive, send: Send) -> None:
        """Pass on a request with a large body, whose turn has come: reading one takes long, and holds up all others.

        The next turn begins after a rest of the same length, in which the others continue; and after TURN_S in any
        case.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        turn = loop.call_later(TURN_S, self._turns.give_back)     # it may wait for a job
        try:
            await self._app(scope, _again(data, receive), send)
        finally:
            ended = loop.time()
            if turn.when() > ended:
                turn.cancel()
                loop.call_at(ended + (ended - begun), self._turns.give_back)

    async def _arrive(self, scope: Scope, receive: Receive, body: Body, data: bytearray) -> bool:
        """Read a body into `data`, and if it is large wait for its turn; returns False when the client hangs up.

        Raises Problem.
        """
        length = header(scope, b"content-length")
        declared = int(length) if length is not None and length.isdigit() else None
        if declared is not None and declared > self._bytes_max:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                with self._account.arriving(body, partial(_reschedule, limit, 0.0)):
                    if not await self._read(receive, body, data, declared):
                        return False
                    if len(data) > LARGE_BYTES:
                        _reschedule(limit, None)
                        await self._turns.take(peer_of(scope))
                        if body.refused:
                            self._turns.give_back()
                            raise _busy()
                    return True
        except TimeoutError:
            raise (_busy() if body.refused else Problem(408, "the body did not come in time", headers=CLOSE)) from None

    async def _read(self, receive: Receive, body: Body, data: bytearray, declared: int | None) -> bool:
        """Read a body of the declared length into `data`; returns False when the client hangs up. Raises Problem."""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return False
            piece = message.get("body", b"")
            more = message.get("more_body", False)
            if len(data) + len(piece) > self._bytes_max:
                raise self._too_large()
            size = declared if declared is not None or more else len(data) + len(piece)
            first = body.known or (size is not None and size <= LARGE_BYTES)        # a small one is soon executed
            if body.refused or not self._account.hold(body, len(piece), first=first):
                raise _busy()
            data += piece
            if not more:
                return True

    def _too_large(self) -> Problem:
        return Problem(413, f"the body has more than {self._bytes_max} bytes", "data-too-large", code=413,
                       reason="Data Too Large", headers=CLOSE)


class AnswerGate:
    """Sends a large answer in pieces, as its client reads, after the request has given its place back."""

    def __init__(self, app: ASGIApp, account: Account) -> None:
        self._app = app
        self._account = account

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and send its answer."""
        large: Message | None = None

        async def sending(message: Message) -> None:
            nonlocal large
            if len(message.get("body", b"")) > PIECE_BYTES and not message.get("more_body", False):
                large = message
            else:
                await send(message)

        await self._app(scope, receive, sending)
        if large is not None:
            await self._send(large["body"], peer_of(scope).cut, send)

    async def _send(self, body: bytes, cut: Callable[[], None], send: Send) -> None:
        with self._account.answer(len(body), cut) as unread:
            for begin in range(0, len(body), PIECE_BYTES):
                piece = body[begin:begin + PIECE_BYTES]
                more = begin + PIECE_BYTES < len(body)
                await send({"type": "http.response.body", "body": piece, "more_body": more})    # waits for its reader
                self._account.sent(unread, len(piece))


class UserGate:
    """Gives each request of the API the client of its user, once that has a place."""

    def __init__(self, app: ASGIApp, users: Users) -> None:
        self._app = app
        self._users = users

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its client, or refuse it."""
        if scope["type"] != "http" or not scope["path"].startswith(API):
            await self._app(scope, receive, send)
            return
        peer = peer_of(scope)
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status < 300:
                    account.known = True        # the cluster has executed something for it
                    peer.recognise()
            await send(message)

        try:
            credentials = credentials_of(header(scope, b"authorization"))
            async with self._users.place(credentials, peer) as account:
                scope["state"] = {
                    **scope.get("state", {}), "client": account.client,
                    "user": credentials.user if credentials else "",
                }
                await self._app(scope, receive, noting)
            if status == 401:
                account.known = False
                await self._users.forget(credentials)
        except Problem as problem:
            await problem.answer()(scope, receive, send)
        except HungUp:
            pass                    # nobody is there to be answered


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the value of a header, the first one of several."""
    return next((value for key, value in scope["headers"] if key == name), None)


def _again(body: bytearray, receive: Receive) -> Receive:
    """Return a `receive` that gives the body once, then what the client sends. `body` is emptied, so that no copy
    stays.
    """
    given = False

    async def receiving() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        data = bytes(body)
        body.clear()
        return {"type": "http.request", "body": data, "more_body": False}

    return receiving


def _busy() -> Problem:
    return Problem(503, "too many bytes of requests and answers are in progress", "busy", code=503, reason="Busy",
                   headers={**AGAIN, **CLOSE})


def _reschedule(limit: asyncio.Timeout, when: float | None) -> None:
    """Let a timeout expire at this time of the loop (None: never), unless it is expiring just now."""
    if not limit.expired():
        limit.reschedule(when)
