"""The units and the container files, as far as they can be checked without a service manager and a registry."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sockpqd.gateway import rights
from sockpqd.gateway.config import Config, read

ROOT = Path(__file__).parents[2]
SYSTEMD, CONTAINER = ROOT / "deploy" / "systemd", ROOT / "deploy" / "container"
INSTRUCTIONS = {"FROM", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT"}
ENGINE = shutil.which("podman") or shutil.which("docker")
IMAGE = "docker.io/library/python:3.11-slim-bookworm"


def services() -> dict[str, Any]:
    document = yaml.safe_load((CONTAINER / "compose.yaml").read_text())
    assert isinstance(document["services"], dict)
    return document["services"]


def test_the_default_configuration_is_good() -> None:
    config = read(tomllib.loads((SYSTEMD / "sockpqd.toml").read_text()), {})
    assert config.node.data_dir == "/var/lib/sockpqd"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize(
    ("name", "program", "instance"), [
        ("sockpqd.service", "/opt/sockpqd/bin/sockpqd", "sockpqd.service"),
        ("sockpqd@.service", "/opt/sockpqd/bin/sockpqd", "sockpqd@a.service"),
        ("pqworker@.service", "/opt/pqworker/bin/pqworker", "pqworker@mail.service"),
        ("sockpq-http.service", "/opt/sockpq-http/bin/sockpq-http", "sockpq-http.service"),
        ("sockpq-sqs.service", "/opt/sockpq-sqs/bin/sockpq-sqs", "sockpq-sqs.service"),
        ("sockpq-http-push@.service", "/opt/sockpq-http/bin/sockpq-http", "sockpq-http-push@shop.service"),
    ],
)
def test_systemd_understands_the_units(name: str, program: str, instance: str, tmp_path: Path) -> None:
    text = (SYSTEMD / name).read_text()
    assert program in text
    unit = tmp_path / instance
    unit.write_text(text.replace(program, "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if instance in line] == []


def test_the_unit_for_several_clusters_differs_by_its_instance_only() -> None:
    one, several = ((SYSTEMD / name).read_text() for name in ("sockpqd.service", "sockpqd@.service"))
    own = several.replace("-%i", "").replace(" of the cluster %i of ", " of ")
    own = own.replace(" --config /etc/sockpqd/%i.toml", "")
    assert [line for line in own.splitlines() if not line.startswith("#")] == [
        line for line in one.splitlines() if not line.startswith("#")]


def test_the_unit_allows_the_system_calls_that_a_node_makes_itself() -> None:
    """Those of Python are in systemd's set for services; without mincore an installed node could not be restarted."""
    sources = [path.read_text() for folder in ("cluster", "gateway") for path in (ROOT / folder).rglob("*.py")]
    made = {call for source in sources for call in re.findall(r"\b_libc\.(\w+)\(", source)}
    made |= {"setpriority" for source in sources if "os.nice(" in source}
    allowed = re.findall(r"^SystemCallFilter=([a-z_ ]+)$", (SYSTEMD / "sockpqd.service").read_text(), re.MULTILINE)
    assert {"mincore"} <= made == set(" ".join(allowed).split())


def test_no_variable_of_a_playbook_changes_with_the_time() -> None:
    """A variable is computed each time it is looked at: a name with the time in it was another one for each task."""
    playbooks = [path for path in (ROOT / "deploy" / "ansible").rglob("*.yml") if "now(" in path.read_text()]
    assert playbooks
    for path in playbooks:
        for task in _tasks(yaml.safe_load(path.read_text())):
            assert "now(" not in str(task.get("vars", "")), path
            if "now(" in str({key: value for key, value in task.items() if key not in ("block", "always")}):
                assert "ansible.builtin.set_fact" in task, path


