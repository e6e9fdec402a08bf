"""Three hosts and more, an inventory for them, and Ansible to run playbooks of deploy/ansible on them.

The inventory is the example of deploy/ansible with other addresses, so the example is tested, too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import yaml
from bench.guardian import Guardian

from tests.deploy.image import LOGIN, image
from tests.deploy.leftovers import Leftovers
from tests.deploy.machine import Machine
from tests.deploy.needs import ANSIBLE
from tests.deploy.network import Network

ROOT = Path(__file__).parents[2]
PLAYBOOKS = ROOT / "deploy/ansible"
PLAYBOOK_S = 900
CLIENT_PORT = 11361


class Run(NamedTuple):
    """A playbook's end."""

    code: int
    output: str
    seconds: float

    @property
    def changed(self) -> int:
        """Tasks that changed something, on all hosts."""
        return sum(map(int, re.findall(r"changed=(\d+)", self.output)))


class Cluster:
    """Hosts n1, n2, n3, which have nothing yet; further ones by `add`. `variables` are the inventory's."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self._variables = variables
        self.machines: dict[str, Machine] = {}

    def __enter__(self) -> Self:
        self.system = image()
        self.folder = Path(tempfile.mkdtemp(prefix="sockpqd-deploy-"))
        self._guardian = Guardian(self.folder)
        self._leftovers = Leftovers()
        self._network = Network(self._leftovers)
        self._key = self.folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._key], check=True)
        self.inventory = self.folder / "inventory"
        shutil.copytree(PLAYBOOKS / "inventory/example", self.inventory)
        for name in ("n1", "n2", "n3"):
            self.add(name)
        self.write_inventory(["n1", "n2", "n3"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._guardian.close()
        self._leftovers.close()

    def add(self, name: str) -> Machine:
        """One more host, switched on."""
        machine = Machine(
            name, len(self.machines) + 1, self.system, self.folder, self._network, self._guardian, self._leftovers,
            self._key.with_suffix(".pub").read_text(),
        )
        self.machines[name] = machine
        machine.power_on()
        return machine

    def write_inventory(self, names: list[str], **variables: Any) -> None:
        """The hosts of the cluster from now on, and more variables for all of them."""
        self._variables |= variables
        hosts = {name: {"ansible_host": self.machines[name].address} for name in names}
        more = {"ansible_ssh_private_key_file": str(self._key), "ansible_ssh_common_args": self._ssh_options()}
        path = self.inventory / "hosts.yml"
        example = yaml.safe_load((PLAYBOOKS / "inventory/example/hosts.yml").read_text())
        group = example["sockpqd"]
        group["hosts"] = hosts
        group["vars"] |= more | self._variables
        path.write_text(yaml.safe_dump(example))

    def _ssh_options(self) -> str:
        """The hosts' key is that of the image: strangers are noticed."""
        host_key = (self.system / "etc/ssh/ssh_host_ed25519_key.pub").read_text()
        known = self.folder / "known_hosts"
        known.write_text("".join(f"{machine.address} {host_key}" for machine in self.machines.values()))
        return f"-o UserKnownHostsFile={known} -o StrictHostKeyChecking=yes -o HostKeyAlgorithms=ssh-ed25519"

    def playbook(self, name: str, *arguments: str, fails: bool = False) -> Run:
        """Run it to its end; the output is in the folder and, when it does not end as expected, in the message."""
        begun = time.monotonic()
        process = subprocess.Popen(
            [ANSIBLE, "-i", self.inventory, name, *arguments], cwd=PLAYBOOKS, start_new_session=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "ANSIBLE_HOME": str(self.folder / "ansible"), "ANSIBLE_NOCOLOR": "1"},
        )
        self._guardian.watch(process.pid)
        output, _ = process.communicate(timeout=PLAYBOOK_S)
        self._guardian.forget(process.pid)
        run = Run(process.returncode, output, time.monotonic() - begun)
        with (self.folder / "playbooks.log").open("a") as log:
            log.write(output)
        assert (run.code != 0) == fails, output
        return run

    def ssh(self, host: str, command: str, *, check: bool = True) -> str:
        """What the command prints on that host, run by root."""
        machine = self.machines[host]
        done = subprocess.run(
            ["ssh", "-i", self._key, *self._ssh_options().split(), f"{LOGIN}@{machine.address}", f"sudo sh -c '{command}'"],
            capture_output=True, text=True, check=False, timeout=120,
        )
        assert done.returncode == 0 or not check, done.stderr + done.stdout
        return done.stdout

    def servers(self, names: list[str] | None = None) -> str:
        """For sockpq.Client."""
        return ",".join(f"{self.machines[name].address}:{CLIENT_PORT}" for name in names or self.machines)
