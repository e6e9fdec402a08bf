"""The command line of `pqoutbox`."""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

import click
from sockpq import Client, SockpqError

from sockpq_outbox._version import __version__
from sockpq_outbox.databases.base import Database, run
from sockpq_outbox.databases.sources import SqliteSource, source_of
from sockpq_outbox.doctor import examine
from sockpq_outbox.errors import OutboxError
from sockpq_outbox.relay.relay import Relay
from sockpq_outbox.rows import transaction
from sockpq_outbox.sql import create_tables
from sockpq_outbox.tables import tables_are_missing
from sockpq_outbox.words import rows_counted, rows_wait

LOCK_S = 15.0               # how long a command waits for what others have locked
ASK_S = 5.0                 # of the doctor: a cluster that does not answer by then is ill
SHOWN_MAX = 20
DAY_S = 86_400.0

F = TypeVar("F", bound=Callable[..., Any])

_database = click.argument("database", envvar="SOCKPQ_OUTBOX_DATABASE", metavar="DATABASE")
_name = click.option("--name", default="default", show_default=True, metavar="NAME",
                     help="The outbox: two databases that use one cluster need two names.")


def _cluster(command: F) -> F:
    """Add the options of a command that speaks to the cluster."""
    for option in (
        click.option("--secret-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
                     help="The file with the user's secret.  [default: as for pqctl]"),
        click.option("--user", metavar="NAME", help="The user that the servers require.  [default: as for pqctl]"),
        click.option("--ca", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
                     help="Speak TLS with the servers, whose certificates this CA has signed."),
        click.option("--servers", metavar="HOST:PORT,..", help="The cluster's servers.  [default: as for pqctl]"),
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pqoutbox")
def main() -> None:
    """Relay the outbox of a database into a sockpqd cluster, and look after it.

    DATABASE is postgresql://user@host/name, mariadb://user@host/name or sqlite:///path; the variable
    SOCKPQ_OUTBOX_DATABASE keeps a password out of the list of processes.
    """


@main.command()
@_database
@_cluster
@_name
@click.option("--lease", type=click.FloatRange(1), default=15.0, show_default=True, metavar="SECONDS",
              help="After this long without a sign of life another relay takes over.")
@click.option("--poll", type=click.FloatRange(0.01), default=1.0, show_default=True, metavar="SECONDS",
              help="How often to look for rows. PostgreSQL notifies the relay at once.")
@click.option("--batch", type=click.IntRange(1, 900), default=500, show_default=True, metavar="ROWS",
              help="The most rows that are put together.")
@click.option("--keep-failed", type=click.FloatRange(0), default=30.0, show_default=True, metavar="DAYS",
              help="How long rows stay that the cluster has refused.")
@click.option("--keep-inbox", type=click.FloatRange(0), default=7.0, show_default=True, metavar="DAYS",
              help="How long marks of the inbox stay: longer than any worker may sleep.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus there.")
@click.option("--adopt", is_flag=True, help="Use the ledger of another database, whose place this one has taken.")
@click.option("--verbose", is_flag=True, help="Log more.")
def relay(
    database: str, servers: str | None, ca: str | None, user: str | None, secret_file: str | None, name: str,
    lease: float, poll: float, batch: int, keep_failed: float, keep_inbox: float, metrics: str | None, adopt: bool,
    verbose: bool,
) -> None:
    """Put the jobs of committed rows into the cluster, each exactly once, until SIGTERM or Ctrl-C.

    Any number may run: one works, the others wait to take over.
    """
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    with _errors():
        moving = Relay(
            database, servers, name=name, lease=lease, poll=poll, rows_max=batch, keep_failed=keep_failed * DAY_S,
            keep_inbox=keep_inbox * DAY_S, adopt=adopt, tls=ca, user=user, secret_file=secret_file,
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: moving.stop())
        page = _metrics(moving, metrics) if metrics else None
        try:
            moving.run()
        finally:
            if page:
                page.shutdown()


@main.command(name="create-tables")
@_database
@click.option("--print", "only_print", is_flag=True, help="Print the statements instead of executing them.")
def create(database: str, only_print: bool) -> None:
    """Make the tables of outbox and inbox where they are missing."""
    with _errors(), _opened(database, new=True) as opened:
        statements = create_tables(opened.dialect)
        if only_print:
            click.echo(";\n".join(statements) + ";")
            return
        run(opened.begin())
        for statement in statements:
            run(opened.execute(statement, {}))
        run(opened.commit())
        click.echo("The tables sockpq_outbox, sockpq_outbox_relay and sockpq_inbox are there.")


@main.command()
@_database
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(database: str, as_json: bool) -> None:
    """Show how many rows wait, for which queues, and which the cluster has refused and why."""
    with _errors(), _opened(database) as opened:
        with transaction(opened) as rows:
            counts, queues, failures = rows.counts(), rows.queues(SHOWN_MAX), rows.failures(SHOWN_MAX)
        lag_s = 0.0 if counts.oldest is None else max(time.time() - counts.oldest, 0.0)
        if as_json:
            click.echo(json.dumps({
                "waiting": counts.waiting, "claimed": counts.claimed, "failed": counts.failed, "lag_s": lag_s,
                "queues": dict(queues), "failures": [failure._asdict() for failure in failures],
            }))
            return
        click.echo(f"{rows_wait(counts.waiting)}, the oldest for {lag_s:.1f} s; {counts.claimed} in a batch; "
                   f"{counts.failed} refused")
        for queue, number in queues:
            click.echo(f"  {queue}: {number} waiting")
        for failure in failures:
            when = datetime.fromtimestamp(failure.failed).isoformat(" ", "seconds")
            click.echo(f"  row {failure.id} for {failure.queue}, refused {when}: {failure.error}")


@main.command(name="retry-failed")
@_database
@click.option("--queue", metavar="QUEUE", help="Only rows for this queue.")
def retry_failed(database: str, queue: str | None) -> None:
    """Let rows that the cluster has refused wait again, in their old places."""
    with _errors(), _opened(database) as opened:
        with transaction(opened) as rows:
            number = rows.retry_failed(queue)
        click.echo(f"{rows_wait(number)} again")


@main.command(name="forget-before")
@_database
@click.argument("moment", metavar="TIME")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget_before(database: str, moment: str, yes: bool) -> None:
    """Remove rows written before TIME (2026-11-30T12:00:00+00:00, or Unix time) without putting them.

    For a database that was restored from a backup: rows that were put since then are in its table again. Stop the relay
    first.
    """
    with _errors(), _opened(database) as opened:
        time_s = _moment(moment)
        if not yes:
            click.confirm(f"Remove all rows written before {datetime.fromtimestamp(time_s)}?", abort=True)
        with transaction(opened) as rows:
            number = rows.forget_before(time_s)
        click.echo(f"{rows_counted(number)} removed")


@main.command()
@_database
@_cluster
@_name
def doctor(
    database: str, servers: str | None, ca: str | None, user: str | None, secret_file: str | None, name: str,
) -> None:
    """Report what is wrong and what to do about it; the exit code is 1 if anything is."""
    with _errors(), _opened(database) as opened, Client(
        servers, tls=ca, user=user, secret_file=secret_file, timeout=ASK_S,
    ) as client:
        found = examine(opened, client, name)
    for finding in found:
        click.echo(f"{'!!' if finding.bad else 'ok'} {finding.text}")
    sys.exit(any(finding.bad for finding in found))


@contextmanager
def _opened(database: str, *, new: bool = False) -> Iterator[Database]:
    """Open a database, which may be `new`; else its tables must be there."""
    source = source_of(database)
    if isinstance(source, SqliteSource):
        source.may_be_new = new
    opened = source.open(LOCK_S)
    try:
        if not new and (missing := tables_are_missing(opened.database)):
            raise click.ClickException(missing)
        yield opened.database
    finally:
        opened.close()


@contextmanager
def _errors() -> Iterator[None]:
    """Print an error instead of a traceback."""
    try:
        yield
    except (click.ClickException, click.Abort):
        raise
    except (OutboxError, SockpqError, ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    except Exception as error:              # of a driver, each of which has errors of its own
        raise click.ClickException(f"{type(error).__name__}: {error}") from error


def _metrics(moving: Relay, address: str) -> Any:
    try:
        from sockpq_outbox import metrics
    except ImportError:
        raise click.ClickException("--metrics needs sockpq-outbox[metrics]") from None
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise click.BadParameter("needs HOST:PORT", param_hint="--metrics")
    return metrics.serve(moving.statistics, host.strip("[]"), int(port))[0]


def _moment(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither 2026-11-30T12:00:00+00:00 nor Unix time", param_hint="TIME") from None
