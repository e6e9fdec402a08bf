"""The users file: TOML, readable by its owner only, with a table [users.KEY] for each user; read again when it changes.

    [users.shop]
    secret = "6T1PzWgs0dAqKXbn0XQk5Jm2v8rYtLhE"
    account = "111122223333"            # optional

The access key is the name of a user in the cluster, and the secret is that user's key there, as text. No error message
contains a secret.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sockpq_sqs.reasons import sentence
from sockpq_sqs.settings import SettingsError, check_account

log = logging.getLogger("sockpq-sqs")

SECRET_BYTES_MIN, SECRET_BYTES_MAX = 16, 64         # what a cluster accepts as a key
OTHERS_MAY = stat.S_IRWXG | stat.S_IRWXO

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_VISIBLE = re.compile(r"[!-~]+")


class Account(Struct, frozen=True, forbid_unknown_fields=True):
    """A user of the file: the secret that signs, and the account whose queues a name without account means."""

    secret: str
    account: str | None = None

    def __repr__(self) -> str:
        return f"Account(account={self.account!r})"


class _File(Struct, forbid_unknown_fields=True):
    users: dict[str, dict[str, Any]] = {}


class Users(Mapping[str, Account]):
    """The users of a file, by their access keys, as of the last time that the file was valid."""

    def __init__(self, path: Path) -> None:
        """Read the file; raises SettingsError."""
        self._path = path
        self._found, self._seen = _read(path)

    def refresh(self) -> bool:
        """Read the file again if it has changed; returns whether users may have. An invalid file changes nothing."""
        try:
            seen = _state(os.stat(self._path))
        except OSError as error:
            seen = error.strerror
        if seen == self._seen:
            return False
        try:
            self._found, self._seen = _read(self._path)
        except SettingsError as error:
            self._seen = seen
            log.error("the users stay as they were: %s", error)
            return False
        log.info("%s has been read again: it has %d users", self._path, len(self._found))
        return True

    def __getitem__(self, key: str) -> Account:
        return self._found[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _read(path: Path) -> tuple[dict[str, Account], object]:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_mode & OTHERS_MAY:
                raise SettingsError(f"{path} has mode {stat.S_IMODE(status.st_mode):04o}, so others could read the "
                                    f"secrets: run chmod 0600 {path}")
            document = tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from None
    try:
        tables = msgspec.convert(document, _File).users
    except msgspec.ValidationError as error:
        raise SettingsError(f"{path}: {sentence(error)}") from None
    try:
        return {name: _account(name, table) for name, table in tables.items()}, _state(status)
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from None


def _account(name: str, table: dict[str, Any]) -> Account:
    """Return the user of a table; raises ValueError."""
    try:
        account = msgspec.convert(table, Account)
    except msgspec.ValidationError as error:
        raise ValueError(f"users.{name}: {sentence(error)}") from None
    if not _NAME.fullmatch(name):
        raise ValueError(f"users: {name!r} must be 1 to 64 of A-Z a-z 0-9 _ . : -")
    if not (SECRET_BYTES_MIN <= len(account.secret) <= SECRET_BYTES_MAX and _VISIBLE.fullmatch(account.secret)):
        raise ValueError(f"users.{name}.secret: must be {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} visible ASCII "
                         "characters, without spaces")
    if account.account is not None:
        check_account(f"users.{name}.account", account.account)
    return account


def _state(status: os.stat_result) -> object:
    return status.st_mtime_ns, status.st_ino, status.st_size, status.st_mode
