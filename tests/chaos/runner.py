"""One scenario, once: a cluster, clients at work, a fault, and the judgement of the whole history."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from msgspec import Struct, structs
from sockpq import Client, survey

from devcluster.cluster import say
from devcluster.node import NodeError
from tests.chaos.beanstalkd.deeds import Deeds
from tests.chaos.beanstalkd.judge import jobs_deleted, judge
from tests.chaos.beanstalkd.judge import summary as summary_of_beanstalkd
from tests.chaos.beanstalkd.load import BeanstalkdLoad
from tests.chaos.checker import Facts, Node, Running, availability, check, rate_before
from tests.chaos.checker.told import judge_events, summary
from tests.chaos.faults.fault import during
from tests.chaos.machines.cluster import ProxiedCluster
from tests.chaos.proxies.toxiproxy_api import ToxiproxyError
from tests.chaos.scenarios import Scenario
from tests.chaos.workload import load
from tests.chaos.workload.bodies import job_of
from tests.chaos.workload.bystander import Bystander
from tests.chaos.workload.extended_actors import RATES, TRIES
from tests.chaos.workload.heard import Heard
from tests.chaos.workload.history import History
from tests.chaos.workload.listeners import Listeners
from tests.chaos.workload.plain import Unexpected
from tests.chaos.workload.pulse import Turns

CONFIG = {"raft": {"failover_grace_ms": 1000}}
RATE_MIN = 40.0         # acknowledged commands a second before the fault: fewer prove nothing
DELETED_MIN = 50        # jobs that clients of beanstalkd have deleted: fewer prove nothing
WARM_S = 1.0
WARM_MAX_S = 20.0
LATE_MS = 20_000        # how much later than it should a lease may end, beside the outage: grace, and a slow machine
LEASE_SLACK_MS = 200    # how much sooner: it is measured on the clients' side
STALL_S = 0.3           # a machine on which a thread or a node is held up so long tells nothing about timing
TICK_S = 0.02
WINDOW_S = 0.5          # what holds up a node within so long adds up: an election begins after 0.6 s
LEVEL_S = 60.0
SECOND = 1_000_000_000


class Result(Struct):
    """What became of one run."""

    scenario: str
    seed: int
    void: str = ""                  # why it proves nothing
    violations: tuple[str, ...] = ()
    gap_s: float = 0.0              # the longest time without an acknowledged command, from the fault to the end
    silence_s: float | None = None  # how long a client that waited at a leader that was cut off was left without a word
    rate: float = 0.0               # acknowledged commands a second before the fault
    commands: int = 0
    report: str = ""                # what the faults saw
    stall_s: float = 0.0            # how long the machine held up a thread that should have woken up, or a node

    @property
    def passed(self) -> bool:
        """It proves something, and that is good."""
        return not self.void and not self.violations


def run(scenario: Scenario, seed: int, keep: Path | None = None) -> Result:
    """Run it. `keep`: where the history and the logs of a run with violations are left."""
    history, deeds, result = History(), Deeds(), Result(scenario.name, seed)
    cluster = ProxiedCluster(
        scenario.nodes, {**CONFIG, **scenario.config}, fake_clocks=scenario.fake_clocks, disk_mb=scenario.disk_mb,
        slow_disks=scenario.slow_disks, small_pages=scenario.small_pages, beanstalkd=scenario.beanstalkd,
    )
    with cluster, _stalls(cluster, result):
        try:
            facts = _play(scenario, cluster, history, deeds, result)
            facts = structs.replace(
                facts, wake_slack_ms=facts.wake_slack_ms + int(1000 * result.stall_s),
                lease_late_ms=LATE_MS + availability(history.records) // 1_000_000,
            )
        except (AssertionError, NodeError, Unexpected) as error:
            result.violations = (f"{type(error).__name__}: {error}",)
        except ToxiproxyError as error:
            result.void = f"toxiproxy failed: {error}"
        else:
            result.violations += tuple(f"{found.rule}: {found.text}" for found in check(history, facts))
        result.commands = len(history.records)
        if keep is not None and not result.passed:
            _keep(keep / f"{scenario.name.replace(' ', '_')}-{seed}", cluster, history, deeds, result)
    return result


def _play(
    scenario: Scenario, cluster: ProxiedCluster, history: History, deeds: Deeds, result: Result,
) -> Facts:
    """The run from the first command to the last; what the checker must know beside the history."""
    start_ns = time.monotonic_ns()
    servers = {name: cluster.server(name) for name in cluster.names}
    faults, heard = scenario.faults(result.seed), Heard()
    with load.Running(scenario.load, servers, history, result.seed) as running, ExitStack() as held:
        turns = held.enter_context(Turns([*map(cluster.direct, cluster.names)], scenario.load.turns, result.seed))
        jobs = held.enter_context(
            BeanstalkdLoad(cluster.beanstalkd_doors, deeds, result.seed)) if scenario.beanstalkd else None
        _warm_up(history, result)
        terms = {_term(cluster)}
        listeners = held.enter_context(Listeners(servers, heard)) if scenario.listeners else None
        bystander = held.enter_context(closing(Bystander(cluster))) if scenario.bystander else None
        begun_ns = time.monotonic_ns()
        with during(cluster, *faults):
            if bystander is not None:
                bystander.watch()
            time.sleep(scenario.lasts_s)
        healed_ns = time.monotonic_ns()
        cluster.wait_for_leader()
        time.sleep(scenario.after_s)
        running.check()
        result.gap_s = availability(history.records, begun_ns, healed_ns + int(scenario.after_s * SECOND)) / SECOND
        running.stop()
        running.check()
        turns.stop()
        cluster.wait_until_level(LEVEL_S)
        if jobs is not None:
            jobs.finish()
        running.drain()
        if listeners is not None:
            listeners.finish()
        if bystander is not None:
            result.silence_s = bystander.silence_s()
    terms.add(_term(cluster))
    history.cuts += [cut for fault in faults for cut in fault.cuts]
    result.report = "; ".join(fault.report() for fault in faults)
    if listeners is not None:
        result.violations += tuple(f"{found.rule}: {found.text}" for found in judge_events(heard, history.records))
        result.report += f"; {summary(heard, history.records)}"
    if scenario.beanstalkd:
        result.violations += tuple(f"{found.rule}: {found.text}" for found in judge(deeds, start_ns))
        result.report += f"; {summary_of_beanstalkd(deeds)}"
        if jobs_deleted(deeds) < DELETED_MIN:
            result.void = f"clients of beanstalkd have deleted only {jobs_deleted(deeds)} jobs"
    result.violations += tuple(turns.judge(healed_ns / SECOND))
    result.report += f"; {len(turns.grants)} turns of a pulse"
    _judge(scenario, result, [fault.report() for fault in faults if not fault.fired], terms)
    return _facts(scenario, cluster, start_ns)


def _warm_up(history: History, result: Result) -> None:
    until = time.monotonic() + WARM_MAX_S
    while result.rate < RATE_MIN and time.monotonic() < until:
        time.sleep(WARM_S)
        result.rate = rate_before(list(history.records), time.monotonic_ns())


def _judge(scenario: Scenario, result: Result, not_fired: list[str], terms: set[int]) -> None:
    """Is it void, and is what was seen from outside as it should be?"""
    if not_fired:
        result.void = f"the fault did not fire: {'; '.join(not_fired)}"
    elif result.rate < RATE_MIN:
        result.void = f"only {result.rate:.0f} commands a second were acknowledged before the fault"
    elif scenario.same_term and len(terms) > 1:
        if result.stall_s > STALL_S:
            result.void = f"the machine stood still for {result.stall_s:.1f} s"
        else:
            result.violations += ("term: the leader changed, though nothing befell it",)


def _facts(scenario: Scenario, cluster: ProxiedCluster, start_ns: int) -> Facts:
    nodes = _nodes(cluster)
    with Client([cluster.direct(name) for name in cluster.names]) as client:
        totals = client.total()
        running = tuple(Running(job.id, job_of(job.data or b"", job.queue)) for job in client.running(data=True))
    return Facts(
        start_ns=start_ns, lease_slack_ms=LEASE_SLACK_MS, drained=True,
        running=running, waiting=totals.jobs, nodes=nodes, tries=TRIES, rates=RATES,
    )


def _nodes(cluster: ProxiedCluster) -> tuple[Node, ...]:
    """All nodes in their own words, once all have executed the same entries (sessions may still end for a moment)."""
    until = time.monotonic() + LEVEL_S
    while True:
        nodes = tuple(_node(cluster, name) for name in cluster.names)
        if len({node.applied for node in nodes}) == 1 or time.monotonic() > until:
            return nodes
        time.sleep(0.1)


def _node(cluster: ProxiedCluster, name: str) -> Node:
    """A node in its own words."""
    _, _, applied, value = (say(cluster.direct(name), "CLUSTER HASH", 5.0) or "? ? -1 -").split()
    totals = (say(cluster.direct(name), "TOTAL", 5.0) or "? ? -1 -1 -1 -1").split()[2:]
    queues, priorities, waiting, taken = map(int, totals)
    return Node(name, int(applied), value, (queues, priorities, waiting, taken))


def _term(cluster: ProxiedCluster) -> int:
    """The present term, by the node that serves."""
    leader = cluster.wait_for_leader()
    (view,) = survey([cluster.direct(leader)], 5.0)
    return max(node.term or 0 for node in view.nodes)


@contextmanager
def _stalls(cluster: ProxiedCluster, result: Result) -> Iterator[None]:
    """Measure how late a thread wakes up that wants little, and how long nodes that could run wait for a processor."""
    ended = threading.Event()
    waited: deque[tuple[float, dict[int, float]]] = deque()

    def watch() -> None:
        before = time.monotonic()
        while not ended.wait(TICK_S):
            now = time.monotonic()
            waited.append((now, _waited_s(cluster)))
            while waited[0][0] < now - WINDOW_S:
                waited.popleft()
            first, last = waited[0][1], waited[-1][1]
            held_up = [seconds - first.get(pid, seconds) for pid, seconds in last.items()]
            result.stall_s = max(result.stall_s, now - before - TICK_S, *held_up)
            before = now

    thread = threading.Thread(target=watch, name="stalls", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _waited_s(cluster: ProxiedCluster) -> dict[int, float]:
    """For how long each node that runs was ready to and had to wait, since it began; nothing if Linux does not tell."""
    waited: dict[int, float] = {}
    for pid in map(cluster.pid, cluster.names):
        if pid is not None:
            with contextlib.suppress(OSError):
                waited[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / SECOND
    return waited


def _keep(folder: Path, cluster: ProxiedCluster, history: History, deeds: Deeds, result: Result) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    history.save(folder / "history.jsonl")
    if deeds.deeds:
        deeds.save(folder / "beanstalkd.jsonl")
    lines = [result.report, f"void: {result.void}" if result.void else "", *result.violations]
    (folder / "result.txt").write_text("\n".join(lines) + "\n", "utf-8")
    for name in cluster.names:
        (folder / f"{name}.log").write_text(cluster.logs(name), "utf-8")


def table(results: list[Result], goals: dict[str, float | None]) -> str:
    """A line for each scenario, in Markdown: its runs and the longest times without service."""
    lines = ["| scenario | runs | gap, median | worst | goal | reached | word to waiting clients |",
             "|---|---|---|---|---|---|---|"]
    for name in dict.fromkeys(result.scenario for result in results):
        counted = [one for one in results if one.scenario == name and not one.void]
        if not counted:
            continue
        gaps = [one.gap_s for one in counted]
        goal, silences = goals.get(name), [one.silence_s for one in counted if one.silence_s is not None]
        lines.append(
            f"| {name} | {len(counted)} | {statistics.median(gaps):.2f} s | {max(gaps):.2f} s "
            f"| {'' if goal is None else f'{goal:g} s'} | {'' if goal is None else sum(gap <= goal for gap in gaps)} "
            f"| {f'{max(silences):.2f} s' if silences else ''} |")
    return "\n".join(lines)
