"""The command `sockpq-beanstalkd`."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import sys
from contextlib import suppress
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import uvloop
from sockpq import ForeignCluster, SockpqError, Unavailable
from sockpq.aio import Client

from sockpqd.beanstalk import BODY_BYTES_MAX, BeanstalkdServer, ClientConnection
from sockpqd.beanstalk_proxy.backend import ClientBackend, SharedClient
from sockpqd.beanstalk_proxy.listener import ListenerLimits, ProxyListener

log = logging.getLogger("sockpq-beanstalkd")

LOOK_S = 2.0                    # for which a server is looked for at the start, before that is reported
END_S = 5.0                     # for which the end of the program waits for jobs to go back
MIB = 1 << 20
NEAR = 0.7                      # the likeness from which on one name is suggested for another
LOOKED_AT_BYTES = 32 * MIB      # what a look at a job can take before it is counted: 8 MiB, in pieces, joined, cut out


class Program(click.Command):
    """A command that suggests similar options, compared without dashes: for `--bogus` it does not suggest `--user`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; raises click.UsageError."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-")
            near = [one for one in error.possibilities or () if get_close_matches(name, [one.lstrip("-")], cutoff=NEAR)]
            raise click.NoSuchOption(error.option_name, possibilities=near, ctx=ctx) from None


@click.command(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--listen", default="127.0.0.1:11300", show_default=True, metavar="HOST:PORT",
              help="Where clients of beanstalkd connect.")
@click.option("--servers", metavar="HOST:PORT,..", help="The cluster's servers.  [default: as for pqctl]")
@click.option("--ca", type=click.Path(dir_okay=False, exists=True), metavar="FILE",
              help="Speak TLS with the servers, whose certificates this CA has signed.")
@click.option("--user", metavar="NAME", help="The user on whose behalf all clients act.")
@click.option("--secret-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="The file with that user's secret.  [default: SOCKPQ_SECRET]")
@click.option("--job-bytes-max", type=click.IntRange(1, 1 << 30), default=BODY_BYTES_MAX, show_default=True,
              metavar="BYTES", help="The largest job that is accepted.")
@click.option("--connections-max", type=click.IntRange(1), default=10_000, show_default=True, metavar="N",
              help="How many clients are served at a time, half of them from one address that is not this machine.")
@click.option("--hello-timeout", type=click.IntRange(0), default=30, show_default=True, metavar="S",
              help="A client that has sent no command after this many seconds is cut off; 0: never.")
@click.option("--memory-max", type=click.IntRange(1), default=256, show_default=True, metavar="MIB",
              help="How much may be held for all clients. From three quarters of it on, put answers OUT_OF_MEMORY; "
                   "above it the clients for which most is held are cut off.")
@click.version_option(version("sockpqd"), prog_name="sockpq-beanstalkd")
def main(
    listen: str, servers: str | None, ca: str | None, user: str | None, secret_file: Path | None, job_bytes_max: int,
    connections_max: int, hello_timeout: int, memory_max: int,
) -> None:
    """beanstalkd's protocol for the clients of this machine, on a cluster of sockpqd.

    SIGUSR1 is drain mode, as in beanstalkd: no more jobs are accepted. SIGTERM and SIGINT end the program; the jobs its
    clients have reserved go back. It ends with exit code 1 when another cluster has taken the place of its own.
    """
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    logging.getLogger("sockpq").setLevel(logging.WARNING)
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535:        # a port alone would be one of all addresses
        raise click.UsageError("--listen needs HOST:PORT, or :PORT for all addresses of this machine")
    secret = os.environ.get("SOCKPQ_SECRET") if user is not None and secret_file is None else None
    if user is not None and not secret and secret_file is None:
        raise click.UsageError("--user needs --secret-file or SOCKPQ_SECRET")
    try:
        access = {"tls": ca, "user": user, "secret": secret, "secret_file": secret_file if user else None}
        limits = ListenerLimits(connections_max=connections_max, hello_timeout_s=hello_timeout)
        door = ProxyListener(limits, memory_max * MIB)
        uvloop.run(_serve(host.strip("[]"), int(port), servers, access, job_bytes_max, memory_max, door))
    except (OSError, SockpqError) as error:
        raise click.ClickException(str(error)) from error


async def _serve(
    host: str, port: int, servers: str | None, access: dict[str, Any], job_bytes_max: int, memory_max: int,
    door: ProxyListener,
) -> None:
    loop = asyncio.get_running_loop()
    stopping, draining = asyncio.Event(), asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, draining.set)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    foreign: list[ForeignCluster] = []

    def leave(error: ForeignCluster) -> None:
        foreign.append(error)
        stopping.set()

    async with Client(servers, **access) as client:
        cluster = SharedClient(client, leave, max(1, memory_max * MIB // LOOKED_AT_BYTES))
        server = BeanstalkdServer(secrets.token_hex(8), body_bytes_max=job_bytes_max, draining=draining.is_set)

        def connection() -> ClientConnection:
            return ClientConnection(server, ClientBackend(cluster, draining.is_set), door)

        try:
            port = await door.open(host, port, connection)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise click.ClickException(f"cannot listen on {host}:{port}: {reason}") from error
        log.info("listening on %s:%d", host, port)
        looking = asyncio.create_task(_look(client))
        await stopping.wait()
        looking.cancel()
        door.close()
        server.hang_up()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                while server.connections:           # until their jobs are back
                    await asyncio.sleep(0.01)
    if foreign:
        raise foreign[0]


async def _look(client: Client) -> None:
    """Report whether the cluster answers, as clients that connect before that wait without any message."""
    try:
        found = await client.cluster_id(timeout=LOOK_S)
    except Unavailable as error:
        log.warning("the cluster does not answer: clients wait until it does (%s)", error)
    except SockpqError as error:
        log.warning("the cluster refuses this program: clients get no answers but INTERNAL_ERROR (%s)", error)
    else:
        log.info("cluster %s answers", found.id)


if __name__ == "__main__":
    main()
