"""The command `sockpq-sqs`."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import uvloop
from sockpq import SockpqError, Unavailable
from sockpq.aio import Client

from sockpq_sqs._version import __version__
from sockpq_sqs.auth import Clients, Gate, OpenGate, Users, UsersGate, Verifier
from sockpq_sqs.door import Door
from sockpq_sqs.engine import Engine
from sockpq_sqs.service_manager import notify
from sockpq_sqs.settings import Settings, SettingsError, load

log = logging.getLogger("sockpq-sqs")

FILE = Path("/etc/sockpq-sqs.toml")
LOOK_S = 2.0                    # for which the cluster is looked for at the start, before that is reported
OTHER_FILES = 64                # descriptors besides those of clients


class BadSettings(click.ClickException):
    """The settings, or the files that they name, are invalid: the unit does not start the program again."""

    exit_code = 64              # EX_USAGE of sysexits(3), as of pqworker


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help=f"The settings.  [default: {FILE}, if it exists]")
@click.option("--listen", metavar="HOST:PORT", help="Where programs connect.  [default: 127.0.0.1:9324]")
@click.option("--servers", metavar="HOST:PORT,..", help="The cluster's servers.  [default: as for pqctl]")
@click.option("--users", metavar="FILE", help="The users who may sign requests; without it anybody may do anything.")
@click.option("--check-config", is_flag=True, help="Only check the settings and the files that they name.")
@click.version_option(__version__, prog_name="sockpq-sqs")
def main(config: Path | None, listen: str | None, servers: str | None, users: str | None, check_config: bool) -> None:
    """The protocol of Amazon SQS, on a cluster of sockpqd.

    Programs find it by AWS_ENDPOINT_URL_SQS=http://127.0.0.1:9324. SIGTERM and SIGINT end it: requests in progress are
    answered. Certificate and users are read again when their files change.
    """
    try:
        settings = _settings(config, {"http": {"listen": listen}, "cluster": {"servers": _words(servers)},
                                      "users": {"file": users}})
        program = Program(settings)
    except SettingsError as error:
        raise BadSettings(str(error)) from error
    if check_config:
        click.echo("the settings are good")
        return
    logging.basicConfig(
        format="%(levelname)s %(message)s", level=settings.log.level.upper(), stream=sys.stderr)
    logging.getLogger("sockpq").setLevel(logging.WARNING)
    _raise_descriptor_limit(settings.limits.connections_max)
    try:
        uvloop.run(program.run())
    except (OSError, SockpqError) as error:
        raise click.ClickException(str(error)) from error


class Program:
    """The program with these settings: a gate, the engine, and the door before both."""

    def __init__(self, settings: Settings) -> None:
        """Read the files that the settings name. Raises SettingsError."""
        self._settings = settings
        file = settings.users.file
        self._users = None if file is None else Users(Path(file))
        Door.check(settings)

    async def run(self, opened: Callable[[int], None] = lambda port: None) -> None:
        """Serve until SIGTERM or SIGINT. `opened` is called with the port. Raises OSError, SettingsError."""
        loop = asyncio.get_running_loop()
        ending = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ending.set)
        clients = Clients(self._settings.cluster)
        try:
            async with Engine(clients.own, self._settings.sqs) as engine:
                await self._serve(clients, engine, ending, opened)
        finally:
            await clients.close()

    async def _serve(
        self, clients: Clients, engine: Engine, ending: asyncio.Event, opened: Callable[[int], None],
    ) -> None:
        door = Door(self._settings, self._gate(clients), engine.handle, clients.own, lambda: self._refresh(clients))
        await door.open()
        opened(door.port)
        looking = asyncio.create_task(_look(clients.own))
        notify("READY=1")
        await ending.wait()
        notify("STOPPING=1")
        looking.cancel()
        await door.close()

    def _gate(self, clients: Clients) -> Gate:
        account = self._settings.sqs.account
        if self._users is None:
            return OpenGate(clients, account, self._settings.http.region)
        return UsersGate(
            self._users, clients, Verifier(self._users), account, in_cluster=self._settings.users.in_cluster)

    def _refresh(self, clients: Clients) -> None:
        if self._users is not None and self._users.refresh():
            clients.forget(self._users)


def _settings(config: Path | None, options: dict[str, dict[str, Any]]) -> Settings:
    """Read the settings, and override them with options of the command line. Raises SettingsError."""
    file = config if config is not None else (FILE if FILE.exists() else None)
    return load(file, os.environ, {
        section: {key: value for key, value in table.items() if value is not None} for section, table in options.items()
    })


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word for word in text.replace(",", " ").split() if word]


def _raise_descriptor_limit(connections_max: int) -> None:
    """Raise the soft limit, usually a leftover of select() (1024), to the hard one; warn if that is too little."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < connections_max + OTHER_FILES:
        log.warning("limits.connections_max is %d, and this process may open %d files: raise LimitNOFILE",
                    connections_max, hard)


async def _look(client: Client) -> None:
    """Report whether the cluster answers, as requests that come before that fail without any other message."""
    try:
        found = await client.cluster_id(timeout=LOOK_S)
    except Unavailable as error:
        log.warning("the cluster does not answer: requests fail with 503 until it does (%s)", error)
    except SockpqError as error:
        log.warning("the cluster refuses this program: %s", error)
    else:
        log.info("cluster %s answers", found.id)


if __name__ == "__main__":
    main()
