"""The examples of docs/HTTP.md: each command is run as it stands, and its answer is that of the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq.testing import Server

from tests.http.door import Door
from tests.packaging.blocks import ROOT, blocks
from tests.waiting import PATIENCE_S

PAGE = "docs/HTTP.md"
HERE = "localhost:8080"

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("jq")), reason="there is no curl, or no jq",
)


@pytest.fixture
def fresh() -> Iterator[Door]:
    """An instance at a node of its own, where ids begin with 1."""
    with Server() as server, Door(server.address) as door:
        yield door


def steps() -> list[tuple[str, str]]:
    """Each command of the page with the answer that follows it."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks(PAGE):
        if not block.text.startswith("$ "):
            continue
        for line in block.text.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            elif found[-1][0].endswith("\\"):
                found[-1] = (f"{found[-1][0]}\n{line}", [])
            else:
                found[-1][1].append(line)
    return [(command, "\n".join(answer)) for command, answer in found]


def test_each_example_has_the_answer_that_the_page_shows(fresh: Door, tmp_path: Path) -> None:
    commands = steps()
    assert len(commands) > 15
    for command, expected in commands:
        line = command.replace(HERE, f"localhost:{fresh.port}")
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        done = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env={**environment, "HOME": str(tmp_path)}, capture_output=True,
            text=True, timeout=PATIENCE_S, check=False,
        )
        pattern = ".*".join(re.escape(part) for part in expected.split(".."))
        assert re.fullmatch(pattern, done.stdout.strip(), re.DOTALL), f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_page_names_the_programs_of_the_system_that_it_uses() -> None:
    used = {word for command, _ in steps() for word in re.findall(r"(?:^|[|] |\$\()(\w+) -", command)}
    assert used == {"curl", "jq"}
    (named,) = re.findall(r"`apt install ([\w ]+)`", (ROOT / PAGE).read_text("utf-8"))
    assert used <= set(named.split())
