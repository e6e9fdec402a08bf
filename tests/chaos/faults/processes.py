"""Processes that are killed, stopped, and restarted."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devcluster.cluster import say
from tests.chaos.faults.fault import Background, Fault, called
from tests.chaos.faults.roles import Role
from tests.chaos.machines.alterable import AlterableCluster

ANSWER_S = 0.5
LEVEL_S = 120.0         # a safety limit: on a busy machine everything takes its time
NEAR = 50               # entries: a node that is no farther behind under load is level


class Kill(Fault):
    """SIGKILL of all these nodes at the same time; `end` starts them again."""

    def __init__(self, role: Role) -> None:
        super().__init__()
        self._role = role

    def __repr__(self) -> str:
        return f"Kill {called(self._role)}"

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = self._role(cluster)
        pids = {name: cluster.pid(name) for name in self.names}
        for pid in pids.values():
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for name in self.names:
            cluster.kill(name)                  # waits for the end
            self._saw(pids[name] is not None and not cluster.running(name), f"{name} is dead")

    def _end(self, cluster: AlterableCluster) -> None:
        dead = [name for name in self.names if not cluster.running(name)]
        with ThreadPoolExecutor() as pool:
            list(pool.map(cluster.restart, dead))


class KillProgram(Fault):
    """SIGKILL of `sockpq-beanstalkd`: its connections end, and the jobs reserved on them stay so until their time is
    over. `end` starts it again. The cluster must have been made with `beanstalkd`."""

    def _begin(self, cluster: AlterableCluster) -> None:
        cluster.program.kill()
        self._saw(not cluster.program.running, "the program is dead")

    def _end(self, cluster: AlterableCluster) -> None:
        cluster.program.start()


class Pause(Fault):
    """SIGSTOP: the processes do nothing, their connections stay open; `end` resumes them."""

    def __init__(self, role: Role) -> None:
        super().__init__()
        self._role = role

    def __repr__(self) -> str:
        return f"Pause {called(self._role)}"

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = self._role(cluster)
        for name in self.names:
            cluster.pause(name)
        for name in self.names:
            self._wait_to_see(lambda name=name: state(cluster, name) == "T", f"{name} is stopped")

    def _end(self, cluster: AlterableCluster) -> None:
        for name in self.names:
            cluster.resume(name)
        for name in self.names:
            self._wait_to_see(lambda name=name: answers(cluster, name), f"{name} goes on", LEVEL_S)


class RollingRestart(Fault):
    """SIGTERM to one node after the other; each is restarted and catches up before the next one is stopped.

    It continues while the block runs; `end` waits until every node was restarted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._background: Background | None = None

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = list(cluster.names)
        self._background = Background(lambda stopping: self._roll(cluster, stopping))

    def _roll(self, cluster: AlterableCluster, _: threading.Event) -> None:
        for name in self.names:
            code = cluster.terminate(name)
            self._saw(code == 0, f"{name} ended with {code}")
            self._change(cluster, name)
            cluster.restart(name)
            cluster.wait_until_level(LEVEL_S, NEAR)

    def _change(self, cluster: AlterableCluster, name: str) -> None:
        """Change a node that is down."""

    def _end(self, cluster: AlterableCluster) -> None:
        if self._background is not None:
            self._background.finish()


def state(cluster: AlterableCluster, name: str) -> str | None:
    """Return the state as one letter: T is stopped; None if there is no process."""
    try:
        return Path(f"/proc/{cluster.pid(name)}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def answers(cluster: AlterableCluster, name: str) -> bool:
    """Return whether the node answers a PING now."""
    return say(cluster.direct(name), "PING", ANSWER_S) is not None
