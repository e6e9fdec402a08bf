"""Three hosts and more, an inventory for them, and Ansible to run playbooks of deploy/ansible on them.

The inventory is the example of deploy/ansible with other addresses, so the example is tested, too.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import yaml

from devcluster.guardian import Guardian
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
    """A playbook that has ended: its exit code, output and duration."""

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
        self._stack = ExitStack()
        self.machines: dict[str, Machine] = {}
        self.names: list[str] = []          # hosts of the inventory

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.system = image()
            self.folder = Path(tempfile.mkdtemp(prefix="sockpqd-deploy-"))
            self._leftovers = Leftovers()
            stack.callback(self._leftovers.close)
            stack.callback(self._reap)
            self._guardian = Guardian(self.folder)
            stack.callback(self._guardian.close)
            self._network = Network(self._leftovers)
            self._key = self.folder / "key"
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._key], check=True)
            self.inventory = self.folder / "inventory"
            shutil.copytree(PLAYBOOKS / "inventory/example", self.inventory)
            for name in ("n1", "n2", "n3"):
                self.add(name)
            self.write_inventory(["n1", "n2", "n3"])
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, name: str) -> Machine:
        """One more host, switched on."""
        machine = Machine(
            name, len(self.machines) + 1, self.system, self.folder, self._network, self._guardian, self._leftovers,
            self._key.with_suffix(".pub").read_text(),
        )
        self.machines[name] = machine
        machine.power_on()
        return machine

    def another(self, names: Sequence[str], variables: dict[str, Any]) -> Cluster:
        """Return a cluster with an inventory of its own on new hosts beside these, which end with this one."""
        other = copy.copy(self)
        other._variables = variables
        other.inventory = self.folder / f"inventory-{names[0]}"
        shutil.copytree(PLAYBOOKS / "inventory/example", other.inventory)
        for name in names:
            self.add(name)
        other.write_inventory(list(names))
        return other

    def vary(self, **variables: Any) -> None:
        """Change variables of the inventory, for the playbooks from now on; None removes one."""
        together = {**self._variables, **variables}
        self._variables = {key: value for key, value in together.items() if value is not None}
        self.write_inventory(self.names)

    def write_inventory(self, names: list[str]) -> None:
        """The hosts of the cluster from now on."""
        self.names = names
        example = yaml.safe_load((PLAYBOOKS / "inventory/example/hosts.yml").read_text())
        group = example["sockpqd"]
        group["hosts"] = {name: {"ansible_host": self.machines[name].address} for name in names}
        group["vars"] |= {
            "ansible_ssh_private_key_file": str(self._key), "ansible_ssh_common_args": self._ssh_options(),
            **self._variables,
        }
        (self.inventory / "hosts.yml").write_text(yaml.safe_dump(example))

    def _reap(self) -> None:
        for machine in self.machines.values():
            machine.reap()

    def _ssh_options(self) -> str:
        """Return options with which ssh accepts only the image's host key."""
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
        """Return what the command prints on that host, run by root."""
        machine = self.machines[host]
        done = subprocess.run(
            ["ssh", "-i", self._key, *self._ssh_options().split(), f"{LOGIN}@{machine.address}",
             f"sudo sh -c '{command}'"],
            capture_output=True, text=True, check=False, timeout=120,
        )
        assert done.returncode == 0 or not check, done.stderr + done.stdout
        return done.stdout

    def status(self, host: str) -> dict[str, Any]:
        """Return the output of `pqctl cluster status --json` on that host."""
        return dict(json.loads(self.ssh(host, "pqctl cluster status --json --timeout 2", check=False)))

    def wait_until_well(self, seconds: float = 60) -> dict[str, Any]:
        """The status, when all nodes are up and one leads."""
        deadline = time.monotonic() + seconds
        while True:
            status = self.status(self.names[0])
            if status.get("serving") and all(node["lag"] == 0 for node in status["nodes"]):
                return status
            assert time.monotonic() < deadline, status
            time.sleep(0.2)

    def servers(self) -> str:
        """The addresses of all nodes for clients, separated by commas."""
        return ",".join(f"{self.machines[name].address}:{CLIENT_PORT}" for name in self.names)

    def reaches(self, host: str, port: int) -> bool:
        """Return whether this can machine open a connection to that port."""
        try:
            socket.create_connection((self.machines[host].address, port), timeout=2).close()
        except OSError:
            return False
        return True

    @property
    def bridge(self) -> str:
        """The name of the bridge; the names of the containers begin with it."""
        return self._network.bridge

    @property
    def secrets(self) -> Path:
        """Return where the playbooks keep what only the operator may know."""
        return self.inventory / ".secrets"
