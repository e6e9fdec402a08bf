"""The table of scenarios: which fault, for how long, under which load, and what must hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from tests.chaos.faults.fault import Fault
from tests.chaos.faults.files import Damaged, RollingUpgrade, SecondProcess
from tests.chaos.faults.links import (
    HalfOpen,
    LinkFault,
    Storm,
    What,
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
from tests.chaos.faults.processes import Kill, KillProgram, Pause, RollingRestart
from tests.chaos.faults.roles import (
    a_follower,
    everyone,
    followers,
    leader,
    minority_with_leader,
    minority_without_leader,
)
from tests.chaos.faults.snapshots import LeftBehind
from tests.chaos.workload.load import Load

CRASH_S, SILENT_S, ASIDE_S = 0.5, 1.5, 0.3      # goals: the leader's process ends; it falls silent; it is not concerned


class Scenario(Struct, frozen=True):
    """`faults(seed)` makes new ones for each run; they begin in this order and are healed in the reverse one."""

    name: str
    faults: Callable[[int], list[Fault]]
    lasts_s: float = 2.5
    after_s: float = 1.0
    nodes: int = 3
    load: Load = Load()
    config: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    goal_s: float | None = None             # of the longest time without service; reported, not asserted
    same_term: bool = False                 # the leader is not affected: it must keep leading
    bystander: bool = False                 # measure how long clients of an isolated leader get no answer
    listeners: bool = False                 # subscribers on all nodes record the events they receive
    beanstalkd: bool = False                # clients of beanstalkd work during the load, at all nodes and the program
    campaigns_only: bool = False            # not in the suite, which is to be short
    fake_clocks: bool = False
    disk_mb: int | None = None
    slow_disks: bool = False
    small_pages: bool = False
    faulty_disks: bool = False
    thin_disk_mb: int | None = None
    tls: bool = False                       # between nodes
    fast_empty: bool = False                # FASTEMPTY ON, and clients that ask for it (workload/empties.py)
    variants: tuple[str, ...] = ()          # drawn by the seed of the run, see variants.py
    varied: bool = False                    # a campaign draws some
    without: tuple[str, ...] = ()           # but none of these


BESIDE = Load(producers=1, workers=1, waiters=1, callers=0, planners=0, handlers=1, turns=0, pools=0, consumers=(1,))


def _one(make: Callable[[], Fault]) -> Callable[[int], list[Fault]]:
    return lambda seed: [make()]


def _storm(*what: What) -> Callable[[int], list[Fault]]:
    return lambda seed: [Storm(all_clients, what, seed=seed)]


SCENARIOS: tuple[Scenario, ...] = (
    # processes
    Scenario("leader killed", _one(lambda: Kill(leader)), goal_s=CRASH_S),
    Scenario("follower killed", _one(lambda: Kill(a_follower)), goal_s=ASIDE_S, same_term=True),
    Scenario("all killed", _one(lambda: Kill(everyone)), lasts_s=0.2, after_s=2.5),
    Scenario("both followers killed", _one(lambda: Kill(followers)), lasts_s=1.5, after_s=2.5),
    Scenario("leader paused", _one(lambda: Pause(leader)), goal_s=SILENT_S),
    Scenario("leader paused briefly", _one(lambda: Pause(leader)), lasts_s=0.8),
    Scenario("leader paused long", _one(lambda: Pause(leader)), lasts_s=8.0, goal_s=SILENT_S),
    Scenario("follower paused", _one(lambda: Pause(a_follower)), goal_s=ASIDE_S, same_term=True),
    Scenario("rolling restart", _one(RollingRestart), lasts_s=0.0, goal_s=CRASH_S),
    # partitions
    Scenario("leader cut off", _one(lambda: Partition(leader, cut)), goal_s=CRASH_S, bystander=True),
    Scenario("leader silent", _one(lambda: Partition(leader, silent)), goal_s=SILENT_S, bystander=True, lasts_s=3.0),
    Scenario("leader lossy", _one(lambda: Partition(leader, lossy)), goal_s=SILENT_S, bystander=True, lasts_s=3.0),
    Scenario("follower cut off", _one(lambda: Partition(a_follower, cut)), goal_s=ASIDE_S, same_term=True),
    Scenario("follower silent", _one(lambda: Partition(a_follower, silent)), goal_s=ASIDE_S, same_term=True),
    Scenario("follower lossy", _one(lambda: Partition(a_follower, lossy)), goal_s=ASIDE_S, same_term=True),
    Scenario("leader deaf", _one(lambda: OneWay(leader, deaf=True)), goal_s=SILENT_S),
    Scenario("leader mute", _one(lambda: OneWay(leader, deaf=False)), goal_s=SILENT_S),
    Scenario("follower deaf", _one(lambda: OneWay(a_follower, deaf=True)), same_term=True, goal_s=ASIDE_S),
    Scenario("follower mute", _one(lambda: OneWay(a_follower, deaf=False)), same_term=True, goal_s=ASIDE_S),
    Scenario("leader undialable", _one(lambda: Undialable(leader))),
    Scenario("bridge", _one(lambda: Bridge(silent)), goal_s=SILENT_S),
    Scenario("five: minority with leader", _one(lambda: Partition(minority_with_leader, silent)), nodes=5,
             goal_s=SILENT_S, bystander=True, lasts_s=3.0),
    Scenario("five: minority away", _one(lambda: Partition(minority_without_leader, lossy)), nodes=5,
             goal_s=ASIDE_S, same_term=True),
    Scenario("five: bridge", _one(lambda: Bridge(cut)), nodes=5),
    # links between nodes
    Scenario("peers reset", lambda seed: [Storm(all_peers, [reset, cut_off], seed=seed)]),
    Scenario("peers slow", _one(lambda: LinkFault(all_peers, delayed(100, 50)))),
    Scenario("peers sliced", _one(lambda: LinkFault(all_peers, sliced()))),
    Scenario("peers narrow", _one(lambda: LinkFault(all_peers, throttled(300)))),
    Scenario("peers slow to close, leader killed",
             lambda seed: [LinkFault(all_peers, slowly_closed(3000)), Kill(leader)], goal_s=SILENT_S),
    Scenario("leader half-open", _one(lambda: HalfOpen(leader)), lasts_s=4.0),
    # a node that was away too long
    Scenario("follower left behind", _one(lambda: LeftBehind(a_follower, None)), same_term=True, goal_s=ASIDE_S),
    Scenario("leader left behind", _one(lambda: LeftBehind(leader, silent)), goal_s=SILENT_S),
    # links of clients
    Scenario("clients cut in commands", _storm(cut_in_command, cut_off), same_term=True),
    Scenario("clients cut before answers", _storm(cut_before_answer, cut_in_answer, swallowed), same_term=True),
    Scenario("clients reset, and slow", lambda seed: [
        LinkFault(all_clients, delayed(30, 20)), Storm(all_clients, [reset], seed=seed)], same_term=True),
    # machines
    Scenario("leader's clock ahead", _one(lambda: ClockJump(leader, 3600.0)), fake_clocks=True),
    Scenario("follower's clock ahead", lambda seed: [ClockJump(a_follower, 60.0), Kill(leader)], fake_clocks=True),
    Scenario("follower's clock behind", lambda seed: [ClockJump(a_follower, -60.0), Kill(leader)], fake_clocks=True),
    Scenario("follower's disk full", _one(lambda: FullDisk(a_follower)), disk_mb=96, same_term=True),
    Scenario("leader's disk full", _one(lambda: FullDisk(leader)), disk_mb=96),
    Scenario("disks at 2 ms", _one(lambda: SlowDisk(everyone, 2.0)), slow_disks=True, same_term=True,
             campaigns_only=True),
    Scenario("disks at 2 ms, leader killed", lambda seed: [SlowDisk(everyone, 2.0), Kill(leader)], slow_disks=True),
    Scenario("leader's disk at 50 ms", _one(lambda: SlowDisk(leader, 50.0)), slow_disks=True, same_term=True,
             campaigns_only=True),
    # files, mistakes, releases
    Scenario("follower's files damaged", lambda seed: [Damaged(a_follower, seed)], after_s=2.5),
    Scenario("leader's files damaged", lambda seed: [Damaged(leader, seed)], after_s=2.5, goal_s=CRASH_S),
    Scenario("second process of a follower", _one(lambda: SecondProcess(a_follower)), same_term=True, goal_s=ASIDE_S),
    Scenario("nodes upgraded", _one(RollingUpgrade), lasts_s=0.0, goal_s=CRASH_S),
    # subscribers on all nodes
    Scenario("heard: leader killed", _one(lambda: Kill(leader)), listeners=True),
    Scenario("heard: all killed", _one(lambda: Kill(everyone)), lasts_s=0.2, after_s=2.5, listeners=True),
    Scenario("heard: leader paused", _one(lambda: Pause(leader)), listeners=True),
    Scenario("heard: rolling restart", _one(RollingRestart), lasts_s=0.0, listeners=True),
    Scenario("heard: leader silent", _one(lambda: Partition(leader, silent)), lasts_s=3.0, listeners=True),
    Scenario("heard: follower cut off", _one(lambda: Partition(a_follower, cut)), same_term=True, listeners=True),
    Scenario("heard: peers reset", lambda seed: [Storm(all_peers, [reset, cut_off], seed=seed)], listeners=True),
    Scenario("heard: follower left behind", _one(lambda: LeftBehind(a_follower, None)), same_term=True, listeners=True),
    # clients of beanstalkd
    Scenario("beanstalkd: leader killed", _one(lambda: Kill(leader)), load=BESIDE, beanstalkd=True),
    Scenario("beanstalkd: leader cut off", _one(lambda: Partition(leader, cut)), load=BESIDE, beanstalkd=True),
    Scenario("beanstalkd: all killed", _one(lambda: Kill(everyone)), lasts_s=0.2, after_s=2.5, load=BESIDE,
             beanstalkd=True),
    Scenario("beanstalkd: program killed", _one(KillProgram), lasts_s=0.2, after_s=2.5, load=BESIDE, beanstalkd=True,
             same_term=True),
    Scenario("beanstalkd: leader paused", _one(lambda: Pause(leader)), load=BESIDE, beanstalkd=True,
             campaigns_only=True),
    Scenario("beanstalkd: leader silent", _one(lambda: Partition(leader, silent)), lasts_s=3.0, load=BESIDE,
             beanstalkd=True, campaigns_only=True),
    Scenario("beanstalkd: follower killed", _one(lambda: Kill(a_follower)), load=BESIDE, beanstalkd=True,
             same_term=True, campaigns_only=True),
    Scenario("beanstalkd: both followers killed", _one(lambda: Kill(followers)), lasts_s=1.5, after_s=2.5, load=BESIDE,
             beanstalkd=True, campaigns_only=True),
    Scenario("beanstalkd: rolling restart", _one(RollingRestart), lasts_s=0.0, load=BESIDE, beanstalkd=True,
             campaigns_only=True),
    Scenario("beanstalkd: peers reset, leader killed", lambda seed: [
        Storm(all_peers, [reset, cut_off], seed=seed), Kill(leader)], load=BESIDE, beanstalkd=True,
             campaigns_only=True),
    # everything at once, in three ways
    Scenario("slow and cut everywhere, leader killed", lambda seed: [
        LinkFault(all_peers, delayed(20, 10)), Kill(leader),
        Storm(all_clients, [cut_in_command, cut_before_answer, reset], seed=seed)], lasts_s=4.0),
    Scenario("peers reset, clients cut, follower paused", lambda seed: [
        Storm(all_peers, [reset], good_s=1.0, seed=seed), Storm(all_clients, [cut_in_answer, swallowed], seed=seed),
        Pause(a_follower)], lasts_s=4.0),
    Scenario("five: leader away, follower killed, peers sliced", lambda seed: [
        LinkFault(all_peers, sliced(500, 300)), Partition(leader, lossy), Kill(a_follower)], nodes=5, lasts_s=4.0),
)
