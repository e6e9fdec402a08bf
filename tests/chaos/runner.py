"""Runs a cluster, clients, and the faults of one scenario or of several in turn, and judges the history."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Self

from msgspec import Struct, structs
from sockpq import Client, survey

from devcluster.cluster import say
from devcluster.node import NodeError
from tests.chaos.beanstalkd.deeds import Deeds
from tests.chaos.beanstalkd.judge import jobs_deleted, judge
from tests.chaos.beanstalkd.judge import summary as summary_of_beanstalkd
from tests.chaos.beanstalkd.load import BeanstalkdLoad
from tests.chaos.checker import VIOLATIONS_MAX, Facts, Node, Running, availability, check, rate_before
from tests.chaos.checker.evidence.moments import is_ok
from tests.chaos.checker.received import judge_events, summary
from tests.chaos.checker.violation import Violation
from tests.chaos.faults.fault import during
from tests.chaos.faults.pages import told
from tests.chaos.faults.processes import NEAR
from tests.chaos.machines.alterable import AlterableCluster
from tests.chaos.machines.cluster import ProxiedCluster
from tests.chaos.proxies.toxiproxy_api import ToxiproxyError
from tests.chaos.scenarios import Scenario
from tests.chaos.workload import load
from tests.chaos.workload.beside import Beside
from tests.chaos.workload.bodies import job_of
from tests.chaos.workload.bystander import Bystander
from tests.chaos.workload.empties import Empties
from tests.chaos.workload.extended_actors import RATES, TRIES
from tests.chaos.workload.heard import Heard
from tests.chaos.workload.history import History
from tests.chaos.workload.listeners import Listeners
from tests.chaos.workload.plain import Unexpected
from tests.chaos.workload.pulse import Turns

CONFIG = {"raft": {"failover_grace_ms": 1000}}
RATE_MIN = 40.0         # acknowledged commands a second before the fault: fewer prove nothing
DONE_MIN = 50           # acknowledged commands while faults were there or after them: fewer prove nothing
DELETED_MIN = 50        # jobs that clients of beanstalkd have deleted: fewer prove nothing
WARM_S = 1.0
WARM_MAX_S = 20.0
LATE_MS = 20_000        # the delay of a lease's end, in addition to the outage: grace, and a slow machine
LEASE_SLACK_MS = 200    # how much sooner: it is measured on the clients' side
STALL_S = 0.3           # on a machine on which a thread or a node stalls this long, timing cannot be judged
TICK_S = 0.02
WINDOW_S = 0.5          # what holds up a node within so long adds up: an election begins after 0.6 s
LEVEL_S = 60.0
SECOND = 1_000_000_000


class Result(Struct):
    """The result of one run."""

    scenario: str
    seed: int
    variants: tuple[str, ...] = ()
    void: str = ""                  # why it proves nothing
    violations: tuple[str, ...] = ()
    gap_s: float = 0.0              # the longest time without an acknowledged command, from the fault to the end
    silence_s: float | None = None  # how long a client that waited at a leader that was cut off was left without a word
    rate: float = 0.0               # acknowledged commands a second before the fault
    commands: int = 0
    fault_s: float = 0.0            # from the beginning of the fault until it was over and all were level
    report: str = ""                # what the faults saw
    stall_s: float = 0.0            # how long the machine held up a thread that should have woken up, or a node
    facts: Facts | None = None      # what the checker was given besides the history, if it ran

    @property
    def passed(self) -> bool:
        """True if the run proves something and nothing is wrong."""
        return not self.void and not self.violations


def run(scenario: Scenario, seed: int, keep: Path | None = None) -> Result:
    """Run a scenario. `keep`: where the history and the logs of a run with violations are left."""
    (result,) = run_in_turn([scenario], seed, keep)
    return result


def run_in_turn(
    scenarios: Sequence[Scenario], seed: int, keep: Path | None = None,
    make: Callable[..., AlterableCluster] = ProxiedCluster, history: History | None = None, deeds: Deeds | None = None,
    besides: Sequence[Beside] = (),
) -> list[Result]:
    """Run scenarios that need the same cluster and load: their faults come one after the other, in one history.

    What is wrong in the history is a violation in all results. `make`: the class of the cluster; `history` and `deeds`:
    where the commands are written down, those of clients of beanstalkd in the second one; `besides`: further clients.
    """
    history, deeds = history or History(), deeds or Deeds()
    results = [Result(scenario.name, seed, scenario.variants) for scenario in scenarios]
    one = scenarios[0]
    cluster = make(
        one.nodes, {**CONFIG, **one.config}, fake_clocks=one.fake_clocks, disk_mb=one.disk_mb,
        slow_disks=one.slow_disks, small_pages=one.small_pages, beanstalkd=one.beanstalkd,
        faulty_disks=one.faulty_disks, thin_disk_mb=one.thin_disk_mb, tls=one.tls,
    )
    with cluster, Stalls(cluster) as stalls:
        try:
            facts = _play(scenarios, cluster, history, deeds, results, stalls, besides)
            facts = structs.replace(
                facts, wake_slack_ms=facts.wake_slack_ms + int(1000 * stalls.worst_s),
                lease_late_ms=LATE_MS + availability(history.records) // 1_000_000,
            )
        except (AssertionError, NodeError, Unexpected) as error:
            _accuse(results, [f"{type(error).__name__}: {error}"])
        except ToxiproxyError as error:
            for result in results:
                result.void = f"toxiproxy failed: {error}"
        else:
            for result in results:
                result.facts = facts
            _accuse(results, _told(check(history, facts)))
        for result in results:
            result.commands = len(history.records)
        if keep is not None and not all(result.passed for result in results):
            _keep(keep / f"{one.name.replace(' ', '_')}-{seed}", cluster, history, deeds, results)
    return results


def _play(
    scenarios: Sequence[Scenario], cluster: AlterableCluster, history: History, deeds: Deeds, results: Sequence[Result],
    stalls: Stalls, besides: Sequence[Beside],
) -> Facts:
    """Run from the first command to the last; returns the facts that the checker needs besides the history."""
    start_ns, one, last, heard = time.monotonic_ns(), scenarios[0], results[-1], Heard()
    servers = {name: cluster.server(name) for name in cluster.names}
    with load.Running(one.load, servers, history, last.seed) as running, ExitStack() as held:
        turns = held.enter_context(Turns([*map(cluster.direct, cluster.names)], one.load.turns, last.seed))
        empties = held.enter_context(Empties({name: cluster.direct(name) for name in cluster.names}, on=one.fast_empty))
        jobs = held.enter_context(
            BeanstalkdLoad(cluster.beanstalkd_doors, deeds, last.seed)) if one.beanstalkd else None
        for beside in besides:
            held.callback(beside.close)
            beside.begin(cluster, last.seed)
        _warm_up(history, results[0])
        listeners = held.enter_context(Listeners(servers, heard)) if one.listeners else None
        for scenario, result in zip(scenarios, results, strict=True):
            healed_ns = _befall(scenario, cluster, history, running, result, stalls)
        for beside in besides:          # while the load asks at a queue with IDLE, which would end with its jobs
            _accuse(results, beside.finish())
            last.report += f"; {beside.report()}"
        running.stop()
        running.check()
        empties.stop()
        turns.stop()
        cluster.wait_until_level(LEVEL_S)
        if jobs is not None:
            jobs.finish()
        drained = _drain(running, empties, results)
        if listeners is not None:
            listeners.finish()
    if listeners is not None:
        _accuse(results, _told(judge_events(heard, history.records)))
        last.report += f"; {summary(heard, history.records)}"
    if one.beanstalkd:
        _accuse(results, _told(judge(deeds, start_ns)))
        last.report += f"; {summary_of_beanstalkd(deeds)}"
        if jobs_deleted(deeds) < DELETED_MIN:
            last.void = f"clients of beanstalkd have deleted only {jobs_deleted(deeds)} jobs"
    _accuse(results, turns.judge(healed_ns / SECOND, history.records, history.cuts, cluster.names, history.late))
    last.report += f"; {len(turns.grants)} turns of a pulse"
    if one.fast_empty:
        _accuse(results, islice(empties.judge(), VIOLATIONS_MAX))
        last.report += f"; {empties.summary()}"
    if one.small_pages:
        written = sum(told(cluster, name, "pages_written_total") for name in cluster.names)
        last.report += f"; {written:.0f} pages were written"
    return _facts(cluster, start_ns, drained=drained)


def _drain(running: load.Running, empties: Empties, results: Sequence[Result]) -> bool:
    """Take the remaining jobs. If that is impossible, a loss could not be detected: the runs are void."""
    try:
        running.drain(empties.sweep)
    except load.NotDrained as error:
        for result in results:
            result.void = str(error)
        return False
    return True


def _befall(
    scenario: Scenario, cluster: AlterableCluster, history: History, running: load.Running, result: Result,
    stalls: Stalls,
) -> int:
    """Apply the faults of one scenario during the load; returns when they were healed, by time.monotonic_ns()."""
    _warm_up(history, result)
    terms, faults = {_term(cluster)}, scenario.faults(result.seed)
    stalls.forget()
    with ExitStack() as held:
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
        cluster.wait_until_level(LEVEL_S, NEAR)
        if bystander is not None:
            result.silence_s = bystander.silence_s()
    terms.add(_term(cluster))
    result.fault_s = (time.monotonic_ns() - begun_ns) / SECOND
    history.cuts += [cut for fault in faults for cut in fault.cuts]
    history.late += [cut for fault in faults for cut in fault.late]
    for record in (record for fault in faults for record in fault.records):
        history.add(record)
    done = sum(is_ok(record) and record.start_ns > begun_ns for record in history.records)
    result.report, result.stall_s = "; ".join(fault.report() for fault in faults), stalls.recent_s
    _judge(scenario, result, [fault.report() for fault in faults if not fault.fired], terms, done)
    return healed_ns


def _warm_up(history: History, result: Result) -> None:
    """Wait until enough commands are acknowledged."""
    until = time.monotonic() + WARM_MAX_S
    result.rate = rate_before(list(history.records), time.monotonic_ns())
    while result.rate < RATE_MIN and time.monotonic() < until:
        time.sleep(WARM_S)
        result.rate = rate_before(list(history.records), time.monotonic_ns())


def _told(found: Iterable[Violation]) -> list[str]:
    return [f"{one.rule}: {one.text}" for one in found]


def _accuse(results: Iterable[Result], violations: Iterable[str]) -> None:
    """Add the violations of the history to all results, whichever fault caused them."""
    found = tuple(violations)
    for result in results:
        result.violations += found


def _judge(scenario: Scenario, result: Result, not_fired: list[str], terms: set[int], done: int) -> None:
    """Judge whether it is void, and what was seen from outside. `done`: how many commands were acknowledged since
    the fault began."""
    if not_fired:
        result.void = f"the fault did not fire: {'; '.join(not_fired)}"
    elif result.rate < RATE_MIN:
        result.void = f"only {result.rate:.0f} commands a second were acknowledged before the fault"
    elif done < DONE_MIN:
        result.void = f"only {done} commands were acknowledged since the fault began"
    elif scenario.same_term and len(terms) > 1:
        if result.stall_s > STALL_S:
            result.void = f"the machine stood still for {result.stall_s:.1f} s"
        else:
            result.violations += ("term: the leader changed, though nothing befell it",)


def _facts(cluster: AlterableCluster, start_ns: int, *, drained: bool) -> Facts:
    nodes = _nodes(cluster)
    with Client([cluster.direct(name) for name in cluster.names]) as client:
        totals = client.total()
        running = tuple(Running(job.id, job_of(job.data or b"", job.queue)) for job in client.running(data=True))
    return Facts(
        start_ns=start_ns, lease_slack_ms=LEASE_SLACK_MS, drained=drained,
        running=running, waiting=totals.jobs, nodes=nodes, tries=TRIES, rates=RATES,
    )


def _nodes(cluster: AlterableCluster) -> tuple[Node, ...]:
    """Return what all nodes report, once all have executed the same entries (sessions may still end for a moment)."""
    until = time.monotonic() + LEVEL_S
    while True:
        nodes = tuple(_node(cluster, name) for name in cluster.names)
        if len({node.applied for node in nodes}) == 1 or time.monotonic() > until:
            return nodes
        time.sleep(0.1)


def _node(cluster: AlterableCluster, name: str) -> Node:
    """Return what a node reports."""
    _, _, applied, value = (say(cluster.direct(name), "CLUSTER HASH", 5.0) or "? ? -1 -").split()
    totals = (say(cluster.direct(name), "TOTAL", 5.0) or "? ? -1 -1 -1 -1").split()[2:]
    queues, priorities, waiting, taken = map(int, totals)
    return Node(name, int(applied), value, (queues, priorities, waiting, taken))


def _term(cluster: AlterableCluster) -> int:
    """Return the present term, as the serving node reports it."""
    leader = cluster.wait_for_leader()
    (view,) = survey([cluster.direct(leader)], 5.0)
    return max(node.term or 0 for node in view.nodes)


class Stalls:
    """Measures how late a nearly idle thread wakes up, and how long runnable nodes wait for a processor."""

    def __init__(self, cluster: AlterableCluster) -> None:
        self.worst_s = 0.0          # since the beginning
        self.recent_s = 0.0         # since the last `forget`
        self._cluster = cluster
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stalls", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def forget(self) -> None:
        """Discard earlier stalls."""
        self.recent_s = 0.0

    def _watch(self) -> None:
        before = time.monotonic()
        waited: deque[tuple[float, dict[int, float]]] = deque()
        while not self._ended.wait(TICK_S):
            now = time.monotonic()
            waited.append((now, _waited_s(self._cluster)))
            while waited[0][0] < now - WINDOW_S:
                waited.popleft()
            first, last = waited[0][1], waited[-1][1]
            nodes_s = (seconds - first.get(pid, seconds) for pid, seconds in last.items())
            held_up_s = max([now - before - TICK_S, *nodes_s])
            self.recent_s, self.worst_s = max(self.recent_s, held_up_s), max(self.worst_s, held_up_s)
            before = now


def _waited_s(cluster: AlterableCluster) -> dict[int, float]:
    """Return how long each running node was runnable and had to wait, since it began; empty if Linux does not
    report it.
    """
    waited: dict[int, float] = {}
    for pid in map(cluster.pid, cluster.names):
        if pid is not None:
            with contextlib.suppress(OSError):
                waited[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / SECOND
    return waited


def _keep(
    folder: Path, cluster: AlterableCluster, history: History, deeds: Deeds, results: Sequence[Result],
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    history.save(folder / "history.jsonl")
    if deeds.deeds:
        deeds.save(folder / "beanstalkd.jsonl")
    lines: dict[str, None] = {}
    for result in results:
        variants = "".join(f", {word}" for word in result.variants)
        void = [f"void: {result.void}"] if result.void else []
        lines |= dict.fromkeys(
            [f"{result.scenario}, seed {result.seed}{variants}: {result.report}", *void, *result.violations])
    (folder / "result.txt").write_text("\n".join(lines) + "\n", "utf-8")
    for name in cluster.names:
        (folder / f"{name}.log").write_text(cluster.logs(name), "utf-8")


def table(results: list[Result], goals: dict[str, float | None]) -> str:
    """Return a line for each scenario, in Markdown: its runs and the longest times without service."""
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
