"""The cluster and the user of a client without arguments: the configuration that pqctl reads as well.

Each setting is taken from the first of these that has it: the environment (SOCKPQ_SERVERS, SOCKPQ_CA, SOCKPQ_USER, and
SOCKPQ_SECRET or SOCKPQ_SECRET_FILE), the user's file ~/.config/sockpq/config.toml, or, if there is none,
/etc/sockpq.toml. Without any the server is 127.0.0.1:11361.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from sockpq.errors import BadArguments

SYSTEM_FILE = Path("/etc/sockpq.toml")
DEFAULT_SERVER = "127.0.0.1:11361"
KINDS: dict[str, type] = {"servers": list, "tls": bool, "ca": str, "user": str, "secret_file": str}


class Configuration(NamedTuple):
    """The arguments of Client() that can be configured."""

    servers: list[str]
    tls: str | bool | None = None
    user: str | None = None
    secret: str | None = None
    secret_file: str | None = None

    def __repr__(self) -> str:
        return f"Configuration(servers={self.servers!r}, tls={self.tls!r}, user={self.user!r})"


def configuration() -> Configuration:
    """Read the configuration; raises BadArguments for an invalid file."""
    file, settings = _file()
    variable = os.environ.get("SOCKPQ_SERVERS", "").strip()
    servers: Any = [one.strip() for one in variable.split(",") if one.strip()]
    if not servers:
        servers = settings.get("servers") if file else [DEFAULT_SERVER]
    if not servers or not all(isinstance(server, str) for server in servers):
        raise BadArguments(f'{file}: needs servers = ["host:port", ..]')
    ca = os.environ.get("SOCKPQ_CA") or _beside(file, settings.get("ca"))
    wanted = bool(os.environ.get("SOCKPQ_CA")) or settings.get("tls", bool(ca))
    user = os.environ.get("SOCKPQ_USER") or settings.get("user")
    secret, secret_file = _secret(file, settings) if user else (None, None)
    return Configuration(servers, (ca or True) if wanted else None, user, secret, secret_file)


def user_file() -> Path:
    """Return the user's file by the XDG base directory specification: a relative directory is ignored."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(folder if os.path.isabs(folder) else os.path.expanduser("~/.config"), "sockpq", "config.toml")


def _secret(file: Path | None, settings: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the secret itself, or the file that contains it."""
    if secret := os.environ.get("SOCKPQ_SECRET"):
        return secret, None
    name = os.environ.get("SOCKPQ_SECRET_FILE") or _beside(file, settings.get("secret_file"))
    if name is None:
        raise BadArguments("the user that is configured needs a secret: SOCKPQ_SECRET_FILE or SOCKPQ_SECRET")
    return None, name


def _beside(file: Path | None, name: str | None) -> str | None:
    """Resolve a name in a file relative to that file's directory."""
    return str(file.parent / os.path.expanduser(name)) if file and name else None


def _file() -> tuple[Path | None, dict[str, Any]]:
    for file in (user_file(), SYSTEM_FILE):
        try:
            text = file.read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise BadArguments(f"cannot read {file}: {error}") from error
        return file, _parsed(file, text)
    return None, {}


def _parsed(file: Path, text: str) -> dict[str, Any]:
    import tomllib  # nobody waits for it while there is no such file

    try:
        settings = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadArguments(f"{file}: {error}") from error
    for key, value in settings.items():
        if key not in KINDS or not isinstance(value, KINDS[key]):
            raise BadArguments(f"{file}: {key} is not a setting, or has a value of another kind")
    return settings
