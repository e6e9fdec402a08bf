"""OpenTelemetry: spans for calls and for the work on jobs, and traces that continue where a job is processed.

Only a client with `tracing=True` loads opentelemetry-api and does any of this. A job that it puts has the headers
`traceparent` and `tracestate` of W3C Trace Context, if the server supports headers, and a client with `tracing=True`
that takes the job continues the trace. Its body is the same with and without.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sockpq._protocol.command import Command
from sockpq.errors import BadArguments

HEADERS = ("traceparent", "tracestate")
SYSTEM = "sockpqd"


class Tracing:
    """The spans of one client."""

    def __init__(self) -> None:
        """Prepare tracing; raises BadArguments without opentelemetry-api."""
        try:
            self._trace: Any = importlib.import_module("opentelemetry.trace")
            self._context: Any = importlib.import_module("opentelemetry.context")
            self._propagator: Any = importlib.import_module(
                "opentelemetry.trace.propagation.tracecontext").TraceContextTextMapPropagator()
        except ImportError as error:
            raise BadArguments(
                "tracing needs opentelemetry-api, of the extra sockpq[otel]: pip install opentelemetry-api"
            ) from error
        self._tracer: Any = self._trace.get_tracer("sockpq")

    @contextmanager
    def call(self, command: Command[Any]) -> Iterator[None]:
        """Open a span around one call."""
        words = command.line.split(None, 2)
        verb = words[0].decode()
        attributes = {"messaging.system": SYSTEM, "messaging.operation.name": verb}
        if verb == "PUT":
            attributes["messaging.destination.name"] = words[1].decode()
        kind = self._trace.SpanKind.PRODUCER if verb in ("PUT", "PUTS") else self._trace.SpanKind.CLIENT
        with self._tracer.start_as_current_span(verb, kind=kind, attributes=attributes):
            yield

    def headers(self) -> dict[str, str]:
        """Return the headers of a job to be put, for the current span; none outside of spans."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return {name: carrier[name] for name in HEADERS if carrier.get(name)}

    def begin_work(self, queue: str, headers: dict[str, str] | None) -> tuple[Any, Any]:
        """Begin work on a job of this queue, which lasts until end_work() is called with the result of this."""
        span = self._tracer.start_span(
            f"process {queue}", context=self._propagator.extract(headers) if headers else None,
            kind=self._trace.SpanKind.CONSUMER,
            attributes={"messaging.system": SYSTEM, "messaging.destination.name": queue,
                        "messaging.operation.type": "process"},
        )
        return span, self._context.attach(self._trace.set_span_in_context(span))

    @contextmanager
    def work(self, queue: str, headers: dict[str, str] | None) -> Iterator[None]:
        """Open the span of the work on a job of this queue; an error that ends the block is recorded."""
        work = self.begin_work(queue, headers)
        try:
            yield
        except BaseException as error:
            self.end_work(work, error)
            raise
        self.end_work(work)

    def end_work(self, work: tuple[Any, Any], error: BaseException | None = None) -> None:
        """End the span of the work, which is finished or was left by an error."""
        span, token = work
        self._context.detach(token)
        if error is not None and not isinstance(error, GeneratorExit):
            span.record_exception(error)
            span.set_status(self._trace.StatusCode.ERROR)
        span.end()
