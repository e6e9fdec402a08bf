"""The commands `sockpq-http serve` and `sockpq-http openapi`."""

from __future__ import annotations

import logging
import resource
import sys

import click
import uvloop

from sockpq_http.access.peer import is_local
from sockpq_http.access.users import UserLimits
from sockpq_http.limits import IDEMPOTENCY_S, IDEMPOTENCY_S_MAX
from sockpq_http.server.app import Service, application
from sockpq_http.server.certificate import CertificateError
from sockpq_http.server.running import CannotListen, instance
from sockpq_http.server.settings import MIB, ConnectionLimits, Settings

log = logging.getLogger("sockpq-http")

DEFAULTS = Settings()
FILES_MAX = 1 << 20


@click.command()
@click.option("--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT",
              help="Where clients connect.")
@click.option("--servers", default="127.0.0.1:11361", show_default=True, envvar="SOCKPQ_SERVERS",
              metavar="HOST:PORT,..", help="The cluster's servers; one is enough. Or the variable SOCKPQ_SERVERS.")
@click.option("--ca", type=click.Path(dir_okay=False, exists=True), metavar="FILE",
              help="Speak TLS with the servers, whose certificates this CA has signed.")
@click.option("--host", "hosts", multiple=True, metavar="NAME",
              help="A name under which clients reach this program, besides addresses and localhost.")
@click.option("--tls-cert", type=click.Path(dir_okay=False, exists=True), metavar="FILE",
              help="Speak TLS with clients, with this certificate.")
@click.option("--tls-key", type=click.Path(dir_okay=False, exists=True), metavar="FILE", help="Its key.")
@click.option("--cors-origin", "cors_origins", multiple=True, metavar="ORIGIN",
              help="An origin whose web pages may send requests, such as https://app.example.com.  [default: none]")
@click.option("--idempotency", type=click.FloatRange(1, IDEMPOTENCY_S_MAX), default=IDEMPOTENCY_S, show_default=True,
              metavar="S", help="How many seconds an Idempotency-Key is remembered.")
@click.option("--timeout", type=click.FloatRange(0.1, 600), default=DEFAULTS.timeout_s, show_default=True, metavar="S",
              help="How long a request may take, failovers included, besides the time for which it waits.")
@click.option("--body-max", type=click.IntRange(1, 1024), default=DEFAULTS.body_bytes_max // MIB, show_default=True,
              metavar="MIB", help="The largest body of a request.")
@click.option("--memory-max", type=click.IntRange(1), default=DEFAULTS.memory_bytes_max // MIB, show_default=True,
              metavar="MIB", help="How much all bodies in progress, and answers that are not read yet, may have.")
@click.option("--users-max", type=click.IntRange(1), default=DEFAULTS.users.users_max, show_default=True, metavar="N",
              help="How many users are served at a time.")
@click.option("--user-connections-max", type=click.IntRange(1), default=DEFAULTS.users.connections_max,
              show_default=True, metavar="N", help="How many requests of a user are executed at a time.")
@click.option("--connections-max", type=click.IntRange(1), default=DEFAULTS.connections.connections_max,
              show_default=True, metavar="N", help="How many connections there are, half of them from one address.")
@click.option("--drain", type=click.FloatRange(0, 600), default=DEFAULTS.drain_s, show_default=True, metavar="S",
              help="After a signal: not ready for this long, before it stops to listen.")
def serve(
    listen: str, servers: str, ca: str | None, hosts: tuple[str, ...], tls_cert: str | None,
    tls_key: str | None, cors_origins: tuple[str, ...], idempotency: float, timeout: float, body_max: int,
    memory_max: int, users_max: int, user_connections_max: int, connections_max: int, drain: float,
) -> None:
    """Serve the REST API. SIGTERM and SIGINT end it: not ready first, then requests in progress are finished."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535:        # a port alone would be one of all addresses
        raise click.UsageError("--listen needs HOST:PORT, or :PORT for all addresses of this machine")
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key go together")
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    logging.getLogger("sockpq").setLevel(logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)        # it warns of bad requests: strangers could fill a disk
    most = allow_files() // 2           # the other half is for connections to the cluster
    if most < connections_max:
        log.warning("%d connections at most, as this process may open %d files only", most, 2 * most)
    settings = Settings(
        servers=servers, ca=ca, reached_by_others=_reached_by_others(host.strip("[]")), hosts=hosts,
        cors_origins=cors_origins, idempotency_s=idempotency, timeout_s=timeout,
        body_bytes_max=body_max * MIB, memory_bytes_max=memory_max * MIB, drain_s=drain,
        users=UserLimits(
            users_max, user_connections_max, user_connections_max, leaving_max=max(1, user_connections_max // 2)
        ),
        connections=ConnectionLimits(
            connections_max=min(connections_max, most), per_address_max=max(1, min(connections_max, most) // 2)
        ),
    )
    uvloop.run(_serve(settings, host.strip("[]"), int(port), tls_cert, tls_key))


@click.command()
def openapi() -> None:
    """Print the OpenAPI document."""
    click.echo(application().state.document, nl=False)


def _reached_by_others(host: str) -> bool:
    return not host or not (host == "localhost" or is_local(host))


def allow_files() -> int:
    """Let this process open as many files as it may; returns how many, as each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES_MAX if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


async def _serve(settings: Settings, host: str, port: int, certificate: str | None, key: str | None) -> None:
    service = Service(settings)
    try:
        running = instance(service, host, port, certificate, key)
    except CertificateError as error:
        raise click.ClickException(str(error)) from None
    try:
        await running.serve()
    except CannotListen as error:
        raise click.ClickException(str(error)) from None
