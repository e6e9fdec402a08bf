"""The application: the table of requests behind its gates."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import sockpq
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from sockpq.aio import Client
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from sockpq_http.access.credentials import Credentials
from sockpq_http.access.hosts import Hosts
from sockpq_http.access.users import Users
from sockpq_http.exchange.caller import refuse_key
from sockpq_http.exchange.decoding import DecodingRoute
from sockpq_http.exchange.lists import Lists
from sockpq_http.exchange.rates import Rates
from sockpq_http.idempotency.marker import Markers
from sockpq_http.problems.errors import no_such_method, problem_of, problem_of_http, problem_of_values
from sockpq_http.problems.problem import Problem
from sockpq_http.routes.table import ROUTES, Route
from sockpq_http.server.account import Account
from sockpq_http.server.gates import AnswerGate, BodyGate, HostGate, UserGate
from sockpq_http.server.metrics import Counting, Metrics
from sockpq_http.server.openapi import document, text_of
from sockpq_http.server.pages import Readiness, pages
from sockpq_http.server.settings import Settings

log = logging.getLogger("sockpq-http")

READING_BYTES = 32 << 20        # for the largest job, which is there four times while it becomes an answer
METHODS = ["GET", "POST", "PATCH", "PUT", "DELETE"]
HEADERS = ["authorization", "content-type", "idempotency-key", "last-event-id"]
SHOWN = ["idempotency-replayed", "retry-after", "ratelimit-policy"]


class Service:
    """One instance: `app` is the application, `asgi` the same behind its gates; `stopping` is set when it ends."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.stopping = asyncio.Event()
        self.users = Users(self._client, settings.users)
        self.metrics.of_users(lambda: len(self.users))
        self.app = application(self)
        self.asgi = self._behind_gates(self.app)

    def client(self, timeout_s: float) -> Client:
        """Return a client without a user, for the program's own purposes."""
        return Client(self.settings.servers, tls=self.settings.ca, timeout=timeout_s, user=None)

    def _client(self, credentials: Credentials | None) -> Client:
        settings = self.settings
        return Client(
            settings.servers, tls=settings.ca, timeout=settings.timeout_s,
            user=credentials.user if credentials else None, secret=credentials.secret if credentials else None,
            idle_connections_max=settings.users.connections_max,
        )

    def _behind_gates(self, app: ASGIApp) -> ASGIApp:
        settings = self.settings
        inner: ASGIApp = UserGate(app, self.users)
        account = Account(settings.memory_bytes_max, self.metrics)
        inner = BodyGate(inner, account, settings.body_bytes_max, settings.connections.body_timeout_s)
        inner = AnswerGate(inner, account)
        if settings.cors_origins:
            inner = CORSMiddleware(
                inner, allow_origins=settings.cors_origins, allow_methods=METHODS, allow_headers=HEADERS,
                expose_headers=SHOWN,
            )
        return Counting(HostGate(inner, Hosts(settings.hosts)), self.metrics)


def application(service: Service | None = None) -> FastAPI:
    """Return the application; without a service only its OpenAPI document is usable."""

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        assert service is not None
        async with service.client(service.settings.timeout_s) as client:
            app.state.readiness = Readiness(client, service.stopping)
            looking = asyncio.create_task(_look(app.state.readiness, service.settings.reached_by_others))
            yield
            looking.cancel()
        await service.users.close()

    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, lifespan=running, redirect_slashes=False)
    app.router.route_class = DecodingRoute
    for family, routes in ROUTES.items():
        for route in routes:
            _add(app, family, route)
    app.state.document = text_of(document(app))
    app.include_router(pages)
    _handle_errors(app)
    if service is not None:
        app.state.metrics = service.metrics
        app.state.stopping = service.stopping
        app.state.markers = Markers(service.settings.idempotency_s)
        app.state.rates = Rates()
        app.state.lists = Lists()
        app.state.readings = asyncio.Semaphore(max(1, service.settings.memory_bytes_max // READING_BYTES))
    return app


async def _look(readiness: Readiness, reached_by_others: bool) -> None:
    """Log whether the cluster answers: an operator who mistyped its address would wait without knowing why.

    `reached_by_others`: warn if the cluster has no users, as it would then obey everybody who reaches this program.
    """
    why = await readiness.why_not()
    if why is None:
        log.info("the cluster answers")
        if reached_by_others and await readiness.obeys_strangers():
            log.warning("the cluster has no users: anybody who reaches this program may do everything")
    else:
        log.warning("%s; requests get 503 until it does", why)


def _add(app: FastAPI, family: str, route: Route) -> None:
    summary, _, more = (route.run.__doc__ or "").partition("\n")
    app.add_api_route(
        f"/v1{route.path}", route.run, methods=[route.method], response_model=route.view, status_code=route.status,
        tags=[family], operation_id=operation_id(route), summary=summary.rstrip("."), description=_prose(more),
        openapi_extra=route.extra, responses=route.responses,
        dependencies=[] if route.keyed or route.method == "GET" else [Depends(refuse_key)],
    )


def operation_id(route: Route) -> str:
    """Return the name of a request, from which generated clients make the names of methods."""
    return f"{route.run.__module__.rpartition('.')[2]}_{route.run.__name__.strip('_')}"


def _prose(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _handle_errors(app: FastAPI) -> None:
    def handle(kind: type[Exception], problem: Callable[[Exception], Problem]) -> None:
        async def answer(_: Request, error: Exception) -> Response:
            return problem(error).answer()

        app.add_exception_handler(kind, answer)

    async def of_framework(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        problem = _of_method(app, request, error) if error.status_code == 405 else problem_of_http(error)
        return problem.answer()

    handle(Problem, _itself)
    handle(sockpq.SockpqError, _of_client)
    handle(RequestValidationError, _of_values)
    app.add_exception_handler(HTTPException, of_framework)
    handle(UnicodeError, lambda _: Problem(400, "a text has half of a character: UTF-8 cannot encode it", "not-valid"))
    handle(Exception, lambda _: Problem(500, "this program failed: its log says how"))


def _itself(error: Exception) -> Problem:
    assert isinstance(error, Problem)
    return error


def _of_client(error: Exception) -> Problem:
    assert isinstance(error, sockpq.SockpqError)
    return problem_of(error)


def _of_values(error: Exception) -> Problem:
    assert isinstance(error, RequestValidationError)
    return problem_of_values(error.errors())


def _of_method(app: FastAPI, request: Request, error: HTTPException) -> Problem:
    routes = [(route, route.methods or set()) for route in app.routes if isinstance(route, APIRoute)]
    here = [(route.path, methods) for route, methods in routes if route.path_regex.match(request.scope["path"])]
    if not here:
        return problem_of_http(error)           # a page that is no part of the API
    parents = {path for path, _ in here}
    below = {route.path for route, methods in routes if request.method in methods and _parent(route.path) in parents}
    return no_such_method(request.method, {method for _, methods in here for method in methods}, below)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
