"""Three machines on which the servers of a system run: each a network namespace and a disk that can lose its power."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from devcluster.guardian import Guardian
from tests.proof import power
from tests.proof.network import Network, run
from tests.proof.peers.system import Server, System
from tests.system.damages import flip_bit

NAMES = "n1", "n2", "n3"
DISK_MB = 1024
START_S = 180.0             # of all servers together: on two processors that clients use, too
AGAIN_S = 1.0               # between two starts of a server that has ended: what a service manager does
POLL_S = 0.2


class NotReady(Exception):
    """The servers did not serve in time."""


class Machines:
    """The servers of one system; a context."""

    def __init__(self, system: System, folder: Path) -> None:
        """`folder`: an empty one, which is removed at the end."""
        self.system = system
        self.names: Sequence[str] = NAMES
        self.network = Network(NAMES)
        self._folder = folder
        self._guardian: Guardian | None = None
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self._down: set[str] = set()            # these are to stay down for now
        self._paused: set[str] = set()
        self._started: dict[str, float] = {}

    def __enter__(self) -> Self:
        self.network.__enter__()
        self._guardian = Guardian(self._folder)
        try:
            for name in self.names:
                power.mount(self.disk(name), DISK_MB)
            servers = [self.server(name) for name in self.names]
            for name in self.names:
                self.system.prepare(self.server(name), servers)
                self.start(name)
            self._wait(lambda: self.system.form(servers), "the cluster")
            for name in self.names:             # what operators did is on the disks before faults begin
                run(["sync", "-f", str(self.disk(name))])
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None,
    ) -> None:
        self.network.lose(())
        for name in self._servers:
            self.kill(name)
        if self._guardian is not None:
            self._guardian.close()
        self.network.close()

    def disk(self, name: str) -> Path:
        """Return the folder in which the disk of a machine is mounted."""
        return self._folder / f"{name}.machine"

    def server(self, name: str) -> Server:
        """The server on a machine."""
        return Server(name, self.network.address(name), self.disk(name), self.network.enter(name))

    def log(self, name: str) -> Path:
        """Return the file with the output of the server."""
        return self._folder / f"{name}.log"

    # what faults do

    def start(self, name: str) -> None:
        """Start the server of a machine."""
        self._down.discard(name)
        self._started[name] = time.monotonic()
        command, environment = self.system.command(self.server(name))
        with self.log(name).open("ab") as output:
            process = subprocess.Popen(
                [*self.network.enter(name), *command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True, env={**os.environ, **environment})
        self._servers[name] = process
        if self._guardian is not None:
            self._guardian.watch(process.pid)

    def kill(self, name: str) -> None:
        """End all processes of a machine at once; the server stays down until `start`."""
        self._down.add(name)
        self._paused.discard(name)
        while pids := self.network.processes(name):
            for pid in pids:
                _signal(pid, signal.SIGKILL)
            self._servers[name].poll()
            time.sleep(0.01)
        self._servers[name].wait()
        if self._guardian is not None:
            self._guardian.forget(self._servers[name].pid)

    def pause(self, name: str) -> None:
        """Stop all processes of a machine until `resume`."""
        self._paused.add(name)
        for pid in self.network.processes(name):
            _signal(pid, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let the stopped processes of this node continue."""
        self._paused.discard(name)
        for pid in self.network.processes(name):
            _signal(pid, signal.SIGCONT)

    def lose_power(self, names: Sequence[str]) -> None:
        """Kill these at the same moment and let them lose what they had not written."""
        for name in names:
            self.pause(name)
        for name in names:
            self.kill(name)
        for name in names:
            power.lose(self.disk(name))

    def flip_bits(self, name: str, chance: random.Random) -> str:
        """Flip a bit of one of the files of a server that is down; returns which."""
        files = [path for path in self.system.files(self.server(name)) if path.stat().st_size]
        if not files:
            return "no file to damage"
        path = chance.choice(files)
        flip_bit(path, chance)
        return f"a bit of {path.relative_to(self.disk(name))} flipped"

    def down_or_paused(self) -> str:
        """Return the machines on which nothing goes on, for reports."""
        return ", ".join([*(f"{name} is down" for name in sorted(self._down)),
                          *(f"{name} is paused" for name in sorted(self._paused))])

    # what a service manager and an operator do

    def keep_up(self) -> None:
        """Start again each server that has ended by itself."""
        ended = [name for name, server in self._servers.items() if name not in self._down and server.poll() is not None]
        due = [name for name in ended if time.monotonic() - self._started[name] > AGAIN_S]
        for name in due:
            self.kill(name)
            self.start(name)

    def wait_until_whole(self, limit_s: float) -> bool:
        """Wait until each server serves, starting again those that end; returns whether they do in time."""
        until = time.monotonic() + limit_s
        while not all(self.system.serves(self.server(name)) for name in self.names):
            self.keep_up()
            if time.monotonic() > until:
                return False
            time.sleep(POLL_S)
        return True

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + START_S
        while not ready():
            self.keep_up()
            if time.monotonic() > until:
                tails = [self.log(name).read_text("utf-8", "replace")[-1500:] for name in self.names]
                raise NotReady("\n".join([f"{self.system.name}: {what} is not ready", *tails]))
            time.sleep(POLL_S)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
