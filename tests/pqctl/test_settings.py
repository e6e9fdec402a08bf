"""The sources of the servers' addresses, and their order."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from sockpqd.pqctl import settings
from sockpqd.pqctl.settings import Given, find_servers


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_the_first_that_is_there_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    user, system = settings.user_file(), settings.SYSTEM_FILE
    write(system, 'servers = ["system:1"]')
    assert find_servers(None) == Given(["system:1"], str(system))
    write(user, 'servers = ["user:1", "user:2"]')
    assert find_servers(None) == Given(["user:1", "user:2"], str(user))
    monkeypatch.setenv("SOCKPQ_SERVERS", "variable:1, variable:2,")
    assert find_servers(None) == Given(["variable:1", "variable:2"], "SOCKPQ_SERVERS")
    assert find_servers("option:1") == Given(["option:1"], "--servers")


def test_an_empty_variable_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    write(settings.SYSTEM_FILE, 'servers = ["system:1"]')
    monkeypatch.setenv("SOCKPQ_SERVERS", " ")
    assert find_servers(None).servers == ["system:1"]


@pytest.mark.parametrize("option", ["", ",", " , "])
def test_an_empty_option_is_a_mistake(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOCKPQ_SERVERS", "variable:1")
    with pytest.raises(click.UsageError, match="--servers: the list of servers is empty"):
        find_servers(option)


def test_without_any_the_server_is_on_this_machine() -> None:
    assert find_servers(None) == (["127.0.0.1:11361"], "the default")


def test_the_users_file_is_where_the_xdg_specification_puts_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    assert settings.user_file() == tmp_path / "elsewhere/sockpq/config.toml"
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_CONFIG_HOME", ignored)
        assert settings.user_file() == tmp_path / ".config/sockpq/config.toml"


def test_the_machines_file_is_in_etc() -> None:
    text = Path(settings.__file__).read_text()
    assert 'SYSTEM_FILE = Path("/etc/sockpq.toml")' in text     # the fixture has replaced the value


@pytest.mark.parametrize("text", [
    "servers = ", "", "server = ['a:1']", "servers = []", "servers = 'a:1'", "servers = [1]",
    "servers = ['a:1']\nretries = 3", "[servers]\na = 1", "\xff",
])
def test_a_file_that_is_not_good_is_an_error_and_not_passed_over(text: str) -> None:
    write(settings.SYSTEM_FILE, 'servers = ["system:1"]')
    settings.user_file().parent.mkdir(parents=True)
    settings.user_file().write_bytes(text.encode("latin-1"))
    with pytest.raises(click.UsageError) as error:
        find_servers(None)
    assert str(settings.user_file()) in str(error.value)


def test_a_setting_of_the_wrong_kind_is_an_error() -> None:
    for text in ("tls = 'yes'", "ca = true", "user = 1", "secret_file = []"):
        write(settings.SYSTEM_FILE, f"servers = ['a:1']\n{text}")
        with pytest.raises(click.UsageError, match=f"needs {text.split()[0]} = "):
            find_servers(None)


def test_a_file_that_cannot_be_read_is_an_error() -> None:
    os.makedirs(settings.user_file())               # a directory: also root cannot read it
    with pytest.raises(click.UsageError, match="cannot read"):
        find_servers(None)
