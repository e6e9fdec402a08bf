"""Which cluster is meant: the first of `--servers`, SOCKPQ_SERVERS, the user's file and the machine's file counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import click

VARIABLE = "SOCKPQ_SERVERS"
SYSTEM_FILE = Path("/etc/sockpq.toml")
KEYS = {"servers"}


class Given(NamedTuple):
    """Server addresses as they were written, and where."""

    servers: list[str]
    origin: str


def find_servers(option: str | None) -> Given:
    """The servers; raises click.UsageError when there are none, or a file is not as it should be.

    An empty environment variable counts as none, an empty option is a mistake. A file that is there decides, even if
    it is not good: to go on with another cluster would be a surprise.
    """
    if option is not None:
        return _list(option, "--servers")
    if os.environ.get(VARIABLE, "").strip():
        return _list(os.environ[VARIABLE], VARIABLE)
    for file in (user_file(), SYSTEM_FILE):
        given = _read(file)
        if given is not None:
            return given
    raise click.UsageError(
        f"which cluster? Give --servers HOST:PORT,.. or set {VARIABLE} or write {user_file()} or {SYSTEM_FILE}"
    )


def user_file() -> Path:
    """The user's configuration, after the XDG base directory specification: what is not absolute is ignored."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(folder if os.path.isabs(folder) else os.path.expanduser("~/.config"), "sockpq", "config.toml")


def _list(text: str, origin: str) -> Given:
    servers = [server.strip() for server in text.split(",") if server.strip()]
    if not servers:
        raise click.UsageError(f"{origin}: the list of servers is empty")
    return Given(servers, origin)


def _read(file: Path) -> Given | None:
    """The servers of this file; None when it is not there."""
    try:
        text = file.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"cannot read {file}: {error}") from error

    import tomllib  # nobody waits for it while the servers are told otherwise

    try:
        settings = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise click.UsageError(f"{file}: {error}") from error
    unknown = sorted(settings.keys() - KEYS)
    if unknown:
        raise click.UsageError(f"{file}: unknown key {unknown[0]!r}")
    servers = settings.get("servers")
    if not isinstance(servers, list) or not servers or not all(isinstance(server, str) for server in servers):
        raise click.UsageError(f'{file}: needs servers = ["host:port", ..]')
    return Given(servers, str(file))
