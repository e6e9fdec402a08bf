"""The page on SQS: its settings are those of the program, and its files are read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from sockpq_sqs.auth import Users
from sockpq_sqs.door.figures import Figures
from sockpq_sqs.settings import Settings, read

from tests.kombu.celery_suite import SETTINGS, SQS
from tests.packaging.blocks import ROOT, blocks

PAGE = "docs/SQS.md"
TEXT = (ROOT / PAGE).read_text()
PYTHON = {block.first: block.text for block in blocks(PAGE) if block.language == "python"}
TOML = {block.first: block.text for block in blocks(PAGE) if block.language == "toml"}


def keys_of(settings: Struct) -> dict[str, Any]:
    """Each key with its section, and its default."""
    return {
        f"{section}.{key}": getattr(getattr(settings, section), key)
        for section in settings.__struct_fields__ for key in getattr(settings, section).__struct_fields__
    }


def shown(value: Any) -> str:
    """Return a default as the table has it."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int):
        return f"{value:,}"
    return f"`{value}`" if value else ""


def test_the_table_has_all_settings_with_their_defaults() -> None:
    table = TEXT.partition("## Settings")[2].partition("\n## ")[0]
    documented = {}
    for names, default in re.findall(r"^\| ((?:`[a-z_.]+`(?:, )?)+) \| (.*?) ?\| ", table, re.MULTILINE):
        for name in re.findall(r"`([^`]+)`", names):
            documented[name] = default
    assert documented == {key: shown(value) for key, value in keys_of(Settings()).items()}


def test_the_table_has_all_metrics() -> None:
    figures = Figures()
    figures.count("ListQueues", "OK", 0.1)
    figures.cut["has been idle"] += 1
    printed = set(re.findall(r"^# TYPE (sockpq_sqs_\w+) ", figures.page().decode(), re.MULTILINE))
    table = TEXT.partition("| metric | |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(sockpq_sqs_\w+)", table)) == printed


def test_the_accounts_are_settings() -> None:
    settings = read(tomllib.loads(TOML["[sqs.accounts]"]))
    assert settings.sqs.accounts == {"000000000000": "", "111122223333": "shop."}


def test_the_users_are_a_users_file(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    path.touch(0o600)
    path.write_text(TOML["# /etc/sockpq-sqs.users.toml"])
    assert Users(path)["shop"].account == "111122223333"


def test_the_settings_for_celery_are_those_of_its_own_tests() -> None:
    settings: dict[str, Any] = {}
    exec(PYTHON["# celeryconfig.py"], settings)
    assert settings["broker_transport_options"] == SETTINGS[SQS]["broker_transport_options"]
    assert settings["broker_url"].startswith(SQS)
    assert settings["broker_url"].endswith(Settings().http.listen)


@pytest.mark.parametrize("name", ["deploy/systemd/sockpq-sqs.service", "deploy/container/Containerfile.sqs"])
def test_files_that_it_names_are_there(name: str) -> None:
    assert f"`{name}`" in TEXT
    assert (ROOT / name).is_file()


def test_the_settings_of_the_unit_are_good() -> None:
    settings = read(tomllib.loads((ROOT / "deploy/systemd/sockpq-sqs.toml").read_text()))
    assert settings.http.listen == Settings().http.listen
