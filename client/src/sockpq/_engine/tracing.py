"""OpenTelemetry: spans for calls and for the work on jobs, and a trace that goes on where a job is worked on.

Only a client with `tracing=True` loads opentelemetry-api and does any of this. The body of a job it puts begins with
one line, 0x1F and then `traceparent` and `tracestate` as W3C Trace Context has them:

    \\x1ftraceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01;tracestate=a=1\\n

A client with `tracing=True` takes that line away again; all others see it as a part of the data. So switch tracing on
for all programs that use a queue, workers first: they understand bodies with and without the line.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sockpq._protocol.command import Command
from sockpq.errors import BadArguments

MARK = b"\x1ftraceparent="
LINE_BYTES_MAX = 1024           # of the line; the standard allows 512 characters for the longer one of its two parts
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
        """A span around one call."""
        words = command.line.split(None, 2)
        verb = words[0].decode()
        attributes = {"messaging.system": SYSTEM, "messaging.operation.name": verb}
        if verb == "PUT":
            attributes["messaging.destination.name"] = words[1].decode()
        kind = self._trace.SpanKind.PRODUCER if verb in ("PUT", "PUTS") else self._trace.SpanKind.CLIENT
        with self._tracer.start_as_current_span(verb, kind=kind, attributes=attributes):
            yield

    def mark(self, body: bytes) -> bytes:
        """Return the body of a job to be put, with the line for the current span if there is one."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        if "traceparent" not in carrier:
            return body
        state = f";tracestate={carrier['tracestate']}" if carrier.get("tracestate") else ""
        return MARK + f"{carrier['traceparent']}{state}\n".encode() + body

    def unmark(self, data: bytes) -> tuple[bytes, dict[str, str]]:
        """Return the body of a job without the line, and the content of the line."""
        end = data.find(b"\n", 0, LINE_BYTES_MAX) if data.startswith(MARK) else -1
        if end < 0:
            return data, {}
        parent, _, state = data[len(MARK) : end].decode("ascii", "replace").partition(";tracestate=")
        return data[end + 1 :], {"traceparent": parent, **({"tracestate": state} if state else {})}

    def begin_work(self, queue: str, carrier: dict[str, str]) -> tuple[Any, Any]:
        """Begin work on a job of this queue, which lasts until end_work() with what this returns."""
        span = self._tracer.start_span(
            f"process {queue}", context=self._propagator.extract(carrier) if carrier else None,
            kind=self._trace.SpanKind.CONSUMER,
            attributes={"messaging.system": SYSTEM, "messaging.destination.name": queue,
                        "messaging.operation.type": "process"},
        )
        return span, self._context.attach(self._trace.set_span_in_context(span))

    def end_work(self, work: tuple[Any, Any], error: BaseException | None = None) -> None:
        """End the span of the work, which is finished or was left by an error."""
        span, token = work
        self._context.detach(token)
        if error is not None and not isinstance(error, GeneratorExit):
            span.record_exception(error)
            span.set_status(self._trace.StatusCode.ERROR)
        span.end()
