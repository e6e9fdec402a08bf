"""The role and the playbooks as files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from sockpqd.gateway.config import FeedSection, GatewaySection, Log, QueueSection, Raft, ReplicaSection
from sockpqd.gateway.limits import Limits

ROOT = Path(__file__).parents[2]
ANSIBLE = ROOT / "deploy/ansible"
ROLE = ANSIBLE / "roles/sockpqd"
TYPES: dict[object, str] = {int: "int", str: "str", bool: "bool", str | None: "str"}


def load(path: Path) -> Any:
    import yaml  # comes with Ansible

    return yaml.safe_load(path.read_text())


@pytest.mark.usefixtures("ansible")
@pytest.mark.parametrize(
    ("variable", "section"),
    [
        ("sockpqd_queue", QueueSection), ("sockpqd_limits", Limits), ("sockpqd_raft", Raft),
        ("sockpqd_gateway", GatewaySection), ("sockpqd_log", Log), ("sockpqd_feed", FeedSection),
    ],
)
def test_every_key_of_the_configuration_is_a_variable(variable: str, section: type) -> None:
    options = load(ROLE / "meta/argument_specs.yml")["argument_specs"]["main"]["options"][variable]["options"]
    assert {key: option["type"] for key, option in options.items()} == {
        key: TYPES[kind] for key, kind in get_type_hints(section).items()
    }


@pytest.mark.usefixtures("ansible")
def test_every_key_of_a_copy_has_its_place_in_the_role() -> None:
    described = load(ROLE / "vars/main.yml")["sockpqd_replica_there"]
    assert [key for key in get_type_hints(ReplicaSection) if f"'{key}':" not in described] == []


@pytest.mark.usefixtures("ansible")
def test_every_variable_has_a_default_and_a_description() -> None:
    options = load(ROLE / "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert set(load(ROLE / "defaults/main.yml")) == set(options)
    assert all(option["description"] for option in options.values())


@pytest.mark.usefixtures("ansible")
def test_ansible_lint_finds_nothing() -> None:
    folder = Path(sys.executable).parent
    done = subprocess.run(
        [folder / "ansible-lint", "--offline", "--profile", "production", "--strict"], cwd=ANSIBLE, text=True,
        capture_output=True, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "NO_COLOR": "1"}, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
