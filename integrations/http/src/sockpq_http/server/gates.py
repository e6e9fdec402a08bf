"""Gates before the application: the name of the host, the body of the request, its user with a place, the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sockpq_http.access.credentials import credentials_of
from sockpq_http.access.hosts import Hosts
from sockpq_http.access.peer import peer_of
from sockpq_http.access.turns import HungUp
from sockpq_http.access.users import Users
from sockpq_http.problems.errors import AGAIN
from sockpq_http.problems.problem import Problem
from sockpq_http.server.account import Account

API = "/v1/"
LARGE_BYTES = 65_536        # a body above it takes milliseconds to read
LARGE_AT_A_TIME = 1         # so small requests wait for one of them only
TURN_S = 1.0                # after which another one begins, as a request may wait for a job or the disks
PIECE_BYTES = 65_536        # of an answer: as much as a connection holds before it waits for its reader
CLOSE = {"connection": "close"}         # what is left of a body that is refused is not worth reading


class HostGate:
    """Answers no request for a host that this is not: a web page could have made it so in a browser."""

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
        self._turns = asyncio.Semaphore(LARGE_AT_A_TIME)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        held = 0
        try:
            try:
                whole = await self._read(scope, receive, body)
            except Problem as problem:
                await problem.answer()(scope, receive, send)
                return
            finally:
                held = len(body)
            if whole and held > LARGE_BYTES:
                await self._in_turn(scope, body, receive, send)
            elif whole:
                await self._app(scope, _again(body, receive), send)
        finally:
            self._account.hold(-held)

    async def _in_turn(self, scope: Scope, body: bytearray, receive: Receive, send: Send) -> None:
        """Pass a request with a large body on, when it is its turn: to read one takes long, and holds up all others.

        The next one begins after as long a rest, in which the others get on; and after TURN_S in any case.
        """
        loop = asyncio.get_running_loop()
        await self._turns.acquire()
        begun = loop.time()
        turn = loop.call_later(TURN_S, self._turns.release)     # it may wait for a job
        try:
            await self._app(scope, _again(body, receive), send)
        finally:
            ended = loop.time()
            if turn.when() > ended:
                turn.cancel()
                loop.call_at(ended + (ended - begun), self._turns.release)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> bool:
        """Read into `body`; returns False when the client hangs up. Raises Problem."""
        length = header(scope, b"content-length")
        if length is not None and length.isdigit() and int(length) > self._bytes_max:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._timeout_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return False
                    piece = message.get("body", b"")
                    if len(body) + len(piece) > self._bytes_max:
                        raise self._too_large()
                    if not self._account.has_room(len(piece)):
                        raise Problem(503, "too many bytes of requests and answers are in progress", "busy", code=503,
                                      reason="Busy", headers={**AGAIN, **CLOSE})
                    body += piece
                    self._account.hold(len(piece))
                    if not message.get("more_body", False):
                        return True
        except TimeoutError:
            raise Problem(408, "the body did not come in time", headers=CLOSE) from None

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
    """Return what gives the body once, and then what comes from the client. The body is empty then: none is kept twice.
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
