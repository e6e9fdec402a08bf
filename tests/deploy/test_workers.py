"""workers.yml: workers as services of a host, by the shipped role; what systemd and Ansible do to them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sockpq import Client

from tests.deploy.machine import Machine
from tests.deploy.service import ROOT, Service

if TYPE_CHECKING:
    from tests.deploy.installed import Installed

pytestmark = pytest.mark.timeout(1500)


PROGRAM = """#!/usr/bin/python3
import sys
sys.path.insert(0, "/opt/pqworker/lib")
from sockpq.worker.program.main import main
sys.exit(main())
"""
APP = """
import os, time
from sockpq.worker import App

app = App(tls="/opt/pqworker/ca.crt", user="worker", secret="{secret}")

@app.task("mail", name="send", expire=5)
def send(number, seconds=0):
    print("begun", number, os.environ["GREETING"], flush=True)
    time.sleep(seconds)
    print("sent", number, flush=True)
"""


class Workers(Service):
    """The service `pqworker@mail` on one host."""

    def __init__(self, cluster: Installed) -> None:
        super().__init__(cluster, "pqworker@mail")
        self.instance: dict[str, Any] = {
            "name": "mail",
            "options": {
                "app": "app:app", "servers": cluster.servers(), "concurrency": 2, "log-format": "text",
                "name": "mail-of-the-tests",
            },
        }

    def apply(self, **more: Any) -> int:
        """Run workers.yml; returns how many tasks changed something."""
        return self.play("workers", "pqworker", {
            "pqworker_instances": [{**self.instance, **more}],
            "pqworker_environment": {"GREETING": 'hello 100% "you"'},
        })

    def children(self) -> set[str]:
        """The processes that the worker has started."""
        pid = self.show("MainPID")
        return set(self.say(f"cat /proc/{pid}/task/{pid}/children").split())

    def processes(self) -> set[str]:
        """All processes of its user."""
        return set(self.say("find /proc -maxdepth 1 -user pqworker -printf %f\\\\n").split())


def install_app(machine: Machine, secret: str, ca: Path) -> None:
    """Install the app and the library in /opt/pqworker, as for a deployment."""
    folder = machine.root / "opt/pqworker"
    shutil.copytree(ROOT / "client/src/sockpq", folder / "lib/sockpq", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ca, folder / "ca.crt")
    (folder / "ca.crt").chmod(0o644)
    (folder / "bin").mkdir()
    (folder / "bin/pqworker").write_text(PROGRAM)
    (folder / "bin/pqworker").chmod(0o755)
    (folder / "app.py").write_text(APP.format(secret=secret))
    for place, name in (("man/man1", "pqworker.1"), ("bash-completion/completions", "pqworker.bash")):
        (folder / "share" / place).mkdir(parents=True)
        shutil.copy(ROOT / "client/manual" / name, folder / "share" / place / name.removesuffix(".bash"))


@pytest.fixture(scope="module")
def workers(cluster: Installed) -> Iterator[Workers]:
    made = Workers(cluster)
    install_app(cluster.machines[made.host], cluster.options["secret"], cluster.secrets / "ca.crt")
    assert made.apply() > 0
    yield made
    made.apply(state="stopped")


@pytest.fixture
def client(cluster: Installed) -> Iterator[Client]:
    with Client(cluster.servers(), **cluster.options) as client:
        yield client


def put(client: Client, number: int, seconds: float = 0) -> None:
    client.put("mail", json={"task": "send", "args": [number, seconds]})


def test_the_role_makes_a_worker_that_works_and_a_second_run_changes_nothing(workers: Workers, client: Client) -> None:
    put(client, 1)
    workers.until(lambda: "sent 1" in workers.log())
    assert 'begun 1 hello 100% "you"' in workers.log()
    assert workers.show("ActiveState") == "active"
    assert workers.show("User") == "pqworker"
    assert "mail-of-the-tests" in [one.name for one in client.workers()]
    assert workers.apply() == 0
    assert "pqworker.1" in workers.say("readlink -f /usr/local/share/man/man1/pqworker.1")
    assert "complete" in workers.say("cat /usr/local/share/bash-completion/completions/pqworker")
    modes = workers.say("stat --format %U:%G:%a /etc/pqworker/mail.toml /etc/pqworker/environment").split()
    assert modes == ["root:pqworker:640"] * 2


def test_reload_reads_the_configuration_again(workers: Workers) -> None:
    pid = workers.show("MainPID")
    workers.say("sed -i s/^.concurrency.*/concurrency=3/ /etc/pqworker/mail.toml")
    workers.say(f"systemctl reload {workers.unit}")
    workers.until(lambda: len(workers.children()) == 3)
    assert workers.show("MainPID") == pid
    assert "read /etc/pqworker/mail.toml again" in workers.log()
    assert workers.apply() > 0          # puts back what it says, and restarts
    assert workers.show("MainPID") != pid


def test_a_worker_that_is_killed_comes_back_with_new_children(workers: Workers, client: Client) -> None:
    pid = workers.show("MainPID")
    workers.until(lambda: len(workers.children()) == 2)
    children = workers.children()
    put(client, 2, 3)
    workers.until(lambda: "begun 2" in workers.log())
    workers.say(f"systemctl kill --kill-who=main -s KILL {workers.unit}")
    workers.until(lambda: workers.show("MainPID") not in ("0", pid))
    workers.until(lambda: "sent 2" in workers.log())        # its job came back
    assert not children & workers.processes()


def test_stop_finishes_what_runs(workers: Workers, client: Client) -> None:
    put(client, 3, 4)
    workers.until(lambda: "begun 3" in workers.log())
    assert workers.apply(state="stopped") > 0
    assert "sent 3" in workers.log()
    assert (workers.show("ActiveState"), workers.show("Result")) == ("inactive", "success")
    assert workers.processes() == set()
    assert client.running() == []
    assert workers.apply() > 0
    workers.until(lambda: workers.show("ActiveState") == "active")


def test_a_configuration_that_is_not_good_is_told_and_not_tried_again(workers: Workers) -> None:
    workers.say("echo nonsense=1 >> /etc/pqworker/mail.toml")
    workers.say(f"systemctl restart {workers.unit}")
    workers.until(lambda: workers.show("ActiveState") == "failed")
    assert "there is no option nonsense" in workers.log()
    assert (workers.show("ExecMainStatus"), workers.show("NRestarts")) == ("64", "0")
    workers.apply()
    workers.until(lambda: workers.show("ActiveState") == "active")
