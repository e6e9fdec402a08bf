"""The metrics of a node in the Prometheus text format. OPERATIONS.md explains each of them.

Nothing is stored here: all figures are gathered on request. Counters are plain ints kept where the events happen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from sockpqd.cluster import Figures, Histogram
from sockpqd.core import GroupCounts, Machine
from sockpqd.gateway.monitoring.loop_lag import LoopLag
from sockpqd.gateway.monitoring.map_figures import map_figures
from sockpqd.gateway.monitoring.pulse_figures import busiest_pulses
from sockpqd.gateway.monitoring.queue_depths import Depths
from sockpqd.gateway.monitoring.readiness import why_not_ready
from sockpqd.gateway.replica import Phase
from sockpqd.gateway.server.hub import Hub

ROLES = ("LEADER", "FOLLOWER", "CANDIDATE", "LEARNER")
ERROR_CODES = ("400", "401", "403", "404", "409", "413", "500", "501", "503", "504")  # exported even at 0

# Counters of a queue since it was created; they disappear with it.
HISTORIES = (
    ("jobs_put", "Jobs that came into the queue: PUT, MOVE, KICK.", "put"),
    ("jobs_taken", "Jobs handed out.", "taken"),
    ("jobs_done", "Jobs handed out and then done.", "done"),
    ("jobs_later", "Jobs handed out and then returned by LATER.", "later"),
    ("jobs_expired", "Jobs handed out whose lease expired.", "expired"),
    ("jobs_dead", "Jobs that were given up.", "dead"),
    ("jobs_ttl", "Jobs whose TTL expired.", "expired_ttl"),
)


class Sources(Struct, frozen=True):
    """The sources of the metrics.

    `lines_lost()`: dropped log lines; `certificates()`: each certificate's key in the configuration and its expiry in
    Unix time.
    """

    hub: Hub
    version: str
    loop_lag: LoopLag
    lines_lost: Callable[[], int]
    certificates: Callable[[], Iterable[tuple[str, float]]]


def text(
    sources: Sources, depths: Depths, named: tuple[str, ...], groups: list[tuple[str, GroupCounts]],
) -> Iterator[bytes]:
    """Yield the pieces of the page; each takes a millisecond or two.

    `named`: prefixes of the pulses shown by name; `groups`: the groups shown by name.
    """
    yield _page(_Gathered(sources, depths, named))
    for metric in _groups(groups):
        yield _page(_Made(metric))
    for metric in _histories(depths):
        yield _page(_Made(metric))


def _page(collector: Collector) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)


class _Made(Collector):
    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


class _Gathered(Collector):
    def __init__(self, sources: Sources, depths: Depths, named: tuple[str, ...]) -> None:
        self._sources = sources
        self._named = named
        self._depths = depths

    def collect(self) -> Iterator[Metric]:
        """Read all figures from the sources and yield their metrics."""
        figures = self._sources.hub.cluster.figures()
        yield from self._node(figures)
        yield from self._map()
        yield from _raft(figures)
        yield from _storage(figures)
        yield from _marks(figures)
        yield from _waiting(figures)
        yield from self._jobs()
        yield from self._pulses()
        yield from _fair_shares(self._sources.hub.cluster.machine)
        yield from self._clients(figures)
        yield from _regions(self._sources.hub)
        yield from self._process(figures)

    def _node(self, figures: Figures) -> Iterator[Metric]:
        cluster = self._sources.hub.cluster
        yield _labelled("build_info", "The running version; always 1.", "version", [(self._sources.version, 1)])
        yield _labelled("role", "1 for the role of this node.", "role",
                        [(role, role == figures.role) for role in ROLES])
        yield _gauge("serving", "1 if this node executes the commands of clients.", cluster.serving)
        yield _gauge("ready", "1 if /readyz says that the node is ready.", why_not_ready(cluster) is None)
        yield _gauge("node_online", "0 while an operator has switched this node offline.", cluster.online)
        yield _gauge("service_online", "0 while an operator has switched the service offline.", cluster.machine.online)

    def _map(self) -> Iterator[Metric]:
        machine = self._sources.hub.cluster.machine
        figures = map_figures(machine.cluster_id, machine.cluster_map)
        info = GaugeMetricFamily(
            "sockpqd_cluster_info", "The cluster of this node: its name in the map, or -, and its id; always 1.",
            labels=("name", "id"),      # not "cluster", a label that many give to their targets
        )
        info.add_metric((figures.own, figures.id), 1)
        yield info
        yield _gauge("map_version", "Version of the map of clusters, 0: there is none.", figures.version)
        yield _labelled("map_prefixes", "Prefixes of names that a cluster of the map owns by a line; owner - counts "
                        "those that no cluster accepts now.", "owner", figures.prefixes.items())
        yield _labelled("map_moving", "Prefixes of names that move away from a cluster of the map.", "source",
                        figures.moving.items())

    def _jobs(self) -> Iterator[Metric]:
        depths = self._depths
        yield _gauge("queues", "Queues that have a job or settings.", depths.totals.queues)
        jobs = GaugeMetricFamily(
            "sockpqd_jobs", "Jobs by queue and state; the empty queue name stands for all queues not listed.",
            labels=("queue", "state"),
        )
        for depth in depths.queues:
            jobs.add_metric((depth.queue, "waiting"), depth.waiting)
            jobs.add_metric((depth.queue, "delayed"), depth.delayed)
            jobs.add_metric((depth.queue, "running"), depth.running)
            jobs.add_metric((depth.queue, "dead"), depth.dead)
            jobs.add_metric((depth.queue, "buried"), depth.buried)
        yield jobs

    def _pulses(self) -> Iterator[Metric]:
        hub = self._sources.hub
        pulses = busiest_pulses(hub.cluster, self._named)
        yield _gauge("pulses", "Pulses, those of queues included.", len(hub.cluster.machine.pulses))
        yield _counted("pulse_granted", "Grants of a pulse.", "pulse", [(one.name, one.granted) for one in pulses])
        yield _counted("pulse_errors", "Results of a pulse's grants other than OK.", "pulse",
                       [(one.name, one.errors) for one in pulses])
        yield _labelled("pulse_rate", "Grants in a period when nothing slows the pulse down.", "pulse",
                        [(one.name, one.rate) for one in pulses])
        yield _labelled("pulse_now", "Grants in a period at present.", "pulse", [(one.name, one.now) for one in pulses])
        yield _labelled("pulse_pause_seconds", "By how much a period is longer at present.", "pulse",
                        [(one.name, one.pause_ms / 1000) for one in pulses])
        asleep_ms = hub.cluster.time_ms
        yield _labelled("pulse_asleep_seconds", "For how long the pulse gives no grants.", "pulse",
                        [(one.name, max(0, one.sleep_until_ms - asleep_ms) / 1000) for one in pulses])
        if hub.cluster.serving:
            yield _labelled("pulse_waiting", "Clients that wait for a turn, on the leader.", "pulse",
                            [(one.name, hub.grant_waiters.waiting(one.name)) for one in pulses])

    def _clients(self, figures: Figures) -> Iterator[Metric]:
        hub, tally = self._sources.hub, self._sources.hub.tally
        yield _counted("commands", "Commands executed, by verb.", "verb", tally.by_verb().items())
        errors = dict.fromkeys(ERROR_CODES, 0) | {code.decode(): count for code, count in tally.errors.items()}
        yield _counted("errors", "Error answers, by code.", "code", errors.items())
        yield _gauge("connections", "Clients connected.", len(hub.connections))
        yield _gauge("connections_max", "limits.connections_max.", hub.limits.connections_max)
        yield _gauge("subscriptions", "Subscriptions to events, over HTTP as well.", len(hub.subscriptions))
        yield _counter("events", "Events since the cluster began, whether or not anybody listened.",
                       hub.cluster.machine.event_seq)
        yield _counter("connections_accepted", "Clients accepted.", tally.connections)
        yield _counter("connections_refused", "Clients turned away by the connection limits.",
                       tally.refused_connections)
        yield _gauge("held_bytes", "Memory held for clients besides their jobs.", hub.account.held_bytes)
        yield _gauge("held_bytes_max", "Limit of held_bytes.", hub.account.limit_bytes)
        yield _counter("connections_evicted", "Clients cut off because they held the most memory.", hub.account.evicted)
        yield _gauge("waiters", "Commands waiting for a job.", len(hub.job_waiters))
        yield _gauge("awaiting", "Commands waiting for the end of a job.", len(hub.end_waiters))
        yield _gauge("sessions", "Open sessions.", hub.cluster.machine.session_count)
        yield _gauge("proposals", "Operations without an outcome yet.", figures.proposals)
        yield _gauge("backlog_bytes", "Size of the operations without an outcome yet.", figures.backlog_bytes)

    def _process(self, figures: Figures) -> Iterator[Metric]:
        sources = self._sources
        yield _counter("cpu_seconds", "Processor time of this process.", time.process_time())
        yield _histogram("loop_lag_seconds", "How late the event loop was, sampled four times a second.",
                         sources.loop_lag.seconds)
        yield _histogram("turn_seconds", "Turns of the loop, from the first event to the last answer.", figures.turns)
        yield _gauge("turn_longest_seconds", "The longest turn of the last one to two minutes.", figures.turn_longest_s)
        yield _counter("log_lines_lost", "Log lines dropped because they could not be written in time.",
                       sources.lines_lost())
        yield _labelled("certificate_expiry_seconds", "Unix time at which a certificate expires.", "certificate",
                        sources.certificates())


def _regions(hub: Hub) -> Iterator[Metric]:
    yield _gauge("feeds", "Copies of this cluster in other regions that this node feeds.", hub.feeds.running)
    yield _counter("feed_entries", "Entries of the log sent to copies.", hub.feeds.sent_entries)
    yield _counter("feed_bytes", "Size of these entries, with their lines.", hub.feeds.sent_bytes)
    puller = hub.puller
    if puller is None:
        return
    figures = puller.figures
    yield _labelled("replica_phase", "1 for what this node does as a part of a replica.", "phase",
                    [(phase.value, phase is figures.phase) for phase in Phase])
    index = hub.cluster.machine.mirrored
    yield _gauge("replica_index", "Last entry of the origin that the mirror has executed.", index or 0)
    yield _counter("replica_entries", "Entries of the origin received.", figures.entries)
    yield _counter("replica_bytes", "Size of these entries.", figures.entry_bytes)
    yield _counter("replica_snapshot_bytes", "Bytes of the origin's snapshots received.", figures.snapshot_bytes)
    yield _counter("replica_connections", "Connections to servers of the origin.", figures.connections)
    if figures.phase is not Phase.IDLE:
        yield _gauge("replica_lag_entries", "Entries that the origin last reported and the mirror lacks.",
                     puller.lag_entries)
        if puller.lag_s is not None:
            yield _gauge("replica_lag_seconds", "How long ago the mirror had all that the origin had executed.",
                         puller.lag_s)


def _histories(depths: Depths) -> Iterator[Metric]:
    past = [(depth.queue, depth.history) for depth in depths.queues if depth.history is not None]
    for name, meaning, field in HISTORIES:
        yield _counted(name, meaning, "queue", [(queue, getattr(history, field)) for queue, history in past])
    yield _labelled("oldest_ready_seconds", "How long the oldest READY job has been waiting, 0: none.",
                    "queue", [(queue, history.oldest_ms / 1000) for queue, history in past])


def _groups(groups: list[tuple[str, GroupCounts]]) -> Iterator[Metric]:
    jobs = GaugeMetricFamily(
        "sockpqd_group_jobs", "Jobs of a group that has settings, by state.", labels=("group", "state"),
    )
    for name, counts in groups:
        for state in ("ready", "delayed", "running"):
            jobs.add_metric((name, state), getattr(counts, state))
    yield jobs
    its = [(name, counts.settings) for name, counts in groups]
    yield _labelled("group_limit", "How many jobs of the group may run, 0: any number.", "group",
                    [(name, one.limit) for name, one in its])
    yield _labelled("group_rate", "Hand-outs a second that the group may have, 0: any number.", "group",
                    [(name, one.rate * 1000 / (one.per_ms or 1)) for name, one in its])
    yield _labelled("group_weight", "The weight of the group in fair shares.", "group",
                    [(name, one.weight) for name, one in its])
    yield _labelled("group_paused", "1 while the group is paused.", "group", [(name, one.paused) for name, one in its])


def _fair_shares(machine: Machine) -> Iterator[Metric]:
    levels = [(str(one.level), one) for one in machine.fair_levels()]
    yield _counted("fair_time_seconds", "Run time that a level of FAIR has had.", "level",
                   [(level, one.time_us / 1_000_000) for level, one in levels])
    yield _counted("fair_choices", "Choices of a level of FAIR.", "level",
                   [(level, one.selected) for level, one in levels])
    yield _labelled("fair_waiting_groups", "Groups of a level of FAIR that have a READY job.", "level",
                    [(level, one.waiting) for level, one in levels])
    yield _gauge("groups_with_settings", "Groups that have settings, or are paused.",
                 len(machine.groups_with_settings()))
    items, held = machine.item_totals
    yield _gauge("items", "Items: those that have a job or are held.", items)
    yield _gauge("items_held", "Items that are held.", held)
    yield _gauge("fair_groups", "Groups that have an unfinished job, 0 before groups are used.",
                 machine.unfinished_groups())


def _raft(figures: Figures) -> Iterator[Metric]:
    yield _gauge("term", "Term of the log.", figures.term)
    yield _gauge("commit_index", "Last entry known to be committed.", figures.commit_index)
    yield _gauge("applied_index", "Last entry applied here.", figures.applied_index)
    yield _gauge("lag_entries", "Entries committed but not applied here.", figures.lag)
    yield _gauge("feature_level", "Feature level of the cluster.", figures.cluster_level)
    yield _gauge("feature_level_known", "Feature level that this node knows.", figures.level)
    yield _gauge("rejoining", "1 while this node, which has set damaged files aside, has no vote.", figures.rejoining)
    yield _counter("damaged_files", "Damaged files found while this process runs.", figures.damaged_files)
    yield _counter("scrubbed_bytes", "Read again to look for damage.", figures.scrubbed_bytes)
    yield _counter("leader_changes", "New leaderships seen.", figures.leader_changes)
    yield _counter("elections", "Elections that this node started.", figures.elections)
    yield _histogram("commit_latency_seconds", "From proposing an entry to applying it, on the leader.",
                     figures.commit_latency)
    yield _labelled("peer_up", "1 if this node hears from the peer.", "peer",
                    [(peer.name, peer.up) for peer in figures.peers])
    yield _labelled("peer_lag_entries", "How far the peer is behind, as it last reported.", "peer",
                    [(peer.name, peer.lag) for peer in figures.peers if peer.lag is not None])
    for name, meaning, ahead_ms in (
        ("clock_ahead", "How far this node's clock is ahead of the median of all.", figures.clock_ahead_ms),
        ("time_ahead", "How far the time of jobs and leases is ahead of that median.", figures.time_ahead_ms),
    ):
        if ahead_ms is not None:
            yield _gauge(f"{name}_seconds", meaning, ahead_ms / 1000)


def _storage(figures: Figures) -> Iterator[Metric]:
    yield _histogram("journal_sync_seconds", "How long the disk took to make the journal durable.", figures.fsync)
    yield _histogram("journal_prepare_seconds", "Time to create a new segment of the journal in the background.",
                     figures.preparations)
    yield _gauge("journal_bytes", "Size of the entries not covered by the newest snapshot.", figures.journal_bytes)
    yield _gauge("journal_room_bytes", "What the journal can take without allocating disk space.", figures.journal_room)
    yield _gauge("snapshot_index", "Last entry in the newest snapshot.", figures.snapshot_index)
    yield _gauge("snapshot_bytes", "Size of the newest snapshot.", figures.snapshot_bytes)
    yield _gauge("snapshot_write_seconds", "How long this node took to write its last snapshot.", figures.snapshot_s)


def _marks(figures: Figures) -> Iterator[Metric]:
    yield _gauge("memory_bytes", "Resident memory.", figures.memory_bytes)
    yield _gauge("memory_used_bytes", "Memory in use: resident memory less what is free for new jobs.",
                 figures.memory_used_bytes)
    yield _gauge("memory_mark_bytes", "Memory in use above which PUT is refused.", figures.memory_mark_bytes)
    yield _gauge("disk_free_bytes", "Free space on the disk of data_dir.", figures.disk_free_bytes)
    yield _gauge("disk_free_min_bytes", "Free space below which PUT is refused.", figures.disk_free_bytes_min)
    yield _labelled("disk_held_bytes", "Who holds the disk of data_dir.", "what", figures.disk_held)
    yield _labelled("mark_reached", "1 while a mark of this node is reached.", "mark",
                    [("memory", figures.memory_reached), ("disk", figures.disk_reached),
                     ("journal", figures.journal_reached)])
    yield _gauge("full", "1 while PUT would be refused: no room here, or on too many other nodes.", figures.full)


def _waiting(figures: Figures) -> Iterator[Metric]:
    yield _gauge("hot_bytes", "What the waiting jobs take in memory, about, with what finds those on the disk.",
                 figures.hot_bytes)
    yield _gauge("hot_bytes_max", "limits.hot_bytes: more than that goes to the disk; 0: nothing does.",
                 figures.hot_bytes_max)
    paging = figures.paging
    if paging is not None:
        yield _gauge("paged_jobs", "Waiting jobs that are on the disk, or whose bodies are.", paging.jobs)
        yield _gauge("paged_data_bytes", "Size of their data.", paging.data_bytes)
        yield _gauge("paged_bodies", "Large bodies on the disk whose jobs, in any state, are in memory.", paging.bodies)
        yield _gauge("paged_body_bytes", "Size of these bodies.", paging.body_bytes)
        yield _gauge("page_file_bytes", "Size of the files they, and records of ended jobs, are in.", paging.file_bytes)
        yield _gauge("page_live_bytes", "The part of these files that is needed.", paging.live_bytes)
        yield _gauge("page_files", "Number of these files.", paging.files)
        yield _gauge("page_files_rewriting", "Files of which the little that is needed is being written to others.",
                     paging.rewriting)
        yield _counter("pages_read", "Pages of jobs read.", paging.read)
        yield _counter("pages_written", "Pages of jobs written.", paging.written)
        yield _counter("pages_moved", "Pages written again, to give up files with little else.", paging.moved)
        yield _counter("pages_read_ahead", "Pages that the system was asked to read before they were needed.",
                       paging.expected)
        yield _counter("page_misses", "Pages that were not in memory when they were needed.", paging.misses)
        yield _histogram("page_read_seconds", "How long it took to read a page, from memory or the disk.", paging.reads)


# ---- one metric each, named with our prefix

def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(f"sockpqd_{name}", meaning, value=value)


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(f"sockpqd_{name}", meaning, value=value)


def _labelled(name: str, meaning: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    metric = GaugeMetricFamily(f"sockpqd_{name}", meaning, labels=(label,))
    for value, number in values:
        metric.add_metric((value,), number)
    return metric


def _counted(name: str, meaning: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    metric = CounterMetricFamily(f"sockpqd_{name}", meaning, labels=(label,))
    for value, number in values:
        metric.add_metric((value,), number)
    return metric


def _histogram(name: str, meaning: str, histogram: Histogram) -> Metric:
    buckets, count = [], 0
    for bound, observed in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        count += observed
        buckets.append((str(bound) if bound < float("inf") else "+Inf", float(count)))
    return HistogramMetricFamily(f"sockpqd_{name}", meaning, buckets=buckets, sum_value=histogram.total)
