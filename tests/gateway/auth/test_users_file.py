"""The users file: what is read, and what is refused in which words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sockpqd.gateway import rights
from sockpqd.gateway.auth import scrypt
from sockpqd.gateway.auth.users_file import Account, users_of
from sockpqd.gateway.config import Config, ConfigError, read

HASH = "1024$8$1$c2FsdCBvZiAxNiBieXRl$MTIzNDU2Nzg5MDEyMzQ1Ng=="
KEY = "00112233445566778899aabbccddeeff"
DOCUMENT = Path(__file__).parents[3] / "docs" / "CONFIGURATION.md"


def config(users_file: Path | None, legacy: str | None = None) -> Config:
    """Return a configuration with this users file, and a port for the user `legacy`."""
    client, peer = "127.0.0.1:11361", "127.0.0.1:11362"
    ports = [] if legacy is None else [{"address": "127.0.0.1:11371", "user": legacy}]
    return read({
        "node": {"name": "n1", "data_dir": "data"}, "listen": {"client": client, "peer": peer, "legacy": ports},
        "auth": {} if users_file is None else {"users_file": str(users_file)},
        "cluster": {"members": [{"name": "n1", "client": client, "peer": peer}]},
    }, {})


def users(folder: Path, text: str, mode: int = 0o600, legacy: str | None = None) -> dict[str, Account]:
    """Return the users in a file with this content."""
    path = folder / "users.toml"
    path.write_text(text)
    path.chmod(mode)
    return users_of(config(path, legacy))


def test_users_are_read(tmp_path: Path) -> None:
    text = f'[users.op]\nrights = ["admin"]\nscrypt = "{HASH}"\n'
    text += f'[users."mail.2:x"]\nrights = ["put:mail*", "get"]\nkey = "{KEY}"\n'
    text += f'[users.none]\nrights = []\nkey = "{KEY * 4}"'
    assert users(tmp_path, text) == {
        "op": Account(rights.of_text("admin"), None, scrypt.of_text(HASH)),
        "mail.2:x": Account(rights.of_text("put:mail*,get"), bytes.fromhex(KEY)),
        "none": Account(rights.of_text("-"), bytes.fromhex(KEY * 4)),
    }


def test_no_users_and_no_file(tmp_path: Path) -> None:
    assert users(tmp_path, "") == {}
    with pytest.raises(ConfigError, match=r"users\.toml: No such file or directory$"):
        users_of(config(tmp_path / "no" / "users.toml"))
    assert users_of(config(None)) == {}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_file_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ConfigError, match=rf"has mode {mode:04o}, .*: run chmod 0600 .*users\.toml$"):
        users(tmp_path, "", mode)


def test_a_file_that_nobody_can_write_is_good(tmp_path: Path) -> None:
    assert users(tmp_path, "", 0o400) == {}


def test_legacy_users_must_be_in_the_file(tmp_path: Path) -> None:
    text = f'[users.old]\nrights = []\nkey = "{KEY}"'
    assert list(users(tmp_path, text, legacy="old")) == ["old"]
    with pytest.raises(ConfigError, match=r"^listen\.legacy\[0\]\.user: 'new' is not in .*users\.toml$"):
        users(tmp_path, text, legacy="new")


@pytest.mark.parametrize(("text", "sentence"), [
    ("[users.a]\nkey", "Expected"),
    ("\x80", "utf-8|Invalid"),
    ("[user.a]", "user: unknown key; users are written as"),
    ("users = 1", "users: must be tables"),
    ("[users]\na = 1", "users.a: must be a table"),
    ("[[users.a]]", "users.a: must be a table"),
    ('[users."a b"]', "users: 'a b' must be 1 to 64"),
    ('[users.""]', "users: '' must be 1 to 64"),
    (f"[users.{'a' * 65}]", "must be 1 to 64"),
    ("[users.a]\nkey = 'KEY'", "users.a.rights: must be a list"),
    ("[users.a]\nrights = 'put'\nkey = 'KEY'", "users.a.rights: must be a list"),
    ("[users.a]\nrights = [1]\nkey = 'KEY'", "users.a.rights: must be a list"),
    ("[users.a]\nrights = ['read']\nkey = 'KEY'", "users.a.rights: 'read' is not a right"),
    ("[users.a]\nrights = ['put,get']\nkey = 'KEY'", "users.a.rights: 'put,get' is not a right"),
    ("[users.a]\nrights = []", "users.a: must have either scrypt or key"),
    ("[users.a]\nrights = []\nkey = 'KEY'\nscrypt = 'HASH'", "users.a: must have either scrypt or key"),
    ("[users.a]\nrights = []\nkey = 'KEY'\nsecret = 'KEY'", "users.a.secret: unknown key"),
    ("[users.a]\nrights = []\nkey = 7", "users.a.key: must be a string"),
    ("[users.a]\nrights = []\nkey = 'KEY0'", "users.a.key: must be 32 to 128 hexadecimal digits"),
    ("[users.a]\nrights = []\nkey = 'xKEY'", "users.a.key: must be 32 to 128 hexadecimal digits"),
    ("[users.a]\nrights = []\nkey = 'KEYé'", "users.a.key: must be 32 to 128 hexadecimal digits"),
    ("[users.a]\nrights = []\nkey = ''", "users.a.key: must be 32 to 128 hexadecimal digits"),
    ("[users.a]\nrights = []\nscrypt = 1", "users.a.scrypt: must be a string"),
    ("[users.a]\nrights = []\nscrypt = 'HASH$'", "users.a.scrypt: is not what sockpqd --hash-secret prints"),
    ("[users.a]\nrights = []\nscrypt = '3HASH'", "users.a.scrypt: n must be a power of two"),
])
def test_what_is_wrong_is_named_and_no_secret_shown(tmp_path: Path, text: str, sentence: str) -> None:
    text = text.replace("KEY", KEY).replace("HASH", HASH)
    with pytest.raises(ConfigError, match=f"^auth.users_file: .*users.toml: .*{sentence}") as raised:
        users(tmp_path, text)
    for secret in (KEY, HASH, HASH[-20:]):
        assert secret not in str(raised.value)


def test_the_file_in_the_documentation_is_good(tmp_path: Path) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    (text,) = [block for block in blocks if "[users." in block]
    assert users(tmp_path, text)["mailer"].key == b"secret-of-the-mailer"
