"""Spans, and traces that continue where a job is worked on; with the part of OpenTelemetry's API that is used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from sockpq import BadArguments, Client, NoOutput

from tests.client.conftest import MakeClient
from tests.client.memory_cluster import MemoryCluster
from tests.client.real_server import RealServer

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Telemetry:
    """Stands in for opentelemetry: remembers spans, and has one current trace."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, Any]] = []      # name of each span, and the context it was begun in
        self.errors: list[BaseException] = []
        self.carrier = {"traceparent": PARENT, "tracestate": "a=1"}
        self.attached = 0

    def modules(self) -> dict[str, ModuleType]:
        made = {name: ModuleType(name) for name in (
            "opentelemetry", "opentelemetry.trace", "opentelemetry.context", "opentelemetry.trace.propagation",
            "opentelemetry.trace.propagation.tracecontext",
        )}
        trace: Any = made["opentelemetry.trace"]
        trace.get_tracer = lambda name: self
        trace.SpanKind = SimpleNamespace(PRODUCER=1, CLIENT=2, CONSUMER=3)
        trace.StatusCode = SimpleNamespace(ERROR=2)
        trace.set_span_in_context = lambda span: span
        context: Any = made["opentelemetry.context"]
        context.attach, context.detach = self._attach, self._detach
        propagation: Any = made["opentelemetry.trace.propagation.tracecontext"]
        propagation.TraceContextTextMapPropagator = lambda: SimpleNamespace(
            inject=lambda carrier: carrier.update(self.carrier), extract=lambda carrier: dict(carrier))
        return made

    def _attach(self, context: Any) -> int:
        self.attached += 1
        return self.attached

    def _detach(self, token: int) -> None:
        assert token == self.attached
        self.attached -= 1

    def start_span(self, name: str, context: Any = None, **more: Any) -> Any:
        return SimpleNamespace(
            end=lambda: self.ended.append((name, context)), record_exception=self.errors.append,
            set_status=lambda status: None,
        )

    @contextmanager
    def start_as_current_span(self, name: str, **more: Any) -> Iterator[None]:
        yield
        self.ended.append((name, None))


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch) -> Telemetry:
    telemetry = Telemetry()
    for name, module in telemetry.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    return telemetry


@pytest.fixture
def traced(server: RealServer, telemetry: Telemetry, make_client: MakeClient) -> Client:
    return make_client(server.address, timeout=30, tracing=True)


def test_a_trace_goes_on_where_the_job_is_worked_on(
    server: RealServer, telemetry: Telemetry, traced: Client, make_client: MakeClient,
) -> None:
    traced.put("q", b"body")
    (seen,) = make_client(server.address).peek_queue("q", headers=True)
    assert (seen.data, seen.headers) == (b"body", {"traceparent": PARENT, "tracestate": "a=1"})
    for job in traced.consume("q", expire=30, wait=0.1):
        assert job.data == b"body"
        assert telemetry.attached == 1
    assert telemetry.attached == 0
    assert telemetry.ended[0] == ("PUT", None)
    assert ("process q", telemetry.carrier) in telemetry.ended


def test_headers_of_the_job_stand_beside_those_of_the_trace(traced: Client) -> None:
    traced.put("q", b"body", headers={"tenant": "a"})
    job = traced.get("q", expire=30)
    assert job is not None
    assert job.headers == {"traceparent": PARENT, "tracestate": "a=1", "tenant": "a"}


def test_a_server_without_headers_gets_the_job_without_its_trace(
    cluster: MemoryCluster, telemetry: Telemetry, make_client: MakeClient,
) -> None:
    client = make_client(cluster.addresses, timeout=30, tracing=True)
    client.put("q", b"body")
    client.put_many("q", [b"1"])
    assert cluster.bodies("q") == [b"body", b"1"]
    assert [job.data for job in client.get_many(2, "q", expire=30)] == [b"body", b"1"]


def test_workers_understand_jobs_without_a_trace(
    server: RealServer, telemetry: Telemetry, traced: Client, make_client: MakeClient
) -> None:
    make_client(server.address, timeout=30).put("q", b"body")
    first = traced.get("q", expire=30)
    assert first is not None
    assert first.data == b"body"
    assert first.headers == {}


def test_a_remote_call_takes_the_trace_along(traced: Client, telemetry: Telemetry) -> None:
    with pytest.raises(NoOutput):
        traced.call("q", b"body", "q.out", headers={"tenant": "ann"}, wait=0.01)
    job = traced.get("q", expire=30, headers=True)
    assert job is not None
    assert (job.data, job.headers) == (b"body", {"tenant": "ann", **telemetry.carrier})


def test_where_there_is_no_trace_nothing_is_added(server: RealServer, telemetry: Telemetry, traced: Client) -> None:
    telemetry.carrier = {}
    traced.put_many("q", [b"1", b"2"])
    seen = traced.peek_queue("q", count=2, headers=True)
    assert [(one.data, one.headers) for one in seen] == [(b"1", {}), (b"2", {})]


def test_a_loop_that_is_left_ends_its_span(telemetry: Telemetry, traced: Client) -> None:
    traced.put("q", b"")
    for _ in traced.consume("q", expire=30):
        break
    assert telemetry.attached == 0
    assert [name for name, _ in telemetry.ended].count("process q") == 1


def test_without_the_extra_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(BadArguments, match=r"sockpq\[otel\]"):
        Client("a:1", tracing=True)
