"""Disks that fail: calls with an errno, syncs that take their time, and bytes that were believed to be on the disk."""

from __future__ import annotations

import errno
import random
import threading
import time
from collections import Counter
from itertools import count

from tests.chaos.faults.again import bring_back, keep_running, kill_at_once, level_again, start_at_once
from tests.chaos.faults.fault import Background, Fault
from tests.chaos.faults.processes import LEVEL_S
from tests.chaos.machines import disks, thin_disks
from tests.chaos.machines.alterable import AlterableCluster
from tests.chaos.machines.cluster import ProxiedCluster
from tests.chaos.proxies.proxies import TO
from tests.chaos.workload.bodies import body
from tests.chaos.workload.history import Outcome, Put, Record
from tests.waiting import eventually
from tests.wire import Broken, Wire

CODES = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC}
BURSTS = (1, 1, 1, 5, 50)
BAD_S, GOOD_S = (0.05, 1.0), (0.2, 1.5)
SLOW_MS = (1, 200)
POWER_CUT_ONE_IN = 2
LOOK_S = 0.01
QUIET_S = 0.5
END_S = 10.0
WAS_THERE = "that entry "      # a node learns from others that its disk once held more than it does
PUT_S = 20.0
LARGE_BYTES = 15_000        # so much is in several pages, which no small frame behind it writes again


class _Disks(Fault):
    """Disk faults in rounds, at one node or more at a time; nodes that end are started again."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = random.Random(seed)
        self._did: Counter[str] = Counter()
        self._background: Background | None = None

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = list(cluster.names)
        self._background = Background(lambda stopping: self._work(cluster, stopping))

    def _work(self, cluster: AlterableCluster, stopping: threading.Event) -> None:
        while True:
            self._round(cluster)
            if stopping.is_set():
                return

    def _round(self, cluster: AlterableCluster) -> None:
        raise NotImplementedError

    def _watch(self, cluster: AlterableCluster, seconds: float) -> None:
        """Act as a service manager for this long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._did["ends"] += sum(not cluster.running(name) for name in cluster.names)
            keep_running(cluster)
            time.sleep(LOOK_S)

    def _end(self, cluster: AlterableCluster) -> None:
        if self._background is not None:
            self._background.finish()
        bring_back(cluster)
        self.evidence += [f"{count} {what}" for what, count in sorted(self._did.items())]


class FailingCalls(_Disks):
    """Syncs or writes of one node fail with EIO or ENOSPC: one, or several in succession, even across a restart.

    The cluster must have been made with `faulty_disks`.
    """

    def _round(self, cluster: AlterableCluster) -> None:
        chance, name = self._chance, self._chance.choice(cluster.names)
        disk, before = cluster.faulty_disk(name), cluster.faulty_disk(name).failed
        call, code, times = chance.choice(("sync", "sync", "write")), chance.choice(list(CODES)), chance.choice(BURSTS)
        disk.fail(call, CODES[code], times)
        try:
            self._watch(cluster, chance.uniform(*BAD_S))
        finally:
            disk.heal()
        failed = disk.failed - before
        if failed:
            self._did[f"{call}s {code}"] += failed
        self._watch(cluster, chance.uniform(*GOOD_S))


class SlowSyncs(_Disks):
    """The syncs of some nodes, or of all, take 1 to 200 ms longer, and now and then as long as they do.

    The cluster must have been made with `faulty_disks`.
    """

    def _round(self, cluster: AlterableCluster) -> None:
        chance = self._chance
        slow = chance.sample(cluster.names, chance.randint(1, len(cluster.names)))
        before = sum(cluster.faulty_disk(name)["syncs"] for name in slow)
        try:
            for name in slow:
                cluster.faulty_disk(name)["delay_us"] = 1000 * chance.randint(*SLOW_MS)
            self._watch(cluster, chance.uniform(*BAD_S))
        finally:
            for name in slow:
                cluster.faulty_disk(name).heal()
        self._did["slow syncs"] += sum(cluster.faulty_disk(name)["syncs"] for name in slow) - before
        self._watch(cluster, chance.uniform(0, BAD_S[0]))


