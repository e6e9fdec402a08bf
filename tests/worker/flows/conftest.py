"""The app of flows, whose tasks record that they ran, on a real server in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sockpq import Client
from sockpq.worker import App, GiveUp

from tests.client.real_server import RealServer
from tests.worker.flows.working import RAN, Worker, at_work


@pytest.fixture
def server() -> Iterator[RealServer]:
    RAN.clear()
    with RealServer() as server:
        yield server


@pytest.fixture
def client(server: RealServer) -> Iterator[Client]:
    with Client(server.address) as client:
        client.queue_config("q", retain=3600)
        yield client


@pytest.fixture
def app(server: RealServer, client: Client) -> Iterator[App]:
    app = made_app(server.address)
    yield app
    app.close()


@pytest.fixture
def worker(server: RealServer, app: App) -> Iterator[Worker]:
    with at_work(server, app) as worker:
        yield worker


def made_app(address: str) -> App:
    """Return an app whose tasks record that they ran."""
    app = App(address)

    @app.task("q", name="fetch", result=True, tries=1)
    def fetch(number: int) -> int:
        RAN.append(("fetch", number))
        return number

    @app.task("q", name="add", result=True, tries=1)
    def add(one: Any, more: int = 0) -> Any:
        RAN.append(("add", one))
        return (sum(one) if isinstance(one, list) else one) + more

    @app.task("q", name="show", result=True, tries=1)
    def show(*given: Any) -> Any:
        RAN.append(("show", *given))
        return list(given)

    @app.task("q", name="fail", result=True, tries=1)
    def fail(*given: Any) -> None:
        RAN.append(("fail", *given))
        raise GiveUp("no")

    @app.task("q", name="sorry")
    def sorry(why: str) -> None:
        RAN.append(("sorry", why))

    return app
