"""Handles a request from its head to its answer: finds its sender, decodes it, and has the engine execute it."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from itertools import count

from aiohttp import web
from msgspec import Struct

from sockpq_sqs.auth import Gate, Head
from sockpq_sqs.call import Call
from sockpq_sqs.door.bodies import BodyLeft, check_md5, read_body
from sockpq_sqs.door.connection import Connection, Stage
from sockpq_sqs.door.connections import Connections
from sockpq_sqs.door.figures import NO_ACTION, OK, Figures
from sockpq_sqs.door.pages import METRICS, Pages
from sockpq_sqs.door.refusals_log import RefusalsLog
from sockpq_sqs.door.turns import Turns
from sockpq_sqs.door.urls import Urls, queue_path
from sockpq_sqs.model.errors import SqsError, unavailable
from sockpq_sqs.wire import METHODS, Document, Exchange, exchange_of

log = logging.getLogger("sockpq-sqs")

Handle = Callable[[Call], Awaitable[Struct]]

SERVER = "sockpq-sqs"


class Handler:
    """Answers requests. `handle` is the engine's. With `check_hosts` a request must name this program as its host."""

    def __init__(
        self, handle: Handle, gate: Gate, urls: Urls, connections: Connections, pages: Pages, figures: Figures,
        refusals: RefusalsLog, *, check_hosts: bool,
    ) -> None:
        self.ending = False                     # clients are asked to close their connections
        self._handle = handle
        self._gate = gate
        self._urls = urls
        self._connections = connections
        self._pages = pages
        self._figures = figures
        self._refusals = refusals
        self._check_hosts = check_hosts
        self._turns = Turns()
        self._ids = str(uuid.uuid4())[:24], count(1)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request (aiohttp.web.Server)."""
        connection = request.protocol
        assert isinstance(connection, Connection)
        connection.enter(Stage.REQUEST)
        connection.work = asyncio.current_task()
        try:
            response = await self._answer(request, connection)
        finally:
            connection.work = None
            connection.enter(Stage.IDLE)
            self._connections.account.hold(connection, 0)
        response.headers["Server"] = SERVER
        if self.ending:
            response.force_close()
        return response

    def _next_id(self) -> str:
        """Return the id of a request: random for this process, and counted in it, as new random ones take longer."""
        random, number = self._ids
        return f"{random}{next(number):012x}"

    async def _answer(self, request: web.BaseRequest, connection: Connection) -> web.Response:
        path, _, query = request.raw_path.partition("?")
        head = Head(request.method, path, query, request.headers, connection.ssl_context is not None)
        # A page in a browser of this machine could otherwise read the figures, which this machine may.
        strict = self._check_hosts or (path == METRICS and connection.address is None)
        if strict and not self._urls.is_own(head):
            return _closing(web.Response(status=421, text="ask by an address, as localhost, or by a name in "
                                         "http.hosts of the settings\n"))
        if request.method in ("GET", "HEAD") and not query:
            page = await self._pages.answer(request, path)
            if page is not None:
                return page
        began = time.monotonic()
        request_id = self._next_id()
        exchange = self._exchange(head, request_id)
        self._figures.in_progress += 1
        try:
            document, code, close = await self._serve(request, connection, head, exchange)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.ending or connection.transport is None or task is None:
                self._count(exchange, "hung up", began)
                raise
            task.uncancel()                     # the program ends: an SDK repeats the request elsewhere
            error = unavailable()
            document, code, close = exchange.error(error), error.code, True
        finally:
            self._figures.in_progress -= 1
        self._count(exchange, code, began)
        self._figures.sent_bytes += len(document.body)
        headers = {"Content-Type": document.content_type, "x-amzn-RequestId": request_id}
        if document.query_error is not None:
            headers["x-amzn-query-error"] = document.query_error
        response = web.Response(status=document.status, body=document.body, headers=headers)
        return _closing(response) if close else response

    def _exchange(self, head: Head, request_id: str) -> Exchange:
        queue = queue_path(head.path)
        url = None if queue is None else f"{self._urls.origin(head)}/{queue}"
        return exchange_of(
            head.method, head.query, head.headers.get("X-Amz-Target"), head.header("Content-Type"), url, request_id)

    async def _serve(
        self, request: web.BaseRequest, connection: Connection, head: Head, exchange: Exchange,
    ) -> tuple[Document, str, bool]:
        """Return the answer, the code of its error or OK, and whether the connection cannot be reused."""
        verified = False
        try:
            if head.method not in METHODS:
                raise BodyLeft("UnsupportedOperation", "Requests are sent by POST, or by GET.", 405)
            claim = self._gate.claim(head)
            body = await read_body(request, connection, self._connections.account)
            self._figures.received_bytes += len(body)
            async with self._turns.turn(len(body)):
                sender = self._gate.sender(head, claim, body)
                verified = True
                check_md5(request, body)
                action, decoded = exchange.decode(body)
            self._connections.recognise(connection)
            connection.enter(Stage.WORK)
            call = Call(
                action.name, decoded, sender.user, sender.account, sender.region, self._urls.origin(head),
                head.header("X-Amzn-Trace-Id"), head.header("amz-sdk-invocation-id"))
            return exchange.answer(await self._handle(call)), OK, False
        except SqsError as error:
            if not verified:
                self._refusals.add(request.remote or "?", error.code)
            return exchange.error(error), error.code, not verified or isinstance(error, BodyLeft)
        except ConnectionError:
            raise
        except Exception:
            log.exception("a request failed by a fault of this program: %s", _name(exchange))
            fault = SqsError("InternalFailure", "The request failed by a fault of the front end.", 500)
            return exchange.error(fault), fault.code, False

    def _count(self, exchange: Exchange, code: str, began: float) -> None:
        self._figures.count(_name(exchange), code, time.monotonic() - began)


def _name(exchange: Exchange) -> str:
    return NO_ACTION if exchange.action is None else exchange.action.name


def _closing(response: web.Response) -> web.Response:
    response.force_close()
    return response
