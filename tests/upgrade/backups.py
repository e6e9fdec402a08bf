"""Files of `pqctl backup` as releases wrote them: how they are recorded, and described.

    python tests/upgrade/backups.py NAME        makes data/backups/NAME.snapshot.xz and data/backups/NAME.json

The file comes from a node that has executed the fixed scenario once (scenario.py), with its users. NAME.json says what
a program must find in it, in words of the protocol. It is made by the program of this environment, or by the one that
PYTHONPATH names. `rc1` was made by 1.0.0rc1, of commit 06a6a700.
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from devcluster.cluster import LocalCluster
from tests.upgrade.scenario import Machine, Story, described

BACKUPS = Path(__file__).parent / "data" / "backups"
PQCTL = (sys.executable, "-c", "import sys; from sockpqd.pqctl.main import main; sys.exit(main())")


def pqctl(server: str, *arguments: str) -> dict[str, Any]:
    """Return the answer of a command that must succeed, from --json."""
    done = subprocess.run(
        [*PQCTL, "--servers", server, *arguments, "--json"], capture_output=True, text=True, check=False, timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def state_of(data: bytes) -> dict[str, Any]:
    """Return the state in a backup, as far as a restore brings it to another cluster."""
    machine = Machine()
    machine.restore([data])
    return as_described(machine)


def as_described(machine: Machine) -> dict[str, Any]:
    """Leave out what belongs to the cluster."""
    found: dict[str, Any] = json.loads(json.dumps(described(machine)))
    return {word: value for word, value in found.items() if word not in OF_THE_CLUSTER}


# What CLONE keeps of the cluster that takes it (core/snapshot/upload.py).
OF_THE_CLUSTER = ("log", "clock", "cluster id", "members", "learner", "configuration", "server ids", "sessions")


def record(name: str) -> None:
    """Record a backup; see the head of this file."""
    with (
        LocalCluster(1, config={"raft": {"failover_grace_ms": 0}}) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        Story(cluster, "a.").tell()
        saved = pqctl(cluster.server("n1"), "backup", folder, "--with-users")
        data = Path(saved["file"]).read_bytes()
    description = {
        "made by sockpqd": version("sockpqd"), "level": saved["level"], "users": saved["users"],
        "state": state_of(data),
    }
    BACKUPS.mkdir(exist_ok=True)
    (BACKUPS / f"{name}.snapshot.xz").write_bytes(lzma.compress(data, preset=9))
    text = re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda found: "[" + re.sub(r"\n\s+", " ", found[1]) + "]",
                  json.dumps(description, indent=1))
    (BACKUPS / f"{name}.json").write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    record(sys.argv[1])
