"""A simulated machine: a disk and clocks that outlive the process, and the process, which is a real Driver."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pysyncobj import syncobj

from sockpqd.cluster import limits
from sockpqd.cluster.api import Cluster
from sockpqd.cluster.damage.rejoin import Rejoin
from sockpqd.cluster.driver import Driver
from sockpqd.cluster.errors import EntryTooNew
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.raft.pysyncobj_adapter import Callback
from sockpqd.cluster.settings import Member, NodeSettings
from sockpqd.cluster.snapshots.snapshot_directory import needed_from
from sockpqd.cluster.snapshots.snapshot_store import SnapshotStore
from sockpqd.cluster.storage.disk import passes
from sockpqd.cluster.storage.errors import RejoinNeeded, SnapshotTooNew, StorageDamaged
from sockpqd.cluster.wire.messages import Hello, Message
from sockpqd.core import (
    Applied,
    ChangeMember,
    Effects,
    Event,
    MemberChange,
    Operation,
    PageLost,
    Pager,
    Pages,
    continues,
    decode_entry,
    level_of,
)
from sockpqd.core.pages.pager import Stage
from sockpqd.gateway.events.subscriptions import Subscriptions
from tests.cluster.helpers.faulty_disk import Crash
from tests.sim.clients.outcomes import Outcome
from tests.sim.oracles.durability import Durability
from tests.sim.oracles.events import EventNode, Hearer
from tests.sim.world.digest_codes import Kind, node_number
from tests.sim.world.disk import JOURNAL, PAGES, SNAPSHOTS, SimDisk, SyncTimes
from tests.sim.world.events import DriftingClock
from tests.sim.world.idle_time import NEVER, idle_until
from tests.sim.world.observed import ObservedJournal, ObservedMachine, SlowChild, open_journal
from tests.sim.world.plan import NEW_LEVEL
from tests.sim.world.trace import Violation
from tests.sim.world.transport import SimOutbox

if TYPE_CHECKING:
    from tests.sim.world.world import World

BUSY_TURNS_MAX = 3000
SLICE_S = 0.005                 # how long a turn applies entries before it leaves the rest to the next one
PLENTY_BYTES = 1 << 40
PAGE_DAMAGES = 0.0005           # so many turns begin with a bit in a page that is read wrong from then on
CATCH_UP_S = 0.7                # a round of catching up takes no longer than the shortest election timeout


class SimNode:
    """Listener of its Driver.

    `sound`: has the right to vote, and its disk was not damaged. Only a minority of a cluster may be unsound.
    """

    def __init__(self, world: World, name: str, clock: DriftingClock) -> None:
        self.world = world
        self.checks = world.checks
        self.name = name
        self.clock = clock
        self._monotonic = clock.monotonic
        self.disk = self._new_disk(world)
        self.driver: Driver | None = None
        self.pages = PageFiles(PAGES, self.disk)
        self._pages_damaged = False             # of the present process,
        self._flipped: list[tuple[bytearray, int, int]] = []    # until its end
        self._damages_pages = random.Random(f"pages {world.seed} {name}")
        self.known_level: int | None = None     # the feature level that its program knows; None: this program's
        self.went_back = False                  # it had a newer program before
        self.machine = ObservedMachine(self)
        self.serving = False
        self.voter = False
        self.damaged = False
        self._set_aside = ""                # the folder of its damaged files
        self.copy: tuple[int, dict[str, Any]] | None = None     # the last entry in a copy of its files, and the copy
        self.older = False                  # an older copy of its files was put in their place
        self.held_down = False              # it must not be started now
        self.configured: tuple[Member, ...] = ()    # the members in its configuration file
        self.prefer = 50                    # likewise
        self._applied_before = 0            # the last entry that was applied before the present turn
        self._events = world.events
        self._next_turn = NEVER
        self._alarm = NEVER                 # when _ring() is called next
        self._blocked_until = 0.0           # paused, or waiting for its disk
        self.waited_s = 0.0                 # for its disk, altogether
        self._children: list[SlowChild] = []
        self._slices = random.Random(f"slices of {name} in {world.seed}")
        self._outbox = SimOutbox(self)
        self._open: dict[Outcome, None] = {}
        self._proposed: list[Outcome] = []
        self._lanes = random.Random(f"lanes of {name} in {world.seed}")
        self._hearer = Hearer(f"the subscriber of {name}", world.tale)
        self._subscriptions: Subscriptions | None = None        # of the process
        self.memory = Durability(name, world.events, world.checks)
        self._before: Durability | None = None      # what the voter's disk held that was lost, until it votes again

    def _now(self) -> float:
        return self._events.now

    # Life

    @property
    def running(self) -> bool:
        """True if there is a process."""
        return self.driver is not None

    @property
    def sound(self) -> bool:
        """See the class."""
        return self.voter and not self.damaged

    @property
    def up(self) -> Driver:
        """The process, which must be running."""
        assert self.driver is not None, f"{self.name} is down"
        return self.driver

    def start(self) -> None:
        """Start the process; it may find its disk damaged, or fail as it does in a turn."""
        if self.driver is not None or self.held_down:
            return
        self._children, self._outbox = [], SimOutbox(self)
        self.pages, self._pages_damaged = PageFiles(PAGES, self.disk), False
        self.machine = ObservedMachine(self)
        self._blocked_until = self._events.now
        self.world.timekeeping.started(self.name)
        try:
            driver = self._build()
        except (Crash, Exception) as error:
            self._ended(error, starting=True)
            return
        self.driver = driver
        self._subscriptions = Subscriptions(cast(Cluster, EventNode(self.machine, driver)))
        if self.world.plan.subscribed:
            self._listen(self._hearer)
        journal = driver.journal
        self.voter = journal.voter
        term, first, last = journal.getCurrentTerm(), journal.first_index, journal.last_index
        self._note(Kind.STARTED, f"started, term {term}, entries {first}..{last}", term, first, last)
        self.world.network.started(self.name)
        self.wake(self._events.now)

    def _listen(self, hearer: Hearer) -> None:
        assert self._subscriptions is not None
        hearer.listen(self._subscriptions, self.machine.event_seq)

    def start_again(self) -> None:
        """Start it although it was to stay down."""
        self.held_down = False
        self.start()

    def leads(self) -> bool:
        """Return whether it executes operators' commands."""
        return self.driver is not None and self.driver.leadership.leading()

    def pager(self) -> Pager:
        """Return a pager that keeps as few jobs in memory as possible, or all, depending on the plan."""
        return Pager(Pages(self.pages), 0, (Stage(0, 3, 1),), resident=not self.world.plan.paged)

    def state(self) -> list[bytes] | None:
        """Its state, read outside of its turns; None: a fault has damaged a page of it, so it is about to stop."""
        try:
            return list(self.machine.snapshot())
        except PageLost as error:
            if not self._pages_damaged:
                raise Violation(f"{self.name} has lost a page: {error}") from error
            return None

    def _damage_a_page(self) -> None:
        """Now and then, until faults stop, let a bit of a file of pages be read wrong while the process lives."""
        chance, world = self._damages_pages, self.world
        if chance.random() >= PAGE_DAMAGES or world.healed or self._events.now < world.calm_until:
            return
        segments = [one for one in self.pages.segments.values() if one.written]
        if segments:
            segment = chance.choice(segments)
            self._flip(self.disk.file(segment.path), chance.randrange(segment.written), 1 << chance.randrange(8))
            self._pages_damaged = True

    def _flip(self, data: bytearray, place: int, bits: int) -> None:
        data[place] ^= bits
        self._flipped.append((data, place, bits))

    def _read_right_again(self) -> None:
        for data, place, bits in self._flipped:
            data[place] ^= bits
        self._flipped.clear()

    def _build(self) -> Driver:
        plan = self.world.plan
        settings = NodeSettings(
            name=self.name, data_dir=Path("/"), peer_listen="", members=self.configured, version="sim",
            heartbeat_ms=plan.heartbeat_ms, failover_grace_ms=plan.grace_ms, expire_default=plan.expire_default,
            rejoin=True, rejoins_per_hour=0, prefer=self.prefer, replica=self.world.replica,
            feed_keep_bytes=plan.feed_keep_bytes,
        )
        self._rejoin = Rejoin(self.disk, settings, lambda: int(self._events.now))
        journal, store = self._rejoin.open(self._open_storage)
        self._rejoin.tell(journal)
        store._start_task = self._fork
        rng = random.Random(self.world.rng.random())
        driver = Driver(settings, journal, store, self.machine, self._outbox, self, self.clock, rng, self.pages)
        proposer = driver.proposer
        submit = proposer._submit

        def watched(entry: bytes, callback: Callback) -> None:
            second = proposer.entries_in_flight > limits.ENTRIES_IN_FLIGHT_MAX
            self.world.trace.seen["second entries under way"] += second
            carried = self.checks.launched(entry, self._proposed)
            self.world.timekeeping.launched(self, decode_entry(entry))
            for operation, _ in carried:
                if isinstance(operation, ChangeMember) and operation.change is MemberChange.PROMOTE:
                    self._promotes(self.world.nodes[operation.node])

            def landed(applied: Applied | None, reason: int) -> None:
                if applied is not None:
                    self._left_out([outcome for _, outcome in carried[len(applied.replies):]])
                callback(applied, reason)
            submit(entry, landed)

        proposer._submit = watched
        driver.replica.enough = self._applied_enough
        self._built(driver)
        driver.recover()
        self.memory.vouch(journal, damaged=self.damaged)
        return driver

    def _open_storage(self) -> tuple[ObservedJournal, SnapshotStore]:
        """Open the storage, perhaps for the second time, after damaged files were set aside."""
        if self._rejoin.folder != self._set_aside:
            if not self.damaged:
                raise Violation(f"{self.name} sets aside what is not damaged")
            self._set_aside = self._rejoin.folder
            self._note(Kind.REJOINED, "rejoins without its damaged files")
            self.world.trace.seen["damaged nodes that rejoined"] += 1
            self.world.trace.seen["older copies found"] += self.older
            self._forget()
        journal = open_journal(self, JOURNAL, self.disk, self.world.plan.segment_bytes, self.world.plan.window_bytes,
                               needed_from(self.disk, SNAPSHOTS))
        try:
            terms = tuple(journal.term_at(index) for index in range(journal.first_index, journal.last_index + 1))
            self.world.trace.step(
                "starts", self.name, journal.getCurrentTerm(), journal.getVotedForNodeId(), journal.voter,
                journal.getRaftCommitIndex(), journal.first_index, terms)
            self.memory.found(journal)
            store = SnapshotStore.open(
                SNAPSHOTS, self.disk, journal, self.machine, fork=False, clock=self.clock.monotonic,
                pages=self.pages)
            pages = self.machine.pages
            assert pages is not None
            self.world.trace.seen["starts with pages of before"] += pages.count > 0
            self.world.trace.seen["starts with bodies of before"] += pages.bodies.count > 0
        except BaseException:
            journal.close()
            raise
        return journal, store

    def _applied_enough(self) -> bool:
        return self._slices.random() < self.world.plan.slices

    def _built(self, driver: Driver) -> None:
        """Note the new driver of a process, which is about to recover."""

    def _left_out(self, outcomes: list[Outcome | None]) -> None:
        """Note operations that did not fit into an entry: they are the first to be proposed again, in their order."""
        again = [outcome for outcome in outcomes if outcome is not None and outcome.state == "open"]
        for outcome in again:
            outcome.entry = None
        self._proposed[:0] = again
        self.world.trace.seen["operations left to the next entry"] += len(again)

    def _fork(self, work: object) -> SlowChild:
        delay_s = self.world.rng.choice(self.world.plan.child_s)
        child = SlowChild(self, work, self._events.now + delay_s)      # type: ignore[arg-type]
        self._children.append(child)
        return child

    def crash(self, *, power: bool) -> None:
        """Kill the process; with `power` the machine, and what was not synced may be lost."""
        if not power and self.world.rng.random() < 0.5:
            for child in self._children:
                self._orphan(child)
        self._gone()
        if power:
            self.disk.crash(self.world.rng)
        else:
            self.disk.restart()

    def _orphan(self, child: SlowChild) -> None:
        """Orphan a child that outlives its process."""
        if self.driver is None:
            self.pages.segments.clear()         # their descriptors went with the process
        try:
            child.finish()
        except Crash:
            self.disk.dead = False

    def _gone(self) -> None:
        running, self.driver = self.driver, None
        self._read_right_again()
        if self.machine.pages is not None:
            self.world.trace.seen["pages of jobs written"] += self.machine.pages.written
            self.world.trace.seen["pages of jobs read"] += self.machine.pages.read
            self.world.trace.seen["bodies of jobs written"] += self.machine.pages.bodies.written
            self.world.trace.seen["bodies of jobs read"] += self.machine.pages.bodies.reads
        self._subscriptions = None
        self._hearer.leave()
        if self.world.roams_on == self.name:
            self.world.roamer.leave()
        self.world.timekeeping.ended(self.name)
        self._next_turn = NEVER
        self.serving = False
        if running is not None:
            self.world.network.died(self.name)
        for outcome in list(self._open):
            outcome.lost()
        self._open.clear()
        self._proposed.clear()

    def _new_disk(self, world: World) -> SimDisk:
        """Return an empty disk, with the plan's duration of syncs."""
        usual_s = world.plan.sync_s
        times = SyncTimes(random.Random(f"syncs {world.seed} {self.name}"), usual_s) if usual_s else None
        return SimDisk(random.Random(world.rng.random()), self._now, times)

    def wipe(self) -> None:
        """Give it a new, empty disk."""
        assert self.driver is None
        self.world.write_file(self)
        self.disk = self._new_disk(self.world)
        if self.world.healed:
            self.disk.repair()
        self._set_aside = ""
        self._forget()

    def put_back(self, copies: dict[str, Any]) -> None:
        """Replace its files by older ones; it must be down."""
        assert self.driver is None
        self.disk.put_back(copies)
        self.damaged = self.older = True
        self._lose_memory()
        self._note(Kind.PUT_BACK, "has an older copy of its files")

    def _forget(self) -> None:
        """Forget the promises of a node whose disk is lost."""
        if self.voter or self.damaged:
            self._lose_memory()
        else:
            self.world.trace.step("loses its disk", self.name)
        self.voter = self.damaged = self.older = False
        self.copy = None
        self.memory = Durability(self.name, self.world.events, self.checks)

    def _lose_memory(self) -> None:
        """Keep what the disk held when it counted: a replacement counts for no more than it has."""
        self.world.trace.step("loses its disk", self.name)
        if self._before is None:
            self.memory.hurry()
            self._before = self.memory
        self.memory = Durability(self.name, self.world.events, self.checks)

    def counts_again(self) -> None:
        """Note that it votes again, or is no voter any more: what its disk held before no longer matters."""
        self._before = None

    def _ended(self, error: BaseException, *, starting: bool = False) -> None:
        """Check that the process had reason to end by itself."""
        trace, disk, power = self.world.trace, self.disk, True
        if disk.dead or isinstance(error, Crash):
            power = self.world.rng.random() < 0.5
            what = (Kind.LOST_POWER, "lost power") if power else (Kind.KILLED, "was killed")
            self._note(what[0], f"{what[1]} between two steps")
            trace.seen["crashes between two steps"] += 1
        elif isinstance(error, StorageDamaged) and self.damaged:
            try:
                ended = self._rejoin.order(error)
            except Crash:
                ended = RejoinNeeded()
            if isinstance(ended, OSError) and disk.errors:
                trace.seen["rejoins put off by the disk"] += 1      # it finds the damage again at its next start
            elif not isinstance(ended, RejoinNeeded):
                raise Violation(f"{self.name} is damaged and does not rejoin: {ended}") from error
            self._note(Kind.REFUSED, f"will rejoin: {error}")
        elif isinstance(error, PageLost) and self._pages_damaged:
            power = False
            self._note(Kind.STOPPED, f"stopped: {error}")
            trace.seen["stopped by a damaged page"] += 1
        elif isinstance(error, EntryTooNew | SnapshotTooNew) and (self.went_back or self not in self.world.members):
            # That was while the level was being raised: the leader had counted this node before; or it was removed,
            # so that it no longer counts, and receives the following messages.
            self._note(Kind.TOO_OLD, f"is too old: {error}")
            trace.seen["nodes that are too old"] += 1
            self.known_level, self.went_back = NEW_LEVEL, False
        elif isinstance(error, OSError) and disk.errors and (starting or not passes(error)):
            power = False                   # what it wrote can still be read, whether it is on the disk or not
            self._note(Kind.STOPPED, f"stopped: {error}", error.errno or 0)
            trace.seen["stopped by its disk"] += 1
        else:
            raise _violation(error) or Violation(f"{self.name} failed: {error!r}") from error
        self.crash(power=power)
        self.world.start_later(self)

    # Turns

    def wake(self, when: float) -> None:
        """Take a turn then, or sooner."""
        when = max(when, self._blocked_until, self._events.now)
        if self.driver is None or when >= self._next_turn:
            return
        self._next_turn = when
        if when < self._alarm:
            self._alarm = when
            self._events.at(when, self._ring)

    def _ring(self) -> None:
        """Take the turn that is due. An alarm for a turn that came earlier serves for the next one."""
        now = self._events.now
        if now < self._alarm:
            return
        self._alarm = NEVER
        if self._next_turn <= now:
            self._turn()
        elif self._next_turn < NEVER:
            self._alarm = self._next_turn
            self._events.at(self._next_turn, self._ring)

    def pause(self, seconds: float) -> None:
        """Give the process no processor for this long."""
        self._blocked_until = max(self._blocked_until, self._events.now + seconds)
        if self._next_turn < NEVER:
            self._next_turn = NEVER
            self.wake(self._blocked_until)

    @property
    def paused(self) -> bool:
        """True if it gets no processor, or waits for its disk."""
        return self._blocked_until > self._events.now

    def resume(self) -> None:
        """Resume the process; what its disk was working on is done."""
        self._blocked_until = self._events.now
        self.memory.hurry()
        self.wake(self._blocked_until)

    def _turn(self) -> None:
        self._next_turn = NEVER
        if self._events.now < self._blocked_until:
            self.wake(self._blocked_until)
            return
        driver = self.up
        syncobj.monotonicTime = self._monotonic      # the library has one clock for a process, and many nodes live here
        for _ in range(BUSY_TURNS_MAX):
            self.disk.spent_s = 0.0
            if self.world.plan.paged:
                self._damage_a_page()
            errors = self.disk.errors
            self._applied_before = self.machine.index
            driver.capacity.free_bytes = PLENTY_BYTES if self.disk.free_bytes is None else self.disk.free_bytes
            try:
                self._take_turn(driver)
                self.disk.step()
            except (Crash, Exception) as error:
                self._ended(error)
                return
            self._after_turn(driver, self.disk.errors - errors)
            if self.disk.spent_s:
                self._blocked_until = max(self._blocked_until, self._events.now + self.disk.spent_s)
                self.waited_s += self.disk.spent_s
                break
            if driver.replica.behind:
                self.world.trace.seen["slices that left entries"] += 1
                self._blocked_until = max(self._blocked_until, self._events.now + SLICE_S)
                break
            if not self._busy(driver):
                break
        else:
            raise Violation(f"{self.name} is always busy")
        self.wake(self._events.now if self._busy(driver) else self._idle_until(driver))

    def _take_turn(self, driver: Driver) -> None:
        lane = driver.transport.lane
        lane.open = self._lanes.random() < self.world.plan.steady
        before = lane.entries
        driver.turn()
        self.world.trace.seen["entries in the steady lane"] += lane.entries - before

    def _busy(self, driver: Driver) -> bool:
        return driver.busy

    def _idle_until(self, driver: Driver) -> float:
        return idle_until(self, driver, self._children)

    def _after_turn(self, driver: Driver, errors: int) -> None:
        if driver.capacity.stuck:
            self.world.trace.seen["turns without room"] += 1
        elif driver.journal.unsynced and driver.journal.syncing is None:
            raise Violation(f"{self.name} ended a turn with changes that are not on disk")
        if not driver.journal.binds:
            self.voter = driver.journal.voter       # on its disk, for which the loop waits
        if self.voter and not self.damaged:
            self.counts_again()
        if self.checks.turned(self.name, driver, self._applied_before):
            self._elected()
            if self.world.trace.steps is not None:
                self._write_down_leases(driver)
        self.world.leases.judge(self)
        if errors:
            self.world.trace.seen["errors survived"] += 1

    def _write_down_leases(self, driver: Driver) -> None:
        """Record which node leads, and which one holds a lease now."""
        self.world.trace.step("leads", self.name, driver.replica.term)
        for other in self.world.nodes.values():
            if other.driver is not None and other.driver.holds_lease() and not other.clock.beyond:
                self.world.trace.step("holds a lease", other.name, other.driver.replica.term)

    def _elected(self) -> None:
        """Check that no majority that knows of this node's removal elects it.

        A node that knows of fewer changes of members than the candidate still talks to it (Driver.add_unknown_peer).
        """
        left = self.checks.configurations.left.get(self.name)
        # Votes of terms before that of its removal were given before anybody knew of the removal.
        if left is not None and self.up.replica.term >= self.checks.terms.get(left, 0):
            voters = self.checks.configurations.at(self._applied_before)
            machines = {name: self.world.nodes[name].machine for name in voters if name != self.name}
            knowing = [
                name for name, machine in machines.items()
                if machine.index >= left and self.name not in machine.membership.addresses      # nor joins again
                and machine.membership.configuration >= self.machine.membership.configuration
            ]
            if 2 * len(knowing) > len(voters):
                raise Violation(f"{self.name} was removed at {left}, which {knowing} know, and leads")

    # What is on its disk

    def synced(self, journal: ObservedJournal) -> None:
        """Note that the journal reports everything as durable."""
        self.memory.synced(journal, self.disk.spent_s, damaged=self.damaged)

    def synced_beside(self, journal: ObservedJournal) -> None:
        """Note that the journal reports entries as durable."""
        self.memory.synced_to(journal.durable_index)

    def has_durably(self, index: int, term: int | None) -> bool:
        """Return whether this entry is on its disk now, or was when it lost the disk.

        A leader may have counted the answer of a voter, and applies the entry after that voter's disk is gone. So an
        entry that was on the lost disk is excused, and no other, until the voter is admitted again: its answers do
        not count before (cluster/raft/quorum.py).
        """
        before = self._before
        return self.memory.has(index, term) or (before is not None and before.has(index, term))

    def committed(self, index: int) -> None:
        """Check an entry that this node is the first to apply: it must be on the disks of a majority."""
        configurations, term = self.checks.configurations, self.memory.term_at(index)
        if term is not None:
            self.checks.terms[index] = term
        if self.driver is not None and self.driver.replica.is_leader:
            counted = [self.checks.counted_by(self.name, self.driver.replica.term, self._applied_before)]
        else:
            counted = configurations.between(self._applied_before, index)
        have = {name for name, node in self.world.nodes.items() if node.has_durably(index, term)}
        if not any(2 * len(have.intersection(voters)) > len(voters) for voters in counted):
            raise Violation(
                f"{self.name} applies entry {index} of term {term}, which is only on the disks of {sorted(have)};"
                f" the voters are {counted}{self.world.describe()}"
            )
        configurations.applied(index, tuple(self.checks.model.voters))
        self.world.trace.step("changes members", self.name, index, configurations.voters)
        self.world.commits.append((self._events.now, index, term))

    def _promotes(self, learner: SimNode) -> None:
        """Check that the learner has caught up when this node proposes that it votes."""
        due = [commit for commit in self.world.commits if commit[0] < self._events.now - CATCH_UP_S]
        if not learner.voter or (due and not learner.has_durably(*due[-1][1:])):
            raise Violation(f"{self.name} makes {learner.name} a voter before it has caught up{self.world.describe()}")

    # Network

    def knows(self, name: str) -> bool:
        """Return whether it wants to talk to this peer."""
        return name in self._outbox.peers

    def hello(self, receiver: str) -> Hello:
        """Return the greeting for this receiver."""
        return self.up.hello(receiver)

    def meet(self, hello: Hello) -> None:
        """Handle the greeting of an unknown node."""
        self.up.add_unknown_peer(hello)

    def receive(self, sender: str, event: Hello | Message | None) -> None:
        """Receive a message from a peer."""
        self.up.inbox.append((sender, event))
        self.wake(self._events.now)

    # Listener

    def effects(self, effects: Effects) -> None:
        """Implement Listener."""

    def events(self, events: list[Event]) -> None:
        """Implement Listener."""
        if self._subscriptions is not None:
            self._subscriptions.events(events)

    def recording(self, types: frozenset[str]) -> None:
        """Implement Listener."""
        if self._subscriptions is not None:
            self._subscriptions.recording(types)

    def notice(self, channel: str, data: bytes) -> None:
        """Implement ClusterListener."""

    def notices_lost(self) -> None:
        """Implement ClusterListener."""

    async def execute_command(self, user: str | None, address: str, command: bytes) -> bytes | None:
        """Implement ClusterListener."""
        return None

    def state_replaced(self) -> None:
        """Implement Listener."""
        if self._subscriptions is not None:
            self.world.trace.seen["events in a gap"] += 1
            self._subscriptions.replaced()

    def serving_changed(self, serving: bool) -> None:
        """Implement Listener."""
        self.serving = serving
        if serving:
            self._note(Kind.SERVES, "serves")
            self.world.leases.begins(self)
        else:
            self._note(Kind.SERVES_NO_MORE, "serves no more")

    def turn_ended(self) -> None:
        """Implement Listener."""
        if self._subscriptions is not None:
            self._subscriptions.turn_ended()
            if self.world.plan.subscribed and self.world.roamer.deaf:
                self.world.roams_on = self.name
                self._listen(self.world.roamer)

    # Clients

    def propose(self, outcomes: list[Outcome]) -> None:
        """Propose operations of one client, back to back."""
        before: Operation | None = None
        for outcome in outcomes:
            if self.driver is None or level_of(outcome.operation) > self.driver.machine.known_level:
                outcome.refused()               # an older program knows no command that would ask for this
                continue
            self._open[outcome] = None
            outcome.ended = self._open.pop
            self._proposed.append(outcome)
            if self.world.plan.fragments:       # as one client of all, whose operations keep their order
                behind = before is not None and continues(outcome.operation, before)
                self.driver.proposer.propose_for(self, outcome.operation, outcome, behind)
            else:
                self.driver.proposer.propose(outcome.operation, outcome)
            before = outcome.operation
        if self.driver is not None:
            self.wake(self._events.now)

    def ask(self, outcome: Outcome) -> None:
        """Execute an operator's command, as Administration does."""
        self._open[outcome] = None
        outcome.ended = self._open.pop
        proposed, self._proposed = self._proposed, [outcome]
        self.up.leadership.propose_alone(outcome.operation, outcome)
        self._proposed = proposed
        self.wake(self._events.now)

    def switch(self, *, online: bool) -> None:
        """Execute OFFLINE and ONLINE, as ClusterNode does."""
        driver = self.up
        driver.leadership.online = online
        driver.transport.elections.may_campaign = online
        self.wake(self._events.now)

    # For the trace

    def _note(self, kind: Kind, text: str, *numbers: int) -> None:
        self.world.trace.note(kind, f"{self.name} {text}", node_number(self.name), *numbers)


def _violation(error: BaseException | None) -> Violation | None:
    """Return the broken promise behind an error: the product wraps what a check raises inside it."""
    while error is not None and not isinstance(error, Violation):
        error = error.__cause__ or error.__context__
    return error
