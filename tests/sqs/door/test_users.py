"""The users file: its contents, its errors, and reading it again."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from sockpq_sqs.auth import Users
from sockpq_sqs.settings import SettingsError

GOOD = """\
[users.shop]
secret = "a-secret-of-the-shop"
account = "111122223333"
[users."AKIA:1"]
secret = "0123456789abcdef"
"""


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "users.toml"
    other = folder / "new"
    other.write_text(text)
    other.chmod(mode)
    other.replace(path)
    return path


def test_a_users_file(tmp_path: Path) -> None:
    users = Users(written(tmp_path, GOOD))
    assert list(users) == ["shop", "AKIA:1"]
    assert (users["shop"].secret, users["shop"].account) == ("a-secret-of-the-shop", "111122223333")
    assert users["AKIA:1"].account is None
    assert "secret" not in repr(users["shop"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[users.shop]\nsecret = 5\n", "users.shop: secret: expected str, got int"),
        ("[users.shop]\nsecret = \"0123456789abcdef\"\nrights = []\n", "users.shop: rights: unknown key"),
        ("[users.shop]\n", "users.shop: secret: this key is required"),
        ("[shop]\nsecret = \"0123456789abcdef\"\n", "shop: unknown key"),
        ("[users.\"a b\"]\nsecret = \"0123456789abcdef\"\n", "'a b' must be 1 to 64 of"),
        ("[users.shop]\nsecret = \"short\"\n", "users.shop.secret: must be 16 to 64 visible ASCII characters"),
        (f"[users.shop]\nsecret = \"{'x' * 65}\"\n", "users.shop.secret: must be 16 to 64"),
        ("[users.shop]\nsecret = \"0123456789 abcdef\"\n", "users.shop.secret: must be 16 to 64"),
        ("[users.shop]\nsecret = \"0123456789abcdef\"\naccount = \"1\"\n", "users.shop.account: '1' must be"),
        ("secret = \"0123456789abcdef", "users.toml: "),
    ],
)
def test_a_file_that_is_not_good_is_refused_without_its_secrets(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Users(written(tmp_path, text))
    assert reason in str(caught.value)
    assert "0123456789" not in str(caught.value)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    for mode in (0o640, 0o604, 0o620):
        with pytest.raises(SettingsError, match=f"mode {mode:04o}, so others could read the secrets: run chmod 0600"):
            Users(written(tmp_path, GOOD, mode))
    with pytest.raises(SettingsError, match="No such file"):
        Users(tmp_path / "none.toml")


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    users = Users(written(tmp_path, GOOD))
    assert not users.refresh()
    written(tmp_path, GOOD.replace("a-secret-of-the-shop", "the-new-secret-of-the-shop"))
    assert users.refresh()
    assert users["shop"].secret == "the-new-secret-of-the-shop"
    assert not users.refresh()


def test_a_file_that_has_become_bad_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, GOOD)
    users = Users(path)
    with caplog.at_level(logging.INFO, "sockpq-sqs"):
        for change in (lambda: written(tmp_path, "[users.shop]\nsecret = 5\n"), lambda: os.remove(path),
                       lambda: written(tmp_path, GOOD, 0o644)):
            change()
            assert not users.refresh()
            assert not users.refresh()          # and says so once
            assert users["shop"].secret == "a-secret-of-the-shop"
        written(tmp_path, GOOD)
        assert users.refresh()
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 3 + ["INFO"]
