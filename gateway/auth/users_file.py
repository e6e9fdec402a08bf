"""The users file: TOML, readable by its owner only, with a table [users.NAME] per user (CONFIGURATION.md).

Every error is a single sentence that names the key and the reason, and contains no secret.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from sockpqd.core import User
from sockpqd.gateway import rights
from sockpqd.gateway.auth import scrypt
from sockpqd.gateway.auth.scrypt import Scrypt
from sockpqd.gateway.config import Config, ConfigError
from sockpqd.gateway.protocol.arguments import ArgumentError, secret_key, user_name
from sockpqd.gateway.rights import Rights

_KEYS = ("rights", "scrypt", "key")


Proof = tuple[bytes | None, Scrypt | None]


class Account(Struct, frozen=True):
    """A user: their rights, and their proof of identity, either a `key` or the hash of a secret."""

    rights: Rights
    key: bytes | None
    scrypt: Scrypt | None = None

    @property
    def proof(self) -> Proof:
        """The proof of the user's identity: the key, and the hash of the secret."""
        return self.key, self.scrypt

    @staticmethod
    def of_log(user: User) -> Account:
        """Return the account of a user created by USER SET."""
        return Account(rights.of_log(user.rights), user.key)


def users_of(config: Config) -> dict[str, Account]:
    """Read the users file named in the configuration; empty if none is named. Raises ConfigError."""
    if config.auth.users_file is None:
        return {}
    users = _read(Path(config.auth.users_file))
    for index, legacy in enumerate(config.listen.legacy):
        if legacy.user not in users:
            raise ConfigError(f"listen.legacy[{index}].user: {legacy.user!r} is not in {config.auth.users_file}")
    listener = config.beanstalkd.user
    if config.listen.beanstalkd is not None and listener not in users:
        raise ConfigError(f"beanstalkd.user: {listener!r} is not in {config.auth.users_file}")
    return users


def _read(path: Path) -> dict[str, Account]:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                mode = stat.S_IMODE(status.st_mode)
                raise ConfigError(f"auth.users_file: {path} has mode {mode:04o}, so other users could read the "
                                  f"secrets: run chmod 0600 {path}")
            document = tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"auth.users_file: {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"auth.users_file: {path}: {error}") from None
    try:
        return _users(document)
    except ValueError as error:
        raise ConfigError(f"auth.users_file: {path}: {error}") from None


def _users(document: Mapping[str, Any]) -> dict[str, Account]:
    for key in document:
        if key != "users":
            raise ValueError(f"{key}: unknown key; users are written as [users.NAME]")
    tables = document.get("users", {})
    if not isinstance(tables, dict):
        raise ValueError("users: must be tables, [users.NAME]")
    return {name: _account(name, table) for name, table in tables.items()}


def _account(name: str, table: object) -> Account:
    where = f"users.{name}"
    try:
        user_name(name.encode())
    except ArgumentError:
        raise ValueError(f"users: {name!r} must be 1 to 64 of A-Z a-z 0-9 _ . : -") from None
    if not isinstance(table, dict):
        raise ValueError(f"{where}: must be a table, [{where}]")
    for key in table:
        if key not in _KEYS:
            raise ValueError(f"{where}.{key}: unknown key")
    words = table.get("rights")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f'{where}.rights: must be a list like ["put:mail*", "get"]')
    if ("scrypt" in table) == ("key" in table):
        raise ValueError(f"{where}: must have either scrypt or key")
    try:
        granted = rights.of_words(words)
    except ValueError as error:
        raise ValueError(f"{where}.rights: {error}") from None
    return Account(granted, *_proof(where, table))


def _proof(where: str, table: Mapping[str, object]) -> Proof:
    for key in ("key", "scrypt"):
        if key in table and not isinstance(table[key], str):
            raise ValueError(f"{where}.{key}: must be a string")
    if "key" in table:
        try:
            return secret_key(str(table["key"]).encode()), None
        except ArgumentError:
            raise ValueError(f"{where}.key: must be 32 to 128 hexadecimal digits, two for each byte") from None
    try:
        return None, scrypt.of_text(str(table["scrypt"]))
    except ValueError as error:
        raise ValueError(f"{where}.scrypt: {error}") from None
