"""Faults that change the members or the leader while nodes are killed."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

from sockpq import survey

from tests.chaos.faults.again import bring_back, keep_running, kill_at_once
from tests.chaos.faults.fault import Background, Fault
from tests.chaos.faults.processes import LEVEL_S
from tests.chaos.machines.alterable import AlterableCluster

ASK_S = 1.0
ANSWER_S = 10.0
NEAR_KILL_S = 0.5           # a change and a kill are not farther apart
LOOK_S = 0.05


class Changes(Fault):
    """Again and again one node is removed and added again, and each time some node is killed at most half a second
    before or after that, and started again."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = random.Random(seed)
        self._said: Counter[str] = Counter()
        self._background: Background | None = None

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = list(cluster.names)
        self._background = Background(lambda stopping: self._change(cluster, stopping))

    def _change(self, cluster: AlterableCluster, stopping: threading.Event) -> None:
        while not stopping.is_set():
            name = self._chance.choice(cluster.names)
            try:
                self._beside_a_kill(cluster, f"CLUSTER REMOVE {name}")
                time.sleep(self._chance.uniform(0, NEAR_KILL_S))
            finally:
                self._beside_a_kill(cluster, _add(cluster, name))
                self._make_whole(cluster, name)

    def _beside_a_kill(self, cluster: AlterableCluster, command: str) -> None:
        """Give the command, and kill a node before or after it; while it is executed if the answer takes longer."""
        killing = threading.Timer(self._chance.uniform(0, NEAR_KILL_S), self._kill, [cluster])
        killing.start()
        try:
            time.sleep(self._chance.uniform(0, NEAR_KILL_S))
            verb, answer = command.split()[1], order(cluster, command)
            self._said[f"{verb} {' '.join(answer.split()[:2])}"] += 1
        finally:
            killing.join()
            bring_back(cluster)

    def _kill(self, cluster: AlterableCluster) -> None:
        kill_at_once(cluster, [self._chance.choice(cluster.names)])

    def _make_whole(self, cluster: AlterableCluster, name: str) -> None:
        """Wait until this node is a full member."""
        until = time.monotonic() + LEVEL_S
        while not _counts(cluster, name):
            keep_running(cluster)
            self._said[f"ADD {' '.join(order(cluster, _add(cluster, name)).split()[:2])}"] += 1
            assert time.monotonic() < until, f"{name} is not a member after {LEVEL_S:g} s"
            time.sleep(LOOK_S)

    def _end(self, cluster: AlterableCluster) -> None:
        if self._background is not None:
            self._background.finish()
        bring_back(cluster)
        for verb in ("REMOVE", "ADD"):
            self._saw(self._said[f"{verb} 200 OK"] > 0, f"{self._said[f'{verb} 200 OK']} times {verb}")


class Transfer(Fault):
    """Asks the leader to hand over, to any other node or to one of its choice; once, at the beginning."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance

    def _begin(self, cluster: AlterableCluster) -> None:
        leader = cluster.wait_for_leader()
        others = [name for name in cluster.names if name != leader]
        self.names = [self._chance.choice(["", *others])]
        answer = cluster.say(leader, f"CLUSTER TRANSFER {self.names[0]}".strip(), ANSWER_S) or "no answer"
        self._saw(answer.startswith("200"), answer)

    def _end(self, cluster: AlterableCluster) -> None:
        cluster.wait_for_leader()


def order(cluster: AlterableCluster, command: str) -> str:
    """Return the leader's answer, asking all nodes until there is one, and restarting those that have ended.
    Raises AssertionError."""
    until = time.monotonic() + LEVEL_S
    while time.monotonic() < until:
        for name in cluster.names:
            answer = cluster.say(name, command, ANSWER_S) if cluster.running(name) else None
            if answer is not None and not answer.startswith("500"):
                return answer
        keep_running(cluster)
        time.sleep(LOOK_S)
    raise AssertionError(f"nobody answers {command!r} within {LEVEL_S:g} s")


def _add(cluster: AlterableCluster, name: str) -> str:
    addresses = (cluster.peer(name), cluster.server(name))
    return " ".join(["CLUSTER ADD", name, *(part for one in addresses for part in one.split(":"))])


def _counts(cluster: AlterableCluster, name: str) -> bool:
    """Return whether a leader reports this node as a member that has caught up."""
    for view in survey([cluster.direct(one) for one in cluster.names], ASK_S):
        leads = any(node.role == "LEADER" and node.id == view.id for node in view.nodes)
        if leads and any(node.name == name and node.role in ("LEADER", "FOLLOWER") for node in view.nodes):
            return True
    return False
