"""The command `sockpq-http push CONFIG.toml`."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path

import click
import uvloop
from sockpq import BadArguments, ForeignCluster, SockpqError
from sockpq.aio import Client

from sockpq_http.push.configuration import Config, ConfigError, load, split_address
from sockpq_http.push.listener import Listener
from sockpq_http.push.pusher import Pusher
from sockpq_http.push.signing import SecretError

LOG = logging.getLogger("sockpq-http")

MISUSED = 64        # as pqctl


@click.command()
@click.argument("config", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--check", is_flag=True, help="Only say whether the configuration is good.")
def push(config: Path, check: bool) -> None:
    """Take jobs from queues and POST them to the targets of CONFIG.

    SIGTERM and SIGINT: take no more jobs, finish requests in flight, end; a second one cuts them off, and their jobs go
    back. Exit code 64: the configuration cannot be used. docs/PUSH.md describes it.
    """
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    logging.getLogger("sockpq").setLevel(logging.WARNING)
    try:
        read = load(config)
        if check:
            for name, target in read.targets.items():
                click.echo(f"{name}: {', '.join(target.queues)} to {target.host}")
            return
        uvloop.run(_run(read))
    except (ConfigError, SecretError, BadArguments) as error:
        click.echo(f"sockpq-http: {error}", err=True)
        sys.exit(MISUSED)
    except ForeignCluster as error:
        raise click.ClickException(f"{error}; start the program again to work for the other cluster") from error
    except (OSError, SockpqError) as error:
        raise click.ClickException(str(error)) from error


async def _run(config: Config) -> None:
    """Deliver until a signal ends it."""
    cluster = config.cluster
    loop = asyncio.get_running_loop()
    async with Client(
        cluster.servers, tls=cluster.ca_file, user=cluster.user, secret_file=cluster.secret_file,
    ) as client:
        pusher = Pusher(config, client)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, pusher.stop)
        listener = Listener(lambda: pusher.ready, pusher.metrics)
        try:
            if config.push.listen is not None:
                await listener.start(*split_address(config.push.listen, "push.listen"))
                LOG.info("metrics at http://%s:%d/metrics", *listener.place)
            for name, target in config.targets.items():
                LOG.info("target %s: jobs of %s to %s", name, ", ".join(target.queues), target.host)
            await pusher.run()
            LOG.info("ended")
        finally:
            listener.close()


if __name__ == "__main__":
    push()
