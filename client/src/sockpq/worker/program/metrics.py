"""`--metrics HOST:PORT`: the pool's metrics for Prometheus, at /metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from typing import Any

from sockpq._protocol.addresses import parse_server
from sockpq.errors import BadArguments, SockpqError
from sockpq.worker.pool.counters import BUCKETS_S
from sockpq.worker.pool.pool import Pool

LOG = logging.getLogger("sockpq.worker")

REQUEST_BYTES_MAX = 8192
REQUEST_S = 5.0
ASK_S = 2.0
MISSING = "--metrics needs prometheus-client, of the extra sockpq[worker]: pip install prometheus-client"


def check(place: str) -> tuple[str, int]:
    """Return host and port; raises BadArguments if they are invalid, or the library is not installed."""
    try:
        import prometheus_client
    except ImportError as error:
        raise BadArguments(MISSING) from error
    assert prometheus_client
    try:
        host, port = parse_server(place, default_port=None)
    except BadArguments as error:
        raise BadArguments(f"--metrics {place}: needs HOST:PORT, such as 127.0.0.1:9464") from error
    return host, port


class MetricsServer:
    """Answers GET /metrics. `place` is the address on which it listens."""

    def __init__(self, pool: Pool) -> None:
        self.place: tuple[str, int] = ("", 0)
        self._pool = pool
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen; raises BadArguments when that is not possible."""
        try:
            self._server = await asyncio.start_server(self._answer, host, port, limit=REQUEST_BYTES_MAX)
        except OSError as error:
            raise BadArguments(f"--metrics {host}:{port}: {error}") from error
        self.place = self._server.sockets[0].getsockname()[:2]

    def close(self) -> None:
        if self._server:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(REQUEST_S):
                words = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)
                good = words[0] == b"GET" and len(words) > 1 and words[1].split(b"?")[0] == b"/metrics"
                body = await self._text() if good else b"see /metrics\n"
                status = b"200 OK" if good else b"404 Not Found"
                writer.write(
                    b"HTTP/1.1 %b\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: %d\r\n"
                    b"Connection: close\r\n\r\n%b" % (status, len(body), body)
                )
                await writer.drain()
        writer.close()

    async def _text(self) -> bytes:
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Figures(self._pool, await self._oldest()))
        text: bytes = generate_latest(registry)
        return text

    async def _oldest(self) -> dict[str, int]:
        """Return the age in seconds of each queue's oldest job, without queues for which no server answers now."""
        oldest = {}
        for queue in self._pool.queues:
            try:
                found = (await self._pool.client.queue_stat(queue, timeout=ASK_S)).get("oldest_s", 0)
                oldest[queue] = found
            except SockpqError as error:
                LOG.debug("queue %s: %s", queue, error)
        return oldest


class _Figures:
    """The families of metrics, as collected by prometheus_client."""

    def __init__(self, pool: Pool, oldest: dict[str, int]) -> None:
        self._pool = pool
        self._oldest = oldest

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        pool, counters = self._pool, self._pool.counters
        jobs = CounterMetricFamily("sockpq_worker_jobs", "Jobs worked on", labels=["queue", "outcome"])
        for (queue, outcome), count in counters.jobs.items():
            jobs.add_metric([queue, outcome], count)
        yield jobs
        times = HistogramMetricFamily("sockpq_worker_run_seconds", "How long jobs ran", labels=["queue"])
        for queue, found in counters.run_times.items():
            bounds = [*(f"{bound:g}" for bound in BUCKETS_S), "+Inf"]
            buckets = list(zip(bounds, map(float, accumulate(found.counts)), strict=True))
            times.add_metric([queue], buckets, found.sum_s)
        yield times
        yield CounterMetricFamily("sockpq_worker_lost", "Jobs whose leases had ended before", value=counters.lost)
        most, least = pool.bounds
        for name, told, value in (
            ("children", "Children of the pool", pool.size), ("children_busy", "Children at work", pool.busy),
            ("children_most", "Upper bound of children", most), ("children_least", "Lower bound of children", least),
            ("jobs_held", "Jobs taken and not yet worked on", pool.held),
        ):
            yield GaugeMetricFamily(f"sockpq_worker_{name}", told, value=value)
        waiting = GaugeMetricFamily("sockpq_worker_queue_oldest_seconds", "How long the oldest job of a queue waits",
                                    labels=["queue"])
        for queue, seconds in self._oldest.items():
            waiting.add_metric([queue], seconds)
        yield waiting
