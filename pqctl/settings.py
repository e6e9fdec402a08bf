"""Which cluster is meant, and how it is talked to.

For each setting the first of these that tells it counts: the option, the environment, the user's file or, when there is
none, the machine's file.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import click

from pqctl.access import Access
from pqctl.output.files import read_stream
from pqctl.output.stdio import say

VARIABLE = "SOCKPQ_SERVERS"
CA, USER, SECRET, SECRET_FILE = "SOCKPQ_CA", "SOCKPQ_USER", "SOCKPQ_SECRET", "SOCKPQ_SECRET_FILE"
SYSTEM_FILE = Path("/etc/sockpq.toml")
KINDS = {"servers": list, "tls": bool, "ca": str, "user": str, "secret_file": str}
SECRET_BYTES_MAX = 4096
DEFAULT_SERVER = "127.0.0.1:11361"      # as sockpq.Client() has it


class Options(NamedTuple):
    """What stands on the command line; None: nothing."""

    servers: str | None = None
    tls: bool | None = None
    ca: str | None = None
    user: str | None = None
    secret_file: str | None = None


class Given(NamedTuple):
    """Server addresses as they were written, and where."""

    servers: list[str]
    origin: str


def find_servers(option: str | None) -> Given:
    """The servers; raises click.UsageError when the list is empty, or a file is not as it should be.

    An empty environment variable counts as none, an empty option is a mistake. A file that is there decides, even if
    it is not good: to go on with another cluster would be a surprise.
    """
    if option is not None:
        return _list(option, "--servers")
    if _variable(VARIABLE):
        return _list(os.environ[VARIABLE], VARIABLE)
    file, settings = _file()
    if file is None:
        return Given([DEFAULT_SERVER], "the default")
    servers = settings.get("servers")
    if not servers or not all(isinstance(server, str) for server in servers):
        raise click.UsageError(f'{file}: needs servers = ["host:port", ..]')
    return Given(servers, str(file))


def find_access(options: Options) -> Access:
    """TLS and the user; raises click.UsageError."""
    file, settings = _file()
    if options.tls is False and options.ca is not None:
        raise click.UsageError("--no-tls and --ca: one of them is meant")
    ca = options.ca or _variable(CA) or _beside(file, settings.get("ca"))
    user = options.user if options.user is not None else _variable(USER) or settings.get("user")
    secret = _secret(options, _beside(file, settings.get("secret_file")))
    if user is not None and secret is None:
        raise click.UsageError(f"user {user} has a secret: give --secret-file FILE, or set {SECRET_FILE} or {SECRET}")
    if user is None and secret is not None:
        raise click.UsageError(f"whose secret is it? Give --user NAME or set {USER}")
    return Access((ca or True) if _wants_tls(options, settings) else None, user, secret)


def user_file() -> Path:
    """The user's configuration, after the XDG base directory specification: what is not absolute is ignored."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(folder if os.path.isabs(folder) else os.path.expanduser("~/.config"), "sockpq", "config.toml")


def read_secret(name: str) -> str:
    """The secret in this file, without the end of its line; raises click.UsageError."""
    try:
        secret = read_stream(name, SECRET_BYTES_MAX).decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:          # it tells a part of the secret
        raise click.UsageError(f"the secret in {name} is not UTF-8") from None
    if not secret:
        raise click.UsageError(f"there is no secret in {name}")
    with suppress(OSError):             # "-", or gone since
        mode = os.stat(name).st_mode
        if stat.S_ISREG(mode) and mode & stat.S_IROTH:
            say(f"warning: everybody on this machine can read the secret in {name}: chmod 600 {name}")
    return secret


def _secret(options: Options, of_file: str | None) -> str | None:
    if options.secret_file is not None:
        return read_secret(options.secret_file)
    if _variable(SECRET):
        return os.environ[SECRET]
    name = _variable(SECRET_FILE) or of_file
    return None if name is None else read_secret(name)


def _wants_tls(options: Options, settings: dict[str, Any]) -> bool:
    """Who names a CA wants TLS; of two places that speak of it the one that goes first decides."""
    levels = ((options.tls, options.ca), (None, _variable(CA)), (settings.get("tls"), settings.get("ca")))
    for tls, ca in levels:
        if tls is not None or ca:
            return tls is not False
    return False


def _variable(name: str) -> str | None:
    value = os.environ.get(name, "").strip()
    return value or None


def _beside(file: Path | None, name: str | None) -> str | None:
    """A name in a configuration file is relative to that file's directory."""
    return str(file.parent / os.path.expanduser(name)) if file and name else None


def _list(text: str, origin: str) -> Given:
    servers = [server.strip() for server in text.split(",") if server.strip()]
    if not servers:
        raise click.UsageError(f"{origin}: the list of servers is empty")
    return Given(servers, origin)


def _file() -> tuple[Path | None, dict[str, Any]]:
    """The file that counts, and its settings; raises click.UsageError."""
    for file in (user_file(), SYSTEM_FILE):
        settings = _read(file)
        if settings is not None:
            return file, settings
    return None, {}


def _read(file: Path) -> dict[str, Any] | None:
    """The settings in this file; None when it is not there."""
    try:
        text = file.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"cannot read {file}: {error}") from error

    import tomllib  # nobody waits for it while there is no such file

    try:
        settings = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise click.UsageError(f"{file}: {error}") from error
    for key, value in settings.items():
        if key not in KINDS:
            raise click.UsageError(f"{file}: unknown key {key!r}")
        if not isinstance(value, KINDS[key]):
            example = {list: '["host:port", ..]', bool: "true or false", str: '".."'}[KINDS[key]]
            raise click.UsageError(f"{file}: needs {key} = {example}")
    return settings
