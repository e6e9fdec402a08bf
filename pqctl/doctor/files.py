"""The checks of a node's snapshots, pages of jobs and disk size by `pqctl doctor`, done by the node's program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from sockpqd.pqctl.doctor.check import SKIP, WARN, Check

DEFAULT_FILE = "/etc/sockpqd.toml"      # what sockpqd reads when no file is named


def look(data_dir: Path, process: int | None = None) -> list[Check]:
    """Run `sockpqd --check-data`; it only reads, and takes as long as the disk needs for these files.

    `process`: the node, whose configuration determines its needs of disk space.
    """
    sockpqd = program()
    if sockpqd is None:
        return [Check(SKIP, "snapshots", "there is no sockpqd beside pqctl or in the path", "run this on the node")]
    command = [sockpqd, "--check-data", str(data_dir)]
    configured = None if process is None else _configuration_of(process)
    unknown: list[Check] = []
    environment = dict(os.environ)
    if configured is not None:
        command += ["--check-config", configured.file]
        environment |= configured.variables
    elif process is not None:
        unknown = [_unknown_needs(process)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except OSError as error:
        return [Check(WARN, "snapshots", f"{sockpqd} cannot be run: {error.strerror}", "reinstall it")]
    try:
        found = [Check(**json.loads(line)) for line in ended.stdout.splitlines()]
    except (TypeError, ValueError):
        found = []
    if ended.returncode or not found:
        why = ended.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
        return [Check(WARN, "snapshots", f"{sockpqd} --check-data failed: {why[0]}",
                      "run this as the node's user or as root")]
    return found + unknown


class Configured(NamedTuple):
    """The sources of a node's settings: a file, and variables of its environment."""

    file: str
    variables: dict[str, str]


def _configuration_of(process: int) -> Configured | None:
    """The configuration of a running node; None if it cannot be read."""
    folder = Path(f"/proc/{process}")
    try:
        words = _words(folder / "cmdline")
        named = words[words.index("--config") + 1] if "--config" in words else _default_of(words)
        file = (folder / "cwd").readlink() / named
        pairs = (word.partition("=") for word in _words(folder / "environ") if word.startswith("SOCKPQD_"))
    except (OSError, ValueError, IndexError):
        return None
    return Configured(str(file), {name: value for name, _, value in pairs})


def _unknown_needs(process: int) -> Check:
    """Say why the settings of a running node are not known."""
    try:
        dev = "--dev" in _words(Path(f"/proc/{process}/cmdline"))
    except OSError:
        dev = False
    if dev:
        return Check(SKIP, "disk size", f"process {process} was started with --dev, without a configuration file")
    return Check(SKIP, "disk size", f"the configuration of process {process} cannot be seen",
                 "run this as the node's user or as root; or ask sockpqd --check-config FILE")


def _default_of(words: list[str]) -> str:
    """Return the file of a node started without --config, as by the systemd unit. Raises ValueError."""
    if "--dev" in words or not any(Path(word).name == "sockpqd" for word in words[:2]):
        raise ValueError(words)
    return DEFAULT_FILE


def _words(file: Path) -> list[str]:
    return os.fsdecode(file.read_bytes()).split("\0")


def program() -> str | None:
    """The sockpqd that was installed together with this pqctl, or else the one in PATH."""
    beside = Path(sys.executable).with_name("sockpqd")
    return str(beside) if beside.exists() else shutil.which("sockpqd")
