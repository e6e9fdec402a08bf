"""Every block of docs/WORKERS.md as a newcomer types it. How it is installed: tests/packaging/test_blocks.py."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from sockpq import Client
from sockpq.testing import Server
from sockpq.worker.program.options import KEYS, read_config

from tests.waiting import PATIENCE_S, until
from tests.worker.program.running import children_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/WORKERS.md").read_text()
# ImageMagick's, as far as the page uses it.
CONVERT = '#!/bin/sh\ntest "$1" = - && cat > "$2"\n'


def blocks(kind: str) -> list[str]:
    """Return the blocks of the page of this kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


class Terminal:
    """A folder with the app of the page, in which commands are typed."""

    def __init__(self, folder: Path, servers: str) -> None:
        (folder / "app.py").write_text("\n".join(blocks("python")))
        (folder / "bin").mkdir()
        (folder / "bin/convert").write_text(CONVERT)
        (folder / "bin/convert").chmod(0o755)
        (folder / "out").mkdir()
        self.folder = folder
        path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = {**os.environ, "PATH": path, "SOCKPQ_SERVERS": servers}

    def type(self, line: str) -> str:
        """Run a command to its end; returns its output."""
        done = subprocess.run(
            line, shell=True, cwd=self.folder, env=self._environment, capture_output=True, text=True,
            timeout=PATIENCE_S, check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def worker(self, line: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start a pqworker, and end it by TERM."""
        with (self.folder / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                shlex.split(line, comments=True), cwd=self.folder, env=self._environment, stdout=log, stderr=log
            )
        try:
            until(lambda: bool(children_of(process.pid)))
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            process.wait()

    @property
    def log(self) -> str:
        """Return what workers and their tasks have printed."""
        return (self.folder / "worker.log").read_text()


@pytest.fixture
def terminal(one_server: Server, client: Client, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path, one_server.address)


def test_the_first_steps_and_the_other_tasks_of_the_page(terminal: Terminal, client: Client) -> None:
    start, *others = blocks("bash")[1].splitlines()
    with terminal.worker(start) as process:
        until(lambda: len(children_of(process.pid)) == 4)
        assert [terminal.type(line) for line in others] == ["", "2\n"]
        until(lambda: terminal.log.count("sending hi to ann") == 2)
        client.put("orders", b"17")
        until(lambda: client.total("invoices").jobs == 1)
        until(lambda: client.queue_stat("cron")["delayed"] == 1)
        assert "app.nightly" in terminal.type("pqctl cron list")
        terminal.type("python -c 'from app import nightly; nightly.put()'")      # as if it was due
        until(lambda: "cleaning up for" in terminal.log)
        until(lambda: client.total("cron").running == 0)
        assert [queue.name for queue in client.queues() if queue.dead or queue.name.endswith("_dead")] == []


def test_the_slices_of_the_page(terminal: Terminal, client: Client) -> None:
    client.put("reports", json=[1, 2], group="anna")
    with terminal.worker("pqworker app:app -c 1"):
        until(lambda: client.total("reports").jobs == 0 and not client.running())
        until(lambda: "page 2 of anna" in terminal.log)
    assert client.sched_group("anna").used_us < 1_000_000


def test_a_program_for_each_job(terminal: Terminal, client: Client) -> None:
    (line,) = blocks("bash")[2].splitlines()
    client.put("thumbs", b"a picture", key="cat")
    with terminal.worker(line):
        until((terminal.folder / "out/cat.png").exists)
        until(lambda: client.total("thumbs").jobs == 0 and not client.running())
    assert (terminal.folder / "out/cat.png").read_bytes() == b"a picture"


def test_the_configuration_and_the_commands_of_an_operator(
    terminal: Terminal, client: Client, one_server: Server
) -> None:
    (text,) = blocks("toml")
    (terminal.folder / "mail.toml").write_text(re.sub('servers = ".*"', f'servers = "{one_server.address}"', text))
    with terminal.worker("pqworker --config mail.toml") as process:
        until(lambda: len(children_of(process.pid)) == 3)
        until(lambda: bool(client.workers()))
        listed, wider, pause = blocks("bash")[3].splitlines()
        assert "mail-1" in terminal.type(listed)
        terminal.type(wider)
        until(lambda: len(children_of(process.pid)) == 5)
        terminal.type(pause)
        until(lambda: "an operator says pause" in terminal.log)


def test_the_inventory_has_variables_of_the_role_and_options_of_the_program(tmp_path: Path) -> None:
    (text,) = blocks("yaml")
    variables: dict[str, Any] = yaml.safe_load(text)
    role = ROOT / "deploy/ansible/roles/pqworker"
    known = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    assert variables.keys() <= known.keys()
    for instance in variables["pqworker_instances"]:
        assert instance.keys() <= known["pqworker_instances"]["options"].keys()
        assert instance["options"].keys() <= KEYS.keys()
        file = tmp_path / "worker.toml"
        file.write_text("".join(f'{key} = "{value}"\n' for key, value in instance["options"].items()))
        assert read_config(str(file))["autoscale"] == (10, 3)


def test_every_block_is_one_of_these() -> None:
    kinds = re.findall(r"^```(\w+)$", PAGE, re.MULTILINE)
    assert sorted(kinds) == ["bash"] * 5 + ["python"] * 7 + ["toml", "yaml"]
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"^    \S", prose, re.MULTILINE)       # nor is there one without a fence
