"""A `sockpqd` process of a local cluster: its configuration, start, end and output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar, Protocol

from devcluster.guardian import Guardian

Setting = str | int | bool
Settings = Mapping[str, Mapping[str, Setting]]

LOG_TAIL_CHARACTERS = 2000
IN_USE = "address already in use", "in use by another process"    # what a node says of a port, and of its data


class NodeError(Exception):
    """A node failed; the message has the end of its output."""


def program() -> Path:
    """The console script in this Python's environment. Raises NodeError if it is not installed."""
    path = Path(sys.executable).parent / "sockpqd"
    if not path.exists():
        raise NodeError(f"there is no {path}: install the project first (make install)")
    return path


class Process(Protocol):
    """The part of subprocess.Popen that a node uses."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...
    def send_signal(self, sig: int) -> None: ...


class Launch(Protocol):
    """Starts a command in a session of its own, with its output in `log`."""

    def __call__(self, command: Sequence[str | Path], environment: Mapping[str, str], log: BinaryIO) -> Process: ...


def execute(command: Sequence[str | Path], environment: Mapping[str, str], log: BinaryIO) -> Process:
    """Start the command as a shell would."""
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment)


class LocalNode:
    """A node, whose process runs from `start` on."""

    launch: ClassVar[Launch] = staticmethod(execute)    # the test suite has a faster way: tests/forkserver.py

    def __init__(self, name: str, folder: Path, guardian: Guardian) -> None:
        self.name = name
        self.data_dir = folder / name
        self.config_file = folder / f"{name}.toml"
        self.log_file = folder / f"{name}.log"
        self.client = ""                        # "host:port" it listens on for clients
        self.environment: Mapping[str, str] = {}    # further environment variables
        self.wrapper: Sequence[str] = ()        # a command that executes the program given as its arguments
        self.paused = False
        self.stopped = False                    # it was sent TERM since it was started
        self._guardian = guardian
        self._process: Process | None = None
        self._output_before = 0                 # the length of the log file when it was started

    @property
    def running(self) -> bool:
        """True if the process is running or paused."""
        return self._process is not None and self._process.poll() is None

    @property
    def shut_out(self) -> bool:
        """True if it has ended because its port or its data was in use; it may find them free later."""
        if self._process is None or self._process.poll() in (None, 0):
            return False
        with self.log_file.open("rb") as log:
            log.seek(self._output_before)
            said = log.read().decode("utf-8", "replace").lower()
        return any(words in said for words in IN_USE)

    @property
    def pid(self) -> int | None:
        """The process id, None if the process does not run."""
        return self._process.pid if self._process and self.running else None

    def start(self) -> None:
        """Start the process; its output is appended to the log file."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SOCKPQD_")}
        with self.log_file.open("ab") as log:
            self._output_before = log.tell()
            self._process = self.launch(
                [*self.wrapper, program(), "--config", self.config_file],
                {**environment, "SOCKPQD_LOG_FORMAT": "text", **self.environment}, log,
            )
        self._guardian.watch(self._process.pid)
        self.paused = self.stopped = False

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it runs."""
        if self._process and self.running:
            self.stopped = self.stopped or number == signal.SIGTERM
            self._process.send_signal(number)

    def wait(self, timeout: float) -> int | None:
        """Wait for the process to end; returns its exit code, None if it still runs after `timeout` seconds."""
        if self._process is None:
            return None
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        self._guardian.forget(self._process.pid)
        return code

    def log(self) -> str:
        """The whole output so far."""
        return self.log_file.read_text("utf-8", "replace") if self.log_file.exists() else ""

    def complaint(self, what: str) -> NodeError:
        """An error about this node that includes the end of its output."""
        return NodeError(f"{self.name} {what}; {self.last_words()}")

    def last_words(self) -> str:
        """Return the end of its output, after a line with its state, for errors."""
        code = None if self._process is None else self._process.poll()
        state = "not started" if self._process is None else "running" if code is None else f"ended with {code}"
        return f"the end of the output of {self.name} ({state}):\n{self.log()[-LOG_TAIL_CHARACTERS:]}"


def write_config(
    node: LocalNode, listen: Mapping[str, str], members: list[Mapping[str, str]], settings: Settings
) -> None:
    """Write the node's TOML file. `settings`: further sections, or further keys of [listen]."""
    sections: dict[str, dict[str, Setting]] = {
        "node": {"name": node.name, "data_dir": str(node.data_dir)},
        "listen": dict(listen),
    }
    for section, keys in settings.items():
        sections.setdefault(section, {}).update(keys)
    blocks = [(f"[{section}]", keys) for section, keys in sections.items()]
    blocks += [("[[cluster.members]]", dict(member)) for member in members]
    text = "\n".join(f"{head}\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in keys.items())
                     for head, keys in blocks)
    node.config_file.write_text(text, "utf-8")


def _toml(value: Setting) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