class EmptyPromises(_Disks):
    """The space behind one node's disk is used up for a while: what it syncs then does not reach the disk, whatever is
    seen afterwards. Now and then all nodes lose their power at once, and come back with what they really have.

    The cluster must have been made with `thin_disk_mb`.
    """

    def _round(self, cluster: AlterableCluster) -> None:
        chance, name = self._chance, self._chance.choice(cluster.names)
        store = thin_disks.store_of(cluster.data_dir(name))
        disks.fill(store)
        try:
            self._watch(cluster, chance.uniform(*BAD_S))
        finally:
            disks.empty(store)
        self._did["times without space"] += 1
        self._watch(cluster, chance.uniform(*GOOD_S))
        if chance.randrange(POWER_CUT_ONE_IN) == 0:
            cut_power(cluster, cluster.names)
            self._did["cuts of power"] += 1
        level_again(cluster)
        for name in cluster.names:
            assert not self._logged(cluster, name, WAS_THERE), f"{name} had acknowledged what was not on its disk"


class BelievedSync(Fault):
    """The bytes of an acknowledged PUT are believed to be on a disk where a sync of them has failed.

    The clients are quiet, and one follower receives nothing from the leader. The other one's disk fails at the sync of
    this PUT and is well again; the node is restarted and has the PUT, as far as it sees. As soon as the client has its
    answer the power fails everywhere, and the leader comes back last. The cluster must have been made with
    `thin_disk_mb`, and wait longer for votes than a node needs to start.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._name = next(name for number in count() if len(body(name := f"believed-{seed}-{number}")) > LARGE_BYTES)
        self._last = ""

    def _begin(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, ProxiedCluster)
        leader = self._last = cluster.wait_for_leader()
        away, victim = [name for name in cluster.names if name != leader]
        self.names = [victim]
        cluster.wait_until_level(LEVEL_S)
        cluster.together(cluster.client_links(), lambda link: link.silence(TO))
        try:
            time.sleep(QUIET_S)
            # Its connections stand, and it sends: so the leader keeps leading, and a started node may count at once.
            cluster.peer_link(leader, away).silence(TO)
            store = thin_disks.store_of(cluster.data_dir(victim))
            disks.fill(store)
            put = threading.Thread(target=self._put, args=(cluster, leader), name="put")
            put.start()
            ended = eventually(lambda: not cluster.running(victim), END_S)
            self._saw(ended and cluster.terminate(victim) == 75, f"{victim} could not sync")
            disks.empty(store)
            if ended:
                start_at_once(cluster, victim)
            put.join()
            self._saw(self.records[-1].outcome is Outcome.OK, "the PUT was acknowledged")
        finally:
            cut_power(cluster, cluster.names)
            cluster.heal_links()
        for name in (victim, away):
            cluster.restart(name, wait=False)
        self._wait_to_see(lambda: cluster.leader() is not None, "the others serve without it", LEVEL_S)

    def _put(self, cluster: AlterableCluster, leader: str) -> None:
        """Put the job; the power fails as soon as it is acknowledged."""
        put, start = Put(self._name, "q0", 0), time.monotonic_ns()
        outcome = Outcome.UNKNOWN
        try:
            with Wire(cluster.direct(leader), PUT_S) as wire:
                data = body(put.body)
                if wire.say(f"PUT q0 0 {len(data)}", data) == "200 OK":
                    outcome = Outcome.OK
                    kill_at_once(cluster, cluster.names)
        except Broken:
            outcome = Outcome.UNKNOWN
        self.records.append(Record("believer", put, start, time.monotonic_ns(), outcome, leader))

    def _end(self, cluster: AlterableCluster) -> None:
        if not cluster.running(self._last):
            cluster.restart(self._last, wait=False)
        bring_back(cluster)


def cut_power(cluster: AlterableCluster, names: list[str]) -> None:
    """Cut the power of all these nodes at once; they keep what is really on their disks."""
    kill_at_once(cluster, names)
    for name in names:
        cluster.kill(name)
        thin_disks.let_forget(cluster.data_dir(name))
