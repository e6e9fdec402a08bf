"""The check of a node's snapshots and pages of jobs by `pqctl doctor`: the program of the node does it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from pqctl.doctor.check import SKIP, WARN, Check


def look(data_dir: Path) -> list[Check]:
    """Run `sockpqd --check-data`; it only reads, and takes as long as the disk needs for these files."""
    program = _program()
    if program is None:
        return [Check(SKIP, "snapshots", "there is no sockpqd beside pqctl or in the path", "run this on the node")]
    try:
        ended = subprocess.run([program, "--check-data", data_dir], capture_output=True, text=True, check=False)
    except OSError as error:
        return [Check(WARN, "snapshots", f"{program} cannot be run: {error.strerror}", "install it anew")]
    try:
        found = [Check(**json.loads(line)) for line in ended.stdout.splitlines()]
    except (TypeError, ValueError):
        found = []
    if ended.returncode or not found:
        why = ended.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        return [Check(WARN, "snapshots", f"{program} --check-data failed: {why[0]}",
                      "run this as the node's user or as root")]
    return found


def _program() -> str | None:
    """The sockpqd that was installed together with this pqctl, or else the one in the path."""
    beside = Path(sys.executable).with_name("sockpqd")
    return str(beside) if beside.exists() else shutil.which("sockpqd")
