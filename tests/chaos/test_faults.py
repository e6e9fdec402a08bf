"""Each fault does to a real cluster what it says, ends when it should, and leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sockpq import survey

from devcluster.cluster import ASK_S, serves
from tests.chaos.faults.fault import Fault, during
from tests.chaos.faults.files import copy_live
from tests.chaos.faults.links import (
    HalfOpen,
    LinkFault,
    Storm,
    all_clients,
    all_peers,
    cut_before_answer,
    cut_in_answer,
    cut_in_command,
    cut_off,
    delayed,
    reset,
    sliced,
    slowly_closed,
    swallowed,
    throttled,
)
from tests.chaos.faults.machines import ClockJump, FullDisk, SlowDisk
from tests.chaos.faults.partitions import Bridge, OneWay, Partition, Undialable, cut, lossy, silent
from tests.chaos.faults.processes import Kill, Pause, RollingRestart
from tests.chaos.faults.roles import a_follower, everyone, leader, minority_with_leader, minority_without_leader, node
from tests.chaos.faults.snapshots import LeftBehind
from tests.chaos.machines import clocks, disks
from tests.chaos.machines.cluster import ProxiedCluster
from tests.system.load import Producer, check, drain
from tests.waiting import PATIENCE_S, gone, until

pytestmark = pytest.mark.usefixtures("toxiproxy_server")

HOLD_S = 0.8
SLOWER_MS = 20.0


class Working:
    """A cluster with producers at work."""

    def __init__(self, cluster: ProxiedCluster) -> None:
        self.cluster = cluster
        self._producers = [Producer(cluster.servers, f"p{number}") for number in range(2)]
        for producer in self._producers:
            producer.start()
        self.progress()

    def progress(self) -> None:
        """Wait until each producer has had further jobs acknowledged."""
        before = [len(producer.acknowledged) for producer in self._producers]
        until(lambda: all(len(producer.acknowledged) >= then + 3
                          for producer, then in zip(self._producers, before, strict=True)), "no progress")

    def healthy(self) -> None:
        """Wait until all nodes are level and jobs are taken again."""
        self.cluster.wait_until_level(PATIENCE_S)
        self.progress()

    def finish(self) -> None:
        """Stop, and check that nothing was lost."""
        for producer in self._producers:
            producer.finish()
        check(self._producers, drain(self.cluster))


@pytest.fixture(scope="module")
def working(toxiproxy_server: None) -> Iterator[Working]:
    """One cluster for many faults."""
    with ProxiedCluster() as cluster:
        working = Working(cluster)
        yield working
        working.finish()


@pytest.fixture
def healthy(working: Working) -> Working:
    """The same cluster, repaired whatever the previous test has left."""
    working.cluster.heal_links()
    working.healthy()
    return working


@pytest.mark.parametrize(
    "make",
    [
        lambda: Kill(leader),
        lambda: Kill(a_follower),
        lambda: Kill(everyone),
        lambda: Pause(a_follower),
        lambda: Partition(minority_without_leader, cut),
        lambda: Partition(a_follower, lossy),
        lambda: Bridge(cut),
        lambda: OneWay(leader, deaf=True),
        lambda: OneWay(a_follower, deaf=False, lost=True),
        lambda: Undialable(a_follower),
        lambda: HalfOpen(leader),
        lambda: LinkFault(all_peers, delayed(100, 50)),
        lambda: LinkFault(all_peers, sliced()),
        lambda: LinkFault(all_peers, throttled(100)),
        lambda: LinkFault(all_peers, slowly_closed(2000)),
        lambda: LinkFault(all_clients, delayed(30, 20)),
        lambda: Storm(all_peers, [reset], seed=1),
        lambda: Storm(all_clients, [reset, cut_off, cut_in_command, cut_before_answer, cut_in_answer], 0.1, 0.1, 2),
        lambda: Storm(all_clients, [swallowed], seed=3),
    ],
    ids=lambda make: repr(make()),
)
def test_a_fault_fires_and_is_healed(healthy: Working, make: Callable[[], Fault]) -> None:
    fault = make()
    with during(healthy.cluster, fault):
        time.sleep(HOLD_S)
    print(fault.report())
    assert fault.fired, fault.report()
    healthy.healthy()


@pytest.mark.parametrize(
    "make",
    [lambda: Pause(leader), lambda: Partition(leader, cut), lambda: Partition(leader, silent)],
    ids=lambda make: repr(make()),
)
def test_without_its_leader_the_rest_goes_on(healthy: Working, make: Callable[[], Fault]) -> None:
    cluster, fault = healthy.cluster, make()
    with during(cluster, fault):
        until(lambda: cluster.leader() not in (None, *fault.names), "no new leader")
        if isinstance(fault, Partition):
            assert not [view for view in survey([cluster.direct(fault.names[0])], ASK_S) if serves(view)]
        healthy.progress()
    assert fault.fired, fault.report()
    assert [one.node for one in fault.cuts] == (fault.names if isinstance(fault, Partition) else [])
    healthy.healthy()


def test_all_nodes_are_restarted_in_turn(healthy: Working) -> None:
    pids = [healthy.cluster.pid(name) for name in healthy.cluster.names]
    with during(healthy.cluster, RollingRestart()) as (fault,):
        pass
    assert fault.fired, fault.report()
    assert not set(pids) & {healthy.cluster.pid(name) for name in healthy.cluster.names}
    healthy.healthy()


@pytest.mark.parametrize("fault", [LeftBehind(a_follower, None), LeftBehind(leader, silent)], ids=repr)
def test_who_was_away_too_long_gets_a_snapshot(healthy: Working, fault: Fault) -> None:
    with during(healthy.cluster, fault):
        time.sleep(HOLD_S)
    assert fault.fired, fault.report()
    healthy.healthy()


def test_clients_and_nodes_meet_proxies_only_and_watchers_none(healthy: Working) -> None:
    cluster = healthy.cluster
    direct = [cluster.direct(name) for name in cluster.names]
    assert not set(direct) & set(cluster.servers)
    for view in survey(direct):
        assert {told.client for told in view.nodes} == set(cluster.servers)
    for name in cluster.names:
        text = cluster.config_file(name).read_text()
        assert all(cluster.peer(other) not in text for other in cluster.names if other != name)
        assert all(cluster.peer_link(name, other).address in text for other in cluster.names if other != name)
    with during(cluster, LinkFault(all_clients, cut_off)):
        assert cluster.leader() is not None


def test_faults_may_be_nested_on_the_same_links(healthy: Working) -> None:
    cluster = healthy.cluster
    slow, storm, apart = LinkFault(all_peers, delayed(20)), Storm(all_peers, [reset]), Partition(a_follower, cut)
    with during(cluster, slow):
        with during(cluster, apart):
            healthy.progress()
        assert all(link.condition for link in cluster.peer_links())
        with during(cluster, storm):
            time.sleep(HOLD_S)
        assert all(link.condition for link in cluster.peer_links())
    assert not any(link.condition for link in cluster.peer_links())
    assert all(fault.fired for fault in (slow, storm, apart)), (slow.report(), storm.report(), apart.report())
    healthy.healthy()


def test_of_five_nodes_two_are_the_minority() -> None:
    with ProxiedCluster(5) as cluster:
        working = Working(cluster)
        for fault in (Partition(minority_with_leader, silent), Bridge(silent)):
            with during(cluster, fault):
                working.progress()
            assert fault.fired, fault.report()
            working.healthy()
        working.finish()


def test_a_clock_jumps_and_the_cluster_goes_on() -> None:
    if clocks.library() is None:
        pytest.skip("no libfaketime")
    with ProxiedCluster(fake_clocks=True) as cluster:
        working = Working(cluster)
        for fault in (ClockJump(a_follower, 3600), ClockJump(leader, -3600), ClockJump(leader, 3600)):
            with during(cluster, fault):
                working.progress()
            assert fault.fired, fault.report()
            working.healthy()
        working.finish()


def test_disks_are_slow_and_fast_again() -> None:
    with ProxiedCluster(slow_disks=True) as cluster:
        working = Working(cluster)
        with during(cluster, SlowDisk(everyone, SLOWER_MS)) as (slow,):
            working.progress()
        assert slow.fired, slow.report()
        assert len(slow.evidence) == len(cluster.names)
        with during(cluster, SlowDisk(leader, SLOWER_MS)) as (fast,):
            cluster.set_disk(*fast.names, 0)
            working.progress()
        assert not fast.fired, fast.report()
        working.healthy()
        working.finish()


@pytest.mark.parametrize("role", [leader, a_follower])
def test_a_disk_is_full_and_has_space_again(role: Callable[[ProxiedCluster], list[str]]) -> None:
    if not disks.can_mount():
        pytest.skip("mounting a small tmpfs needs root")
    with ProxiedCluster(disk_mb=100) as cluster:
        working = Working(cluster)
        with during(cluster, FullDisk(role)) as (fault,):
            time.sleep(HOLD_S)
        assert fault.fired, fault.report()
        working.healthy()
        working.finish()


def test_a_folder_is_copied_while_files_vanish(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    (data_dir / "pages").mkdir(parents=True)
    (data_dir / "pages" / "kept").write_text("kept")
    (data_dir / "pages" / "gone").symlink_to("nowhere")     # is listed, and cannot be read
    copy_live(data_dir, tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy" / "pages").iterdir()] == ["kept"]


def test_a_fault_without_effect_says_so(healthy: Working) -> None:
    with during(healthy.cluster, Kill(node("n1")), Kill(node("n1"))) as (first, again):
        pass
    assert first.fired
    assert not again.fired
    assert "MISSING: n1 is dead" in again.report()
    healthy.healthy()


# nothing stays behind


def children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):       # a thread that has just ended
            found.update(int(pid) for pid in (task / "children").read_text().split())
    return found


@pytest.mark.usefixtures("executed_nodes")
def test_nothing_is_left_when_a_test_fails_in_the_middle_of_faults() -> None:
    before = children()
    cluster = ProxiedCluster(disk_mb=100 if disks.can_mount() else None)
    with pytest.raises(ZeroDivisionError), cluster:     # noqa: PT012  where it is raised is plain
        folder, started = cluster.folder, children() - before
        assert len(started) == 6        # nodes, the proxies, a guardian of each
        with during(cluster, Storm(all_clients, [reset]), Partition(a_follower, silent), Pause(leader)):
            raise ZeroDivisionError
    assert all(gone(pid) for pid in started)
    assert not folder.exists()
    assert str(folder) not in Path("/proc/self/mounts").read_text()


def test_nothing_is_left_when_the_test_process_is_killed() -> None:
    program = (
        "import time\n"
        "from tests.chaos.machines import disks\n"
        "from tests.chaos.machines.cluster import ProxiedCluster\n"
        "cluster = ProxiedCluster(disk_mb=100 if disks.can_mount() else None)\n"
        "cluster.start()\n"
        "cluster.peer_link('n1', 'n2').silence()\n"
        "print(cluster.folder, *map(cluster.pid, cluster.names), flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        folder, *pids = process.stdout.readline().split()
        server = {int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()}
        process.send_signal(signal.SIGKILL)
    until(lambda: all(gone(pid) for pid in {*map(int, pids), *server}) and not Path(folder).exists(),
          "something is left behind")
    assert folder not in Path("/proc/self/mounts").read_text()
