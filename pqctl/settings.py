"""Determines which cluster to use, and how to connect to it.

Each setting is taken from the first of these that has it: the option, the environment, the user's file or, if that does
not exist, the machine's file.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import click

from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.output.files import read_stream
from sockpqd.pqctl.output.stdio import say

VARIABLE = "SOCKPQ_SERVERS"
CA, USER, SECRET, SECRET_FILE = "SOCKPQ_CA", "SOCKPQ_USER", "SOCKPQ_SECRET", "SOCKPQ_SECRET_FILE"
SYSTEM_FILE = Path("/etc/sockpq.toml")
KINDS = {"servers": list, "tls": bool, "ca": str, "user": str, "secret_file": str}
SECRET_BYTES_MAX = 4096
DEFAULT_SERVER = "127.0.0.1:11361"      # the same as in sockpq.Client()


class Options(NamedTuple):
    """The options given on the command line; None if absent."""

    servers: str | None = None
    tls: bool | None = None
    ca: str | None = None
    user: str | None = None
    secret_file: str | None = None


class Given(NamedTuple):
    """Server addresses as written, and where they come from."""

    servers: list[str]
    origin: str


def find_servers(option: str | None) -> Given:
    """Return the servers; raises click.UsageError if the list is empty or a file is invalid.

    An empty environment variable counts as unset; an empty option is an error. An existing file is decisive even if it
    is invalid: silently using another cluster would be a surprise.
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


def find_access(options: Options) -> ClusterAccess:
    """Return the TLS setting and the credentials; raises click.UsageError."""
    file, settings = _file()
    if options.tls is False and options.ca is not None:
        raise click.UsageError("--no-tls and --ca exclude each other")
    ca = options.ca or _variable(CA) or _beside(file, settings.get("ca"))
    user = options.user if options.user is not None else _variable(USER) or settings.get("user")
    secret, secret_file = _secret(options, _beside(file, settings.get("secret_file")))
    if user is not None and secret is None:
        raise click.UsageError(f"user {user} needs a secret: give --secret-file FILE, or set {SECRET_FILE} or {SECRET}")
    if user is None and secret is not None:
        raise click.UsageError(f"whose secret is it? Give --user NAME or set {USER}")
    return ClusterAccess((ca or True) if _wants_tls(options, settings) else None, user, secret, secret_file)


def user_file() -> Path:
    """Return the path of the user's configuration (XDG base directories; a relative directory is ignored)."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(folder if os.path.isabs(folder) else os.path.expanduser("~/.config"), "sockpq", "config.toml")


def read_secret(name: str) -> str:
    """Read the secret from this file, without the line end; raises click.UsageError."""
    try:
        secret = read_stream(name, SECRET_BYTES_MAX).decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:          # its message contains part of the secret
        raise click.UsageError(f"the secret in {name} is not UTF-8") from None
    if not secret:
        raise click.UsageError(f"there is no secret in {name}")
    with suppress(OSError):             # "-", or deleted meanwhile
        mode = os.stat(name).st_mode
        if stat.S_ISREG(mode) and mode & stat.S_IROTH:
            say(f"warning: all users of this machine can read the secret in {name}: chmod 600 {name}")
    return secret


def _secret(options: Options, of_file: str | None) -> tuple[str | None, str | None]:
    """The secret, and the file that it was read from if that can be read again."""
    name = options.secret_file
    if name is None:
        if _variable(SECRET):
            return os.environ[SECRET], None
        name = _variable(SECRET_FILE) or of_file
    if name is None:
        return None, None
    return read_secret(name), name if os.path.isfile(name) else None


def _wants_tls(options: Options, settings: dict[str, Any]) -> bool:
    """Return whether to use TLS: naming a CA implies it; the first source that mentions either decides."""
    levels = ((options.tls, options.ca), (None, _variable(CA)), (settings.get("tls"), settings.get("ca")))
    for tls, ca in levels:
        if tls is not None or ca:
            return tls is not False
    return False


def _variable(name: str) -> str | None:
    value = os.environ.get(name, "").strip()
    return value or None


def _beside(file: Path | None, name: str | None) -> str | None:
    """Resolve a name in a configuration file relative to that file's directory."""
    return str(file.parent / os.path.expanduser(name)) if file and name else None


def _list(text: str, origin: str) -> Given:
    servers = [server.strip() for server in text.split(",") if server.strip()]
    if not servers:
        raise click.UsageError(f"{origin}: the list of servers is empty")
    return Given(servers, origin)


def _file() -> tuple[Path | None, dict[str, Any]]:
    """Return the configuration file in use and its settings; raises click.UsageError."""
    for file in (user_file(), SYSTEM_FILE):
        settings = _read(file)
        if settings is not None:
            return file, settings
    return None, {}


def _read(file: Path) -> dict[str, Any] | None:
    """Read the settings from this file, None if it does not exist; raises click.UsageError."""
    try:
        text = file.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"cannot read {file}: {error}") from error

    import tomllib  # only loaded if there is such a file

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
