"""Files that operators write, and what they mean: the configuration, the users file, and the settings of pqctl.

    python -m tests.upgrade.settings level1     records data/settings/level1.json from the three files of that name

The files were written by hand: all keys are in them, with other values than the defaults where that is possible.
Recorded again only until the release.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from sockpqd.gateway.auth.users_file import Account, users_of
from sockpqd.gateway.config import Config, load
from sockpqd.gateway.rights import KINDS
from sockpqd.pqctl.settings import Options, find_access, find_servers

SETTINGS = Path(__file__).parent / "data" / "settings"
SECRET = "a secret"


def meaning(name: str) -> dict[str, Any]:
    """Return the meaning of the files of this name, as values of JSON."""
    with tempfile.TemporaryDirectory() as folder:
        return _meaning(name, Path(folder))


def _meaning(name: str, folder: Path) -> dict[str, Any]:
    users_file, secret_file = folder / "users.toml", folder / "sockpq" / "secret"
    shutil.copy(SETTINGS / f"{name}.users.toml", users_file)
    users_file.chmod(0o600)                 # git does not keep the mode
    config = load(SETTINGS / f"{name}.toml", {"SOCKPQD_AUTH_USERS_FILE": str(users_file)})
    secret_file.parent.mkdir()
    secret_file.write_text(SECRET, "utf-8")
    secret_file.chmod(0o600)
    shutil.copy(SETTINGS / f"{name}.pqctl.toml", secret_file.with_name("config.toml"))
    with mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": str(folder)}, clear=True):
        servers, access = find_servers(None).servers, find_access(Options())
    return {
        "configuration": _without_folder(config, folder),
        "users": {user: _account(account) for user, account in users_of(config).items()},
        "pqctl": {
            "servers": servers, "tls": _within(access.tls, folder), "user": access.user, "secret": access.secret,
            "secret_file": _within(access.secret_file, folder),
        },
    }


def _account(account: Account) -> dict[str, Any]:
    return {
        "rights": {kind: list(getattr(account.rights, kind)) for kind in KINDS},
        "key": None if account.key is None else account.key.hex(),
        "scrypt": msgspec.to_builtins(account.scrypt),
    }


def _without_folder(config: Config, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(config)
    found["auth"]["users_file"] = _within(found["auth"]["users_file"], folder)
    return found


def _within(path: object, folder: Path) -> object:
    return path.replace(f"{folder}/", "") if isinstance(path, str) else path


if __name__ == "__main__":
    (SETTINGS / f"{sys.argv[1]}.json").write_text(json.dumps(meaning(sys.argv[1]), indent=1) + "\n", "utf-8")
