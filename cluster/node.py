"""A cluster node on a real event loop: sockets and timers around the driver."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import msgspec

from sockpqd.cluster import limits
from sockpqd.cluster.administration import Administration
from sockpqd.cluster.api import (
    AddNodeReply,
    ClusterListener,
    FenceReply,
    Figures,
    NodeStatus,
    NotPossible,
    PromoteReply,
    RemoveNodeReply,
    SwitchServiceReply,
)
from sockpqd.cluster.capacity import Capacity
from sockpqd.cluster.damage.rejoin import Rejoin
from sockpqd.cluster.damage.scrubber import FileToRead, Finding, Scrubber, files_to_read
from sockpqd.cluster.driven_node import DrivenNode
from sockpqd.cluster.driver import Driver
from sockpqd.cluster.forwarding.forwarded_calls import ForwardedCalls, OnOutcome
from sockpqd.cluster.forwarding.forwarded_commands import ForwardedCommands
from sockpqd.cluster.idle import next_turn_at
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.leader.clock import SystemClock
from sockpqd.cluster.leader.commit_delay import CommitDelay
from sockpqd.cluster.metrics.loop_turns import LoopTurns
from sockpqd.cluster.metrics.recent_mean import RecentMean
from sockpqd.cluster.metrics.watermarks import WatermarkMonitor, Watermarks
from sockpqd.cluster.mirror.awaited_mirror import AwaitedMirror
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.paging.paging import paging_machine
from sockpqd.cluster.settings import NodeSettings
from sockpqd.cluster.snapshots.snapshot_directory import needed_from
from sockpqd.cluster.snapshots.snapshot_store import SnapshotStore
from sockpqd.cluster.stats import figures, host_figures
from sockpqd.cluster.storage.disk import Disk, TimedDisk
from sockpqd.cluster.storage.errors import SnapshotDamaged, StorageDamaged
from sockpqd.cluster.wire.messages import (
    CallOutcome,
    CancelCall,
    CommandAnswer,
    ForwardedCall,
    ForwardedCommand,
    Hello,
    Message,
)
from sockpqd.cluster.wire.peer_network import PeerNetwork
from sockpqd.core import Machine

log = logging.getLogger("sockpqd.cluster")

PROCESS_BYTES = 8
NEVER = float("inf")
ANSWERS_SHARE = 1 / 8           # of the lease: how long an answer that commits nothing, but keeps the lease, may lie


class ClusterNode(DrivenNode):
    """Implements cluster.api.Cluster. All methods must be called on the loop that start() runs on."""

    def __init__(self, settings: NodeSettings, listener: ClusterListener) -> None:
        """Open the storage. Raises OSError and StorageError."""
        self._pages = pages = PageFiles(settings.data_dir / "pages", Disk())
        machine = paging_machine(pages, settings.hot_bytes)
        self._loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[None] = self._loop.create_future()
        self._process = os.urandom(PROCESS_BYTES)   # tells this process from any other (wire/duplicate_nodes.py)
        self._network = PeerNetwork(settings, self._hello, self._event, self._receiving, self._meet)
        self._clock = SystemClock()
        self._disk = TimedDisk()
        self._disk.make_directory(settings.data_dir)
        self._disk.hold_descriptors(limits.HELD_FILES)
        snapshots = Disk()
        snapshots.hold_descriptors(limits.HELD_FILES)
        self._rejoin = Rejoin(self._disk, settings, lambda: int(time.time()))
        journal, store = self._rejoin.open(lambda: open_storage(
            settings.data_dir, self._disk, snapshots, machine, pages))
        self._rejoin.tell(journal)
        super().__init__(Driver(
            settings, journal, store, machine, self._network, listener, self._clock, random.Random(), pages,
        ))
        self._driver.capacity.delete_state = self._rejoin.delete
        self._driver.capacity.delete_damaged = self._rejoin.forget_damaged
        self._driver.leadership.preference.mean_sync_s = RecentMean(self._disk.syncs)
        self._commit_delay = CommitDelay(self._proposer, self._clock.monotonic)
        self._turns = LoopTurns()
        self._marks = Watermarks(
            settings.memory_mark_bytes, settings.disk_free_bytes_min, lambda: self._driver.capacity.ballast_bytes,
            lambda: pages.written_bytes,
        )
        self._driver.host = partial(host_figures, self._marks, settings.http_port)
        self._watch = WatermarkMonitor(settings.data_dir, self._marks, self._loop)
        self._administration = Administration(self._driver, self._wake)
        self.mirror = AwaitedMirror(self._driver.mirroring, self._wake)
        self._commands = ForwardedCommands(self._driver.peers, self._driver.leader, listener, self._send_beside)
        self._calls = ForwardedCalls(
            self._driver.peers, self._driver.leader, listener, self._send_beside, self._network)
        self._scrubber = Scrubber(self._to_scrub, self._damaged, pages.directory)
        self._syncing: Future[float] | None = None      # calls _synced() when it ends
        self._stopped = False
        self._woken_at = 0.0            # when the first event of the next turn arrived, monotonic seconds
        self._turned_at = 0.0           # when the last turn ended
        self._patience_s = settings.lease_ms / 1000 * ANSWERS_SHARE
        self._timer: asyncio.TimerHandle | None = None
        self._look_at = NEVER           # when it rings, monotonic seconds

    async def start(self) -> None:
        """Recover from disk, and join the others in the meantime. Raises an error if this node cannot run."""
        try:
            self._driver.recover()
        except StorageDamaged as error:
            raise self._rejoin.order(error) from error
        self._watch.start()
        self._scrubber.start()
        await self._network.start()
        self._wake()
        while self._driver.recovering:
            await asyncio.sleep(limits.POLL_S)
            if self.failed.done():
                await self.failed

    async def stop(self) -> None:
        """Hand leadership over, then close. Returns within HAND_OVER_S."""
        if not self.failed.done():
            await self.go_offline()
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._watch.stop()
        self._scrubber.stop()
        self._commands.stop()
        self._calls.stop()
        await self._log_feed.stop()
        await self._network.stop()
        self._driver.store.close()
        self._driver.journal.close()

    # Turns

    def _hello(self, receiver: str) -> Hello:
        return msgspec.structs.replace(self._driver.hello(receiver), process=self._process)

    def _send_beside(self, name: str, message: Message) -> None:
        """Send a message unrelated to Raft in the next turn."""
        self._network.send(name, message)
        self._wake()

    def _event(self, name: str, event: Hello | Message | None) -> None:
        driver = self._driver
        if type(event) is ForwardedCommand or type(event) is CommandAnswer:
            self._commands.received(name, event)
            return
        if type(event) is ForwardedCall or type(event) is CallOutcome or type(event) is CancelCall:
            self._calls.received(name, event)
            return
        if event is None:
            self._calls.lost(name)
        driver.inbox.append((name, event))
        if self._scheduled:
            return
        if driver.urgent(event):
            self._wake()
        else:
            self._look_by(self._clock.monotonic() + self._patience_s)

    def _receiving(self, name: str) -> None:
        self._driver.transport.receiving(name, self._clock.monotonic())

    def _meet(self, hello: Hello) -> None:
        self._driver.add_unknown_peer(hello)

    def _wake(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._woken_at = self._clock.monotonic()
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        if self._stopped or self.failed.done():
            return
        driver = self._driver
        waits = self._commit_delay.should_wait()
        if waits and not driver.inbox:
            self._wake()
            return
        try:
            self._pages.halted = self._marks.disk_reached
            self._measured(driver.capacity)
            driver.syncing.pipelining.waited(max(0.0, self._woken_at - self._turned_at))
            driver.turn(propose=not waits)
        except StorageDamaged as error:
            self.failed.set_exception(self._rejoin.order(error))
            return
        except Exception as error:
            self.failed.set_exception(error)
            return
        before, now = self._turned_at, self._clock.monotonic()
        self._turned_at = now
        self._commit_delay.turned(now)
        self._turns.observe(self._woken_at, now)
        # A busy node keeps one timer for many turns; the due time of the next turn is computed only once it is quiet.
        if now - before >= limits.TICK_S:
            self._look_by(next_turn_at(driver, now, now))
        elif self._look_at > now + limits.TICK_S:
            self._look_by(now + limits.TICK_S)
        if driver.busy:
            self._wake()
        syncing = driver.journal.syncing
        if syncing is not None and syncing is not self._syncing:
            syncing.add_done_callback(self._synced)
        self._syncing = syncing

    def _measured(self, capacity: Capacity) -> None:
        marks = self._marks
        capacity.marked, capacity.disk_marked = marks.reached, marks.disk_reached
        capacity.free_bytes, capacity.disk_bytes = marks.free_bytes, marks.disk_bytes
        capacity.free_bytes_min = marks.disk_free_bytes_min

    def _synced(self, _: Future[float]) -> None:
        """Continue in the loop; called in the thread that synced."""
        with contextlib.suppress(RuntimeError):         # the loop is closed
            self._loop.call_soon_threadsafe(self._sync_ended)

    def _sync_ended(self) -> None:
        """Send what waited for a sync, with a turn only if there is more to do."""
        if self._scheduled or self._stopped or self.failed.done():
            return
        try:
            if self._driver.sync_ended():
                self._wake()
        except Exception as error:
            self.failed.set_exception(error)

    def _to_scrub(self) -> list[FileToRead]:
        """Return the files for the scrubber; called in its thread, computed in the loop's."""
        found: Future[list[FileToRead]] = Future()
        store = self._driver.store

        def look() -> None:
            snapshots = [store.path(index) for index in store.kept()]
            found.set_result(files_to_read(self._driver.journal.segments, snapshots))
        self._loop.call_soon_threadsafe(look)
        return found.result()

    def _damaged(self, finding: Finding) -> None:
        """Handle damage that the scrubber found; called in its thread."""
        self._loop.call_soon_threadsafe(self._driver.repair.begin, finding)

    def _look_by(self, when: float) -> None:
        """Schedule a check for a due turn at this time or sooner; `when`: monotonic seconds."""
        if when >= self._look_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._look_at = when
        self._timer = self._loop.call_later(max(0.0, when - self._clock.monotonic()), self._look)

    def _look(self) -> None:
        self._timer, self._look_at = None, NEVER
        if self._stopped or self._scheduled:
            return                      # the turn that comes calls _look_by()
        now = self._clock.monotonic()
        due = next_turn_at(self._driver, self._turned_at, now)
        if due <= now:
            self._wake()
        else:
            self._look_by(due)

    # cluster.api.Cluster; what needs no more than the driver is in DrivenNode

    def age_s(self) -> float:
        return self._driver.age_s()

    def figures(self) -> Figures:
        scrubbed = self._scrubber.disk.read_bytes
        return figures(self._driver, self.status(), self._marks, self._disk, self._turns, scrubbed)

    async def go_offline(self) -> None:
        driver = self._driver
        driver.leadership.online = False
        driver.transport.elections.may_campaign = False
        self._wake()
        deadline = self._loop.time() + limits.HAND_OVER_S
        while self._loop.time() < deadline and not self.failed.done():
            await asyncio.sleep(limits.POLL_S)
            idle = driver.proposer.idle
            if idle and not (driver.replica.is_leader and driver.leadership.handover.successors()):
                return

    async def export_snapshot(self, path: Path, *, users: bool = False) -> None:
        child = self._driver.store.export(path, users=users)
        while (status := child.poll()) is None:
            await asyncio.sleep(limits.POLL_S)
        if status != 0:
            self._driver.store.note(child.error)
            raise OSError(f"the snapshot could not be written to {path} (exit status {status})")

    async def export_for_copy(self, path: Path) -> tuple[int, bytes]:
        position = self.state_hash()            # the export below begins with the same state
        await self.export_snapshot(path, users=True)
        return position

    async def add_node(self, name: str, peer: str, client: str) -> AddNodeReply:
        return await self._administration.add_node(name, peer, client)

    async def remove_node(self, name: str) -> RemoveNodeReply | NotPossible:
        return await self._administration.remove_node(name)

    async def transfer(self, name: str | None) -> NodeStatus | NotPossible:
        leader = await self._administration.transfer(name)
        return self._status(leader) if isinstance(leader, str) else leader

    async def switch_service(self, online: bool) -> SwitchServiceReply:
        return await self._administration.switch_service(online)

    async def promote(self, grace_ms: int) -> PromoteReply:
        return await self._administration.promote(grace_ms)

    async def fence(self, replica: str) -> FenceReply:
        return await self._administration.fence(replica)

    def forward_call(self, user: str | None, address: str, data: bytes, on_outcome: OnOutcome) -> int | None:
        return self._calls.send(user, address, data, on_outcome)

    def cancel_call(self, number: int) -> None:
        self._calls.cancel(number)

    async def forward_command(self, user: str | None, address: str, command: bytes) -> bytes:
        return await self._commands.execute(user, address, command)

    async def compact(self) -> int:
        return await self._administration.compact()


def open_storage(
    data_dir: Path, disk: Disk, snapshots: Disk, machine: Machine, pages: PageFiles,
) -> tuple[Journal, SnapshotStore]:
    """Open the journal on `disk`, and the snapshots on `snapshots`. Raises OSError and StorageError.

    `pages`: the files of the machine's pages, to which snapshots refer.
    """
    def opened(needed: int) -> tuple[Journal, SnapshotStore]:
        journal = Journal.open(data_dir / "journal", disk, needed_from=needed)
        try:
            return journal, SnapshotStore.open(data_dir / "snapshots", snapshots, journal, machine, pages=pages)
        except BaseException:
            journal.close()
            raise

    needed = needed_from(snapshots, data_dir / "snapshots")
    try:
        return opened(needed)
    except SnapshotDamaged:
        if not needed:
            raise
        return opened(0)            # the whole journal may reach back beyond all snapshots