def _tasks(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in items:
        yield item
        for part in ("tasks", "block", "always", "rescue"):
            yield from _tasks(item.get(part, []))


@pytest.mark.parametrize(("unit", "role"), [
    ("sockpqd", "sockpqd"), ("sockpq-http", "sockpq_http"), ("sockpq-sqs", "sockpq_sqs"),
])
def test_the_unit_is_that_of_the_role(unit: str, role: str) -> None:
    def settings(text: str) -> set[str]:
        names = "Restart|Protect|Private|Restrict|SystemCall|Capability|No|Kill|Lock"
        return set(re.findall(rf"^((?:{names})\w*=.*)$", text, re.MULTILINE))

    template = ROOT / "deploy" / "ansible" / "roles" / role / "templates" / f"{unit}.service.j2"
    assert settings((SYSTEMD / f"{unit}.service").read_text()) == settings(template.read_text())


@pytest.mark.parametrize("name", ["n1", "n2", "n3"])
def test_each_container_gets_a_good_configuration_and_publishes_to_this_machine_only(name: str) -> None:
    service = services()[name]
    config: Config = read(tomllib.loads((CONTAINER / "sockpqd.toml").read_text()), service["environment"])
    assert config.node.name == name
    member = next(member for member in config.cluster.members if member.name == name)
    port = config.listen.client.rpartition(":")[2]
    assert member.client == f"127.0.0.1:{port}"
    assert f"127.0.0.1:{port}:{port}" in service["ports"]
    assert all(published.startswith("127.0.0.1:") for published in service["ports"])
    assert f"{name}:{config.node.data_dir}" in service["volumes"]
    assert "./sockpqd.toml:/etc/sockpqd.toml:ro" in service["volumes"]
    assert (CONTAINER / service["build"]["context"]).resolve() == ROOT


@pytest.mark.parametrize(
    ("name", "user"),
    [("Containerfile", "sockpqd"), ("Containerfile.http", "sockpq-http"), ("Containerfile.sqs", "sockpq-sqs")],
)
def test_the_containerfile_has_known_instructions_and_no_root(name: str, user: str) -> None:
    text = (CONTAINER / name).read_text().replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    assert {line[0] for line in lines} <= INSTRUCTIONS
    assert [line[1] for line in lines if line[0] == "USER"] == [user]
    assert {line[1] for line in lines if line[0] == "FROM"} == {IMAGE}


@pytest.mark.skipif(
    ENGINE is None or os.environ.get("SOCKPQD_TEST_CONTAINERS") != "1",
    reason="needs podman or docker, a registry, and SOCKPQD_TEST_CONTAINERS=1",
)
def test_the_image_is_built_and_knows_its_version() -> None:
    assert ENGINE is not None
    build = [ENGINE, "build", "-q", "-f", str(CONTAINER / "Containerfile"), "-t", "sockpqd-test", "."]
    subprocess.run(build, cwd=ROOT, check=True)
    run = [ENGINE, "run", "--rm", "sockpqd-test", "--version"]
    told = subprocess.run(run, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("sockpqd, version ")


def test_the_role_knows_the_rights_that_nodes_know() -> None:
    tasks = yaml.safe_load((ROOT / "deploy/ansible/roles/sockpqd/tasks/check.yml").read_text())
    (users,) = [task for task in tasks if task["name"] == "Users are good"]
    assert users["vars"]["right"] == f"^{rights._RIGHT.pattern}$"
    assert ", ".join(rights.OF_QUEUES[:3]) in users["ansible.builtin.assert"]["fail_msg"]
    for kind in rights.KINDS:
        assert kind in users["ansible.builtin.assert"]["fail_msg"]


def test_a_yes_or_no_of_the_command_line_is_one() -> None:
    """`-e sockpqd_restore_over=true` is text, which Ansible refuses as a condition; in a template "false" is true."""
    for role in sorted((ROOT / "deploy" / "ansible" / "roles").iterdir()):
        entries = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"].values()
        names = {name for entry in entries for name, option in entry.get("options", {}).items()
                 if option.get("type") == "bool"}
        for path in (path for folder in ("tasks", "templates") for path in (role / folder).rglob("*.*")):
            for line in path.read_text().splitlines():
                if re.match(r"\s*(when|that): ", line) or re.search(r"{[{%].*\bif ", line):
                    for name in names:
                        assert not re.search(rf"\b{name}\b(?! \| bool)", line), f"{path.name}: {line.strip()}"
