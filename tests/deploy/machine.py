"""One host: a container with its own systemd, sshd, network and disk, that can lose its power."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

from devcluster.guardian import Guardian
from tests.deploy.image import LOGIN
from tests.deploy.leftovers import Leftovers
from tests.deploy.network import Network, ip

BOOT_S = 60.0
POLL_S = 0.05

# Where control groups may be: the old hierarchy of systemd, the new one beside it, the new one alone.
HIERARCHIES = ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")


class Machine:
    """`name` is the host's name; `number` the last part of its address; `root` is where its files are, from outside."""

    def __init__(
        self, name: str, number: int, system: Path, folder: Path, network: Network, guardian: Guardian,
        leftovers: Leftovers, public_key: str,
    ) -> None:
        self.name = name
        self.address = f"{network.prefix}{number}"
        self._network, self._guardian, self._leftovers = network, guardian, leftovers
        self._machine = f"{network.bridge}-{name}"
        self._cable = f"vb-{self._machine}"         # the name systemd-nspawn gives it
        self._folder = folder / name
        self.root = self._folder / "root"
        self._process: subprocess.Popen[bytes] | None = None
        self._init = 0
        for part in ("upper", "work", "root"):
            (self._folder / part).mkdir(parents=True)
        options = f"lowerdir={system},upperdir={self._folder / 'upper'},workdir={self._folder / 'work'}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, self.root], check=True)
        self._set_up(public_key)
        self._groups = self._own_groups()
        # The kernel keeps a network for minutes while a connection in it waits for an answer to its FIN.
        leftovers.later("sh", "-c", f"! ip link show {self._cable} >/dev/null || ip link delete {self._cable}")

    def _set_up(self, public_key: str) -> None:
        (self.root / "etc/hostname").write_text(f"{self.name}\n")
        (self.root / "etc/systemd/network/10-host0.network").write_text(
            f"[Match]\nName=host0\n[Network]\nAddress={self.address}/24\n"
        )
        keys = self.root / "home" / LOGIN / ".ssh/authorized_keys"
        keys.parent.mkdir(mode=0o700)
        keys.write_text(public_key)
        owner = (self.root / "home" / LOGIN).stat()
        for path in (keys.parent, keys):
            os.chown(path, owner.st_uid, owner.st_gid)

    def _own_groups(self) -> list[Path]:
        """Containers that share a control group would end each other's services."""
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = {controller: group for _, controller, group in (line.split(":", 2) for line in lines)}
        groups = []
        for hierarchy, controller in zip(HIERARCHIES, ("name=systemd", "", ""), strict=True):
            if Path(hierarchy, "cgroup.procs").exists():
                group = Path(hierarchy + own[controller].rstrip("/"), self._machine)
                group.mkdir()
                self._leftovers.later("find", str(group), "-depth", "-type", "d", "-exec", "rmdir", "{}", "+")
                groups.append(group)
        return groups

    def power_on(self) -> None:
        """Boot, and wait for sshd."""
        enter = 'for group; do echo $$ > "$group/cgroup.procs" || exit; done; exec '
        nspawn = (
            f"systemd-nspawn --boot --quiet --register=no --keep-unit --network-bridge={self._network.bridge} "
            f"--machine={self._machine} --hostname={self.name} --directory={self.root} --console=pipe"
        )
        with (self._folder / "console.log").open("ab") as console:
            self._process = subprocess.Popen(
                ["sh", "-c", enter + nspawn, "sh", *map(str, self._groups)],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True,
            )
        self._guardian.watch(self._process.pid)
        self._init = self._wait_for_init(self._process)
        self._guardian.watch(self._init)
        deadline = time.monotonic() + BOOT_S
        while not self._answers():
            assert time.monotonic() < deadline, (self._folder / "console.log").read_text(errors="replace")
            time.sleep(POLL_S)

    def _wait_for_init(self, process: subprocess.Popen[bytes]) -> int:
        """The container's first process: it leads a group of its own, and everything inside ends with it."""
        deadline = time.monotonic() + BOOT_S
        while time.monotonic() < deadline and process.poll() is None:
            for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                if os.getpgid(int(child)) == int(child):
                    return int(child)
            time.sleep(POLL_S)
        raise RuntimeError((self._folder / "console.log").read_text(errors="replace"))

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self.address, 22), timeout=1) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def power_off(self) -> None:
        """At once and without a word to anybody: the cable first, so that no FIN leaves."""
        assert self._process is not None
        ip("link", "delete", self._cable)
        os.kill(self._init, 9)
        self._process.wait()
        self._guardian.forget(self._init)
        self._guardian.forget(self._process.pid)
        self._process = None

    def reap(self) -> None:
        """Take note of the end that the guardian has brought about."""
        if self._process is not None:
            self._process.wait()
