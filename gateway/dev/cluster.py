"""`sockpqd --dev --nodes 3`: a cluster of child processes, or several, to play with and to kill.

A child that ends for any reason is started again after RESTART_S; one that cannot run at all is not, and its log says
why. Ctrl-C ends all of them in an orderly way, a second one by force. Their data stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

from sockpqd.gateway.dev.child import how_ended, start
from sockpqd.gateway.dev.folder import DevNode, child_environment, prepare, prepare_several
from sockpqd.gateway.dev.guide import guide
from sockpqd.gateway.dev.leader import serving
from sockpqd.gateway.dev.map import join

RESTART_S = 3.0
POLL_S = 0.2            # between two looks at who leads
STOP_S = 15.0           # after it processes are killed
LOG_TAIL_LINES = 5
FOLDER = "sockpqd-dev-{}"
SEVERAL = "sockpqd-dev-{}x{}"

CONFIG, FAILED = 2, 70  # exit codes of a node that another start does not help
INTERRUPTED = 128 + signal.SIGINT


def run(directory: Path, count: int, clusters: int = 1) -> int:
    """Run the cluster in its folder below `directory` until a signal ends it; returns the exit code.

    With `clusters` several of `count` nodes each, which have a map with all of them. Raises ConfigError if they cannot
    be started.
    """
    if clusters == 1:
        folder = directory / FOLDER.format(count)
        return asyncio.run(DevCluster(folder, [prepare(folder, count, child_environment())]).run())
    folder = directory / SEVERAL.format(count, clusters)
    return asyncio.run(DevCluster(folder, prepare_several(folder, count, clusters, child_environment())).run())


class DevCluster:
    """Nodes as children of this process: a list for each cluster."""

    def __init__(self, folder: Path, clusters: list[list[DevNode]]) -> None:
        self._folder = folder
        self._clusters = clusters
        self._nodes = [node for nodes in clusters for node in nodes]
        self._children: dict[str, asyncio.subprocess.Process] = {}
        self._given_up: dict[str, int] = {}     # exit codes of nodes that are not started again
        self._stopping = asyncio.Event()
        self._signals = 0

    async def run(self) -> int:
        """Run until a signal, or until no node can run; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._signalled, number)
        _say(f"starting {len(self._nodes)} nodes, their data in {self._folder}")
        keepers = [loop.create_task(self._keep(node)) for node in self._nodes]
        watching = loop.create_task(self._watch())
        await asyncio.gather(*keepers)
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        if len(self._given_up) == len(self._nodes):
            return max(self._given_up.values())
        _say(f"all nodes have ended; their data stay in {self._folder}")
        return 0

    async def _keep(self, node: DevNode) -> None:
        """Run this node, again whenever it ends, until the cluster stops."""
        while not self._stopping.is_set():
            child = self._children[node.name] = await start(node)
            code = await child.wait()
            if self._stopping.is_set():
                return
            if code in (CONFIG, FAILED):
                self._given_up[node.name] = code
                _say(f"{node.name} {how_ended(code)} and is not started again. The end of {node.log}:")
                print(_tail(node.log), flush=True)
                return
            _say(f"{node.name} (pid {child.pid}) {how_ended(code)}; it starts again in {RESTART_S:.0f} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), RESTART_S)

    async def _watch(self) -> None:
        """Print which nodes lead, and the guide when each cluster has a leader for the first time."""
        leaders: list[DevNode | None] = []
        pids: dict[str, int] = {}
        explained = False
        while True:
            # On a busy machine a single late answer does not mean that the leader is lost.
            found = [await serving(nodes) or await serving(nodes) for nodes in self._clusters]
            serve = [node for node in found if node is not None]
            if not explained and len(serve) == len(self._clusters) and (len(serve) == 1 or await join(serve)):
                explained = True
                pids = self._pids()
                print(guide(self._folder, self._clusters, pids, [node.name for node in serve]), flush=True)
            elif explained and not self._stopping.is_set():
                for nodes, node, before in zip(self._clusters, found, leaders, strict=True):
                    if node is not before:
                        cluster = f" of {nodes[0].cluster}" if nodes[0].cluster else ""
                        _say(f"no node{cluster} answers as the leader" if node is None else f"{node.name} leads")
            for name, pid in self._pids().items():
                if explained and pid != pids.get(name):
                    pids[name] = pid
                    _say(f"{name} runs again (pid {pid})")
            leaders = found
            await asyncio.sleep(POLL_S)

    def _pids(self) -> dict[str, int]:
        return {name: child.pid for name, child in self._children.items() if child.returncode is None}

    def _signalled(self, number: signal.Signals) -> None:
        """End the children: in an orderly way, by force if this is the second signal."""
        self._signals += 1
        if self._signals == 1:
            self._stopping.set()
            self._end(signal.SIGTERM)
            asyncio.get_running_loop().call_later(STOP_S, self._end, signal.SIGKILL)
            _say(f"{signal.Signals(number).name}: ending all nodes")
        else:
            self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        for pid in self._pids().values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _tail(log: Path) -> str:
    with contextlib.suppress(OSError):
        return "\n".join(f"  {line}" for line in log.read_text("utf-8", "replace").splitlines()[-LOG_TAIL_LINES:])
    return ""


def _say(what: str) -> None:
    with contextlib.suppress(OSError):      # who read it, such as a terminal, may have gone
        print(f"[{time.strftime('%H:%M:%S')}] {what}", flush=True)
