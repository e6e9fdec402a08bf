"""The program `pqworker`: `pqworker app:app -c 4`."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Sequence
from io import TextIOWrapper
from typing import Any

from sockpq.errors import BadArguments, ForeignCluster, SockpqError
from sockpq.worker.app import App
from sockpq.worker.cron_jobs import CronJobs
from sockpq.worker.pool.pool import Pool
from sockpq.worker.pool.settings import PoolSettings
from sockpq.worker.program.heartbeat import SESSION_S, Heartbeat
from sockpq.worker.program.loading import load
from sockpq.worker.program.log_handler import log_handler
from sockpq.worker.program.metrics import MetricsServer
from sockpq.worker.program.metrics import check as check_metrics
from sockpq.worker.program.options import Options, parse, pool_settings
from sockpq.worker.program.overview import banner, bounds, check
from sockpq.worker.program.progress import check as check_progress
from sockpq.worker.program.progress import show
from sockpq.worker.program.signals import Signals, abrupt

LOG = logging.getLogger("sockpq.worker")

FAILED = 1
MISUSED = 64        # as pqctl
CRON_PAUSE_S = 5.0
FAULT_PAUSE_S = 5.0
# The options that a running worker does not change.
FIXED = ("app", "servers", "pool", "name", "log-format", "metrics", "progress", "exec", "expire", "tries", "backoff")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = parse(given)
        settings = pool_settings(options)
        if options.get("metrics"):
            check_metrics(options.get("metrics"))
        if options.get("progress"):
            check_progress()
        handler = _log_to_stderr(options.get("log-format", "auto"), options.get("verbose", False))
    except BadArguments as error:
        print(f"pqworker: {error} (see `pqworker --help`)", file=sys.stderr)
        return MISUSED
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)     # what a task prints is seen at once, in a journal as well
    with abrupt():
        return _run(options, settings, given, handler)


def _run(options: Options, settings: PoolSettings, given: list[str], handler: logging.StreamHandler[Any]) -> int:
    """Load the app and work for it; returns the exit code."""
    try:
        app = load(options)
    except BadArguments as error:
        print(f"pqworker: {error}", file=sys.stderr)
        return MISUSED
    if options.get("check"):
        return _check(app, settings)
    if sys.stderr.isatty():
        sys.stderr.write(banner(app, settings))
    try:
        asyncio.run(_work(app, options, settings, given, handler))
    except BadArguments as error:
        print(f"pqworker: {error}", file=sys.stderr)
        return MISUSED
    except ForeignCluster as error:
        print(f"pqworker: {error}; start it again to work for the other cluster", file=sys.stderr)
        return FAILED
    except Exception:
        LOG.exception("the worker has failed")
        return FAILED
    finally:
        app.close()
    return 0


def _check(app: App, settings: PoolSettings) -> int:
    """Print what the worker would do; returns the exit code."""
    sys.stdout.write(banner(app, settings))
    sys.stdout.flush()          # no server may answer for half a minute
    try:
        sys.stdout.write(check(app, settings))
    except SockpqError as error:
        print(f"pqworker: {error}", file=sys.stderr)
        return FAILED
    finally:
        app.close()
    return 0


async def _work(
    app: App, options: Options, settings: PoolSettings, given: list[str], handler: logging.StreamHandler[Any]
) -> None:
    """Run a pool to its end, with its heartbeats, metrics and view."""
    cron = CronJobs(app)
    pool = Pool(app, settings, cron.before_work)
    Signals(pool, lambda: _reload(pool, options, given)).install()
    metrics = MetricsServer(pool)
    voice = app.new_async_client(session_ttl=SESSION_S)
    helpers: list[asyncio.Task[None]] = []
    try:
        if options.get("metrics"):
            await metrics.start(*check_metrics(options.get("metrics")))
            LOG.info("metrics at http://%s:%d/metrics", *metrics.place)
        LOG.info(
            "worker %s: %s %s (%s) for %s", settings.name, bounds(settings),
            "child" if settings.most == 1 else "children", settings.kind, ", ".join(pool.queues),
        )
        beats = Heartbeat(pool, settings.name)
        helpers.append(asyncio.create_task(keep(lambda: _start_cron(cron, pool))))
        helpers.append(asyncio.create_task(keep(lambda: beats.run(voice, settings.heartbeat))))
        if options.get("progress") and sys.stderr.isatty():
            helpers.append(asyncio.create_task(keep(lambda: show(pool, handler))))
        await pool.run()
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        metrics.close()
        await voice.close()
    total = pool.counters.total
    LOG.info("worker %s has ended after %d %s", settings.name, total, "job" if total == 1 else "jobs")


async def keep(work: Callable[[], Coroutine[Any, Any, None]], pause_s: float = FAULT_PAUSE_S) -> None:
    """Run this to its end; any error is logged, and the work restarted."""
    while True:
        try:
            await work()
            return
        except Exception:
            LOG.exception("a fault of the worker itself")
            await asyncio.sleep(pause_s)


async def _start_cron(cron: CronJobs, pool: Pool) -> None:
    """Put the first runs of periodic tasks; retries until the servers have accepted them."""
    while True:
        try:
            await cron.start(pool.client)
            return
        except SockpqError as error:
            LOG.warning("the first runs of periodic tasks cannot be put: %s", error)
            await asyncio.sleep(CRON_PAUSE_S)


def _reload(pool: Pool, options: Options, given: list[str]) -> None:
    """HUP: read the configuration file again; an invalid file changes nothing."""
    if options.config is None:
        LOG.warning("HUP: there is no --config file to be read again")
        return
    try:
        read = parse(given)
        settings = pool_settings(read)
        pool.configure(settings)
    except (BadArguments, SystemExit) as error:
        LOG.error("the configuration is not good, and changes nothing: %s", error)
        return
    fixed = [key for key in FIXED if read.get(key) != options.get(key)]
    if fixed:
        LOG.warning("%s: this takes a new start of the worker", ", ".join(fixed))
    LOG.info("read %s again", options.config)


def _log_to_stderr(form: str, verbose: bool) -> logging.StreamHandler[Any]:
    handler = log_handler(form)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.getLogger("sockpq").setLevel(logging.WARNING)       # each reconnect of the client is no news here
    LOG.setLevel(logging.DEBUG if verbose else logging.INFO)
    return handler
