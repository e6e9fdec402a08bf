"""Three pools of workers, each with its own links to the servers, and the faults applied to them."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.chaos.machines.cluster import ProxiedCluster
from tests.chaos.proxies.proxies import Link
from tests.worker.program.running import Worker

# The servers announce addresses that all pools share: a pool that is to be cut off must not know them.
OWN_WAYS = """
from sockpq._engine.discovery import Discovery
Discovery.addresses = property(lambda self: self._given)
"""
HOW: dict[str, Callable[[Link], None]] = {
    "silent": Link.silence, "lossy": lambda link: link.silence(lost=True), "cut": Link.cut,
}


class Trio:
    """The workers 0, 1, 2; one that is killed starts again. `killed`: the children that were, and when (Unix time)."""

    def __init__(self, stack: ExitStack, folder: Path, cluster: ProxiedCluster, app: str, *arguments: str) -> None:
        self._stack = stack
        self._folder = folder
        self._app = OWN_WAYS + app
        self._arguments = arguments
        self._together = cluster.together
        self._ways = [
            [cluster.proxies.create(f"pool{number}>{name}", cluster.direct(name)) for name in cluster.names]
            for number in range(3)
        ]
        self._ends: list[tuple[float, Callable[[], None]]] = []     # the time at which each fault ends
        self._disturbed: set[Worker] = set()
        self.killed: dict[int, float] = {}
        self.workers = [self._start(number) for number in range(3)]

    def kill_child(self, number: int, draw: random.Random) -> None:
        """SIGKILL one of its children."""
        children = self.workers[number].children()
        if children:
            self._kill([draw.choice(children)])

    def kill(self, number: int) -> bool:
        """SIGKILL the pool; another one takes its place. Returns False if it is under another fault."""
        worker = self.workers[number]
        if worker in self._disturbed:
            return False
        now = time.time()
        self.killed |= dict.fromkeys(worker.children(), now)
        worker.process.kill()
        worker.process.wait(60)
        self.workers[number] = self._start(number)
        return True

    def freeze(self, number: int, seconds: float) -> bool:
        """Stop the pool by SIGSTOP for this time; its children keep working. Returns False if it is under another
        fault.
        """
        worker = self.workers[number]
        if worker in self._disturbed:
            return False
        worker.process.send_signal(signal.SIGSTOP)
        self._until(seconds, worker, lambda: worker.process.send_signal(signal.SIGCONT))
        return True

    def cut_off(self, number: int, seconds: float, how: str) -> bool:
        """Cut the pool off from all servers for this time: "silent", "lossy" or "cut" (tests/chaos/proxies)."""
        worker = self.workers[number]
        if worker in self._disturbed:
            return False
        links = self._ways[number]
        self._together(links, HOW[how])
        self._until(seconds, worker, lambda: self._together(links, Link.heal))
        return True

    def heal(self, everything: bool = False) -> None:
        """End the faults whose time has come."""
        for end in list(self._ends):
            if everything or time.monotonic() >= end[0]:
                self._ends.remove(end)
                end[1]()

    def _until(self, seconds: float, worker: Worker, end: Callable[[], None]) -> None:
        def over() -> None:
            end()
            self._disturbed.discard(worker)

        self._disturbed.add(worker)
        self._ends.append((time.monotonic() + seconds, over))

    def _kill(self, processes: list[int]) -> None:
        for process in processes:
            self.killed[process] = time.time()
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _start(self, number: int) -> Worker:
        servers = ",".join(link.address for link in self._ways[number])
        return self._stack.enter_context(
            Worker(self._folder, servers, self._app, *self._arguments, "--name", f"pool{number}-{time.monotonic_ns()}")
        )
