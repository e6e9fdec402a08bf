"""Three bare hosts of Debian, and packages of two versions that were built from the same sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.deploy.cluster import ROOT, Cluster

OLD, NEW = "0.9-1", "99.0-1"
BUILD_S = 600

MEMBER = """
[[cluster.members]]
name = "{name}"
client = "{address}:11361"
peer = "{address}:11362"
"""
CONFIG = """
[node]
name = "{name}"
data_dir = "/var/lib/sockpqd"

[listen]
client = "{address}:11361"
peer = "{address}:11362"
http = "{address}:11363"
insecure = true
"""


class Packaged(Cluster):
    """The hosts have nothing but the packages in /root: `packages` are their names by version."""

    def __init__(self) -> None:
        super().__init__({})
        self.packages: dict[str, str] = {}

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            dist = self.folder / "dist"
            for source in (ROOT / "client", ROOT):
                _run(sys.executable, "-m", "build", "--wheel", "--outdir", dist, source)
            for version in (OLD, NEW):
                _run(sys.executable, ROOT / "deploy/debian/build.py", dist, "--version", version)
                (package,) = dist.glob(f"*_{version}_*.deb")
                self.packages[version] = package.name
                for machine in self.machines.values():
                    shutil.copy(package, machine.root / "root")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def install(self, name: str, version: str) -> None:
        """Install or upgrade the package on this host."""
        self.ssh(name, f"dpkg --install /root/{self.packages[version]}")

    def configure(self, name: str) -> None:
        """Write the configuration of one of three nodes, and that of pqctl."""
        text = CONFIG.format(name=name, address=self.machines[name].address)
        text += "".join(MEMBER.format(name=one, address=machine.address) for one, machine in self.machines.items())
        folder = self.machines[name].root / "etc"
        (folder / "sockpqd.toml").write_text(text)
        (folder / "sockpq.toml").write_text(f"servers = {self.servers().split(',')}\n")

    def status_of(self, name: str) -> str:
        """Return dpkg's status of the package on this host, `install ok installed`; empty if it knows none."""
        return self.ssh(name, "dpkg-query --show --showformat=\"\\${Status}\" sockpqd", check=False).strip()


def _run(*command: str | Path) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=BUILD_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
