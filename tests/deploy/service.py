"""A service that a playbook makes on one host, and programs installed as for a deployment."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.deploy.machine import Machine

if TYPE_CHECKING:
    from tests.deploy.installed import Installed

ROOT = Path(__file__).parents[2]
WAIT_S = 60.0
INSTALL_S = 1200

PROGRAM = """#!/usr/bin/python3
import sys
sys.path.insert(0, "/opt/sockpq-{name}/lib")
from sockpq_{name}.main import main
sys.exit(main())
"""


class Service:
    """A unit of systemd on the first host of the cluster, and the inventory of its playbook."""

    def __init__(self, cluster: Installed, unit: str) -> None:
        self.cluster = cluster
        self.unit = unit
        self.host = cluster.names[0]
        self.machine = cluster.machines[self.host]

    def play(self, name: str, group: str, variables: dict[str, Any]) -> int:
        """Run a playbook with these variables of a group that has this host; returns how many tasks changed something.
        """
        import yaml  # comes with Ansible

        path = self.cluster.inventory / f"{name}.yml"
        path.write_text(yaml.safe_dump({group: {"hosts": {self.host: {}}, "vars": variables}}))
        return self.cluster.playbook(f"{name}.yml").changed

    def show(self, name: str) -> str:
        """Return a property of the unit."""
        return self.say(f"systemctl show {self.unit} --property {name} --value").strip()

    def log(self) -> str:
        """Return what the unit has printed."""
        return self.say(f"journalctl -u {self.unit} --no-pager -o cat")

    def say(self, command: str) -> str:
        """Run a command on the host; return its output."""
        return self.cluster.ssh(self.host, command, check=False)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition; fails with the log."""
        end = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < end, self.log()[-3000:] + self.say(f"systemctl status {self.unit} --no-pager")
            time.sleep(0.2)


def install_program(machine: Machine, name: str) -> Path:
    """Install the program sockpq-NAME of integrations/NAME in /opt/sockpq-NAME; return that folder, seen from here."""
    folder = machine.root / f"opt/sockpq-{name}"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder / "lib",
         ROOT / "client", ROOT / "integrations" / name], check=True, timeout=INSTALL_S)
    program = folder / "bin" / f"sockpq-{name}"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(name=name))
    program.chmod(0o755)
    return folder
