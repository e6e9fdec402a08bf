"""Collects the figures of a node from its parts."""

from __future__ import annotations

from collections.abc import Iterable

from sockpqd.cluster.api import Figures, HostFigures, NodeStatus, PagingFigures, PeerFigures
from sockpqd.cluster.driver import Driver
from sockpqd.cluster.metrics.loop_turns import LoopTurns
from sockpqd.cluster.metrics.watermarks import Watermarks
from sockpqd.cluster.storage.disk import TimedDisk


def figures(
    driver: Driver, nodes: Iterable[NodeStatus], marks: Watermarks, disk: TimedDisk, turns: LoopTurns,
    scrubbed_bytes: int,
) -> Figures:
    """The current figures of a node. `nodes`: the rows of CLUSTER STATUS; `disk`: the journal's disk."""
    replica, journal, store, proposer = driver.replica, driver.journal, driver.store, driver.proposer
    mine = driver.settings.name
    clock_ahead_ms, time_ahead_ms = driver.leadership.errors_ms() or (None, None)
    return Figures(
        role="LEARNER" if driver.members.learner == mine else driver.role(),
        term=replica.term,
        commit_index=max(driver.transport.leader_commit, replica.commit_index),
        applied_index=replica.applied_index,
        lag=driver.lag(),
        leader_changes=driver.leader_changes,
        elections=driver.transport.elections.begun,
        commit_latency=proposer.latencies,
        fsync=disk.syncs,
        preparations=disk.preparations,
        turns=turns.seconds,
        turn_longest_s=turns.longest_s,
        journal_bytes=journal.bytes_total,
        journal_room=journal.segments.room_bytes,
        snapshot_index=store.newest_index,
        snapshot_bytes=store.newest_bytes,
        snapshot_s=store.written_s,
        proposals=proposer.in_flight,
        backlog_bytes=proposer.backlog_bytes,
        memory_bytes=marks.memory_bytes,
        memory_used_bytes=marks.memory_used_bytes,
        memory_mark_bytes=marks.memory_mark_bytes,
        memory_reached=marks.memory_reached,
        disk_free_bytes=marks.disk_free_bytes,
        disk_free_bytes_min=marks.disk_free_bytes_min,
        disk_reached=marks.disk_reached,
        journal_reached=driver.capacity.exhausted or driver.capacity.stuck,
        full=driver.full,
        clock_ahead_ms=clock_ahead_ms,
        time_ahead_ms=time_ahead_ms,
        level=driver.machine.known_level,
        cluster_level=driver.machine.level,
        rejoining=journal.forgetful and not journal.voter,
        damaged_files=driver.repair.found,
        scrubbed_bytes=scrubbed_bytes,
        peers=tuple(_peer(node) for node in nodes if node.name != mine),
        hot_bytes=driver.machine.hot_bytes,
        hot_bytes_max=driver.settings.hot_bytes,
        paging=_paging(driver),
        disk_held=_disk_held(driver),
    )


def host_figures(marks: Watermarks, http_port: int) -> HostFigures:
    """Return the figures of this node's host that the other nodes show."""
    return HostFigures(marks.memory_used_bytes, marks.memory_mark_bytes, marks.disk_free_bytes,
                       marks.disk_free_bytes_min, http_port)


def _disk_held(driver: Driver) -> tuple[tuple[str, int], ...]:
    holders = driver.capacity.holders()
    return (("journal", holders.journal), ("snapshots", holders.snapshots), ("pages", holders.pages),
            ("ballast", holders.ballast), ("others", holders.others))


def _paging(driver: Driver) -> PagingFigures | None:
    """Return the figures of the pages on the disk, None if the machine has none."""
    pages, files = driver.machine.pages, driver.paging.files
    if pages is None:
        return None
    bodies = pages.bodies
    return PagingFigures(
        jobs=pages.jobs + bodies.outside_jobs.jobs,
        data_bytes=pages.data_bytes + bodies.outside_jobs.data_bytes,
        bodies=bodies.count,
        body_bytes=bodies.data_bytes,
        file_bytes=files.bytes_total + files.held_bytes,
        files=files.count,
        live_bytes=files.live_bytes,
        rewriting=files.rewriting,
        read=pages.read + bodies.reads,
        written=pages.written + bodies.written,
        expected=files.expected,
        misses=files.misses,
        moved=files.moved,
        reads=files.reads,
    )


def _peer(node: NodeStatus) -> PeerFigures:
    up = node.role != "DOWN" and node.applied is not None       # a learner has its role, up or not
    return PeerFigures(node.name, up, node.lag if up else None)
