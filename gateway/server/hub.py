"""State shared by all conversations of this node: the cluster, the waiters, and the scheduling of turns."""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import shutil
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Protocol

from sockpqd.cluster.api import BACKLOG_BYTES_MAX, Cluster, RunningCall
from sockpqd.connections import ConnectionManager, MemoryAccount, held_bytes_max
from sockpqd.core import Effects, Event
from sockpqd.gateway.auth.authenticator import Access
from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.commands.context.places import Places
from sockpqd.gateway.commands.context.reason_log import ReasonLog
from sockpqd.gateway.commands.region.feeds import Feeds
from sockpqd.gateway.counters import Tally
from sockpqd.gateway.events.subscriptions import Subscriptions
from sockpqd.gateway.limits import (
    COMMANDS_IN_FLIGHT_MAX,
    COMMANDS_PER_TURN_MAX,
    EXPORTED_MAX,
    EXPORTS_MAX,
    FINDS_MAX,
    FINDS_OF_ONE_MAX,
    LINES_PER_PIECE,
    LINES_PER_TURN,
    LONG_LINE_BYTES,
    READ_BYTES_PER_TURN,
    READ_ONCE_BYTES,
    Limits,
)
from sockpqd.gateway.link import Link
from sockpqd.gateway.process.memory_limit import memory_mark_bytes
from sockpqd.gateway.protocol.responses import BUSY, OFFLINE_MODE
from sockpqd.gateway.protocol.verbs import Verbs
from sockpqd.gateway.pulses.windows import PulseWindows
from sockpqd.gateway.replica import Puller
from sockpqd.gateway.server.client_output import SharedOutput
from sockpqd.gateway.server.slow_commands import SlowCommands
from sockpqd.gateway.waiting.end_waiters import EndWaiters
from sockpqd.gateway.waiting.grant_waiters import GrantWaiters
from sockpqd.gateway.waiting.job_grants import GrantReservations
from sockpqd.gateway.waiting.job_waiters import JobWaiters
from sockpqd.gateway.waiting.slots import Outcome

log = logging.getLogger("sockpqd.gateway")


class Scheduled(Protocol):
    """A conversation as the scheduler sees it."""

    awake: bool             # the hub will call advance()
    link: Link

    def advance(self) -> None:
        """Take a turn: deliver outcomes and execute further commands."""

    def wake(self) -> None:
        """Schedule `advance` for the end of the current turn."""

    def cut(self, why: str) -> None:
        """Close immediately and log the reason."""

    def evict(self) -> None:
        """Release everything held for it, immediately."""


class Closable(Protocol):
    """A connection as the server sees it: something to close."""

    def hang_up(self) -> None:
        """Close after the answers so far are sent."""

    def abort(self) -> None:
        """Close immediately; unsent answers are lost."""


Piece = Callable[[], bool]      # does the next piece of a long answer; False: there was nothing left to do


class Hub:
    """The cluster's listener: wakes conversations once per turn.

    An outcome only marks a conversation as awake. It advances at the end of the turn or, for outcomes outside a turn,
    in the next iteration of the loop. So each connection is written to once, after all entries have gone to the other
    nodes. Conversations with more to execute than one slice queue up behind all others and take turns.

    All commands of a turn share one budget; each takes what its row says. One that has taken far more has used up the
    next turns as well: in these only clients that are not far ahead are served. Long answers are made in pieces, which
    have a line of their own: few enough in each turn that other clients are not delayed.
    """

    def __init__(
        self, limits: Limits, export_dir: Path, offline_close: bool, shut_down: Callable[[str], None],
        access: Access | None = None, verbs: Verbs = VERBS, fencing_replica: str | None = None,
    ) -> None:
        self.verbs = verbs
        self.limits = limits
        self.access = access or Access()            # permissions; by default every user may do everything
        self.offline_close = offline_close
        self.shut_down = shut_down                  # takes the reason
        self.budget = COMMANDS_PER_TURN_MAX         # commands that may still be executed in this turn
        self._debt = 0                              # what large commands have cost beyond the budget of their turn
        self.exports = asyncio.Semaphore(EXPORTS_MAX)
        self.feeds = Feeds()
        self.puller: Puller | None = None           # follows the origin, on a node of a replica
        self.fencing_replica = fencing_replica      # the id of the cluster that may fence this one
        self.exported = Places(EXPORTED_MAX, EXPORTED_MAX)      # for snapshots that are written or sent to clients,
        self.searches = Places(FINDS_MAX, FINDS_OF_ONE_MAX)     # for FINDs that search at present,
        self.search_line = asyncio.Lock()           # and have their slices one after the other
        self.audit_behind: Callable[[], bool] = lambda: False   # many lines of the audit log wait to be written,
        self.audit_line = asyncio.Lock()            # and commands that leave one wait for these, one after the other
        self.work: set[asyncio.Future[Outcome]] = set()     # operators' commands, which outlive their clients
        self.connections: set[Closable] = set()
        self.refused: set[Closable] = set()       # still being sent their refusal; not clients
        self.account = MemoryAccount(held_bytes_max(memory_mark_bytes(limits.memory_mark)))
        self.connection_manager = ConnectionManager(limits, self.account)
        self.slots = self.connection_manager.slots
        self.shared_output = SharedOutput()     # events that clients have not read
        self.tally = Tally(verbs.rows)
        self.slow = SlowCommands()
        self.reasons = ReasonLog()
        self._on_serving: Callable[[], None] = lambda: None
        self.new_secret: Callable[[], int] = lambda: secrets.randbits(64)       # for a session
        # Executes a call forwarded by another node (Cluster.forward_call).
        self.call_executor: (
            Callable[[str | None, str, bytes, Callable[[bytes | None], None]], RunningCall] | None) = None
        # Executes a command of the protocol as this user, for another node; returns the answer.
        self.execute: Callable[[str | None, str, bytes], Awaitable[bytes]] | None = None
        self._export_dir = export_dir
        self._export_numbers = itertools.count(1)
        self._loop = asyncio.get_running_loop()
        self.in_flight_max = COMMANDS_IN_FLIGHT_MAX     # commands per connection
        self._awake: list[Scheduled] = []
        self._turns: deque[Callable[[], None]] = deque()    # turns of clients with more to execute,
        self._small_turns: deque[Scheduled] = deque()       # and of those with little; these come first
        self._pieces: deque[tuple[int, Piece]] = deque()     # of long answers, with their lines
        self._scheduled = False
        self.read_bytes = 0                         # in this turn, in large reads
        self.crowded = False                        # the backlog is too large; set until half of it is worked off
        self._unread: dict[Scheduled, None] = {}      # conversations not read because of that
        self._readers: dict[Scheduled, None] = {}     # that are read when they have their turn

    def attach(self, cluster: Cluster) -> None:
        """Connect the hub to the cluster it listens to. Must be called before anything else."""
        self.cluster = cluster
        self.access.attach(cluster.machine)
        self.subscriptions = Subscriptions(cluster, self._go_on_soon)
        self.pulse_windows = PulseWindows(cluster)
        self.grant_waiters = GrantWaiters(self.pulse_windows)
        self.grant_reservations = GrantReservations(self.pulse_windows, self._charge)
        self.job_waiters = JobWaiters(cluster, self.grant_reservations)
        self.end_waiters = EndWaiters(cluster)
        self.pulse_windows.attach(self.grant_waiters.look_at, self.job_waiters.feed)

    def announce_serving(self, announce: Callable[[], None]) -> None:
        """Call `announce` whenever this node starts to serve, and now if it serves already."""
        self._on_serving = announce
        if self.cluster.serving:
            announce()

    async def execute_command(self, user: str | None, address: str, command: bytes) -> bytes | None:
        """Execute a command for another node."""
        if self.execute is None or self.cluster.leader() != self.cluster.name:
            return None
        return await self.execute(user, address, command)

    def execute_call(
        self, user: str | None, address: str, data: bytes, on_outcome: Callable[[bytes | None], None],
    ) -> RunningCall:
        """Execute a call forwarded by another node."""
        assert self.call_executor is not None
        return self.call_executor(user, address, data, on_outcome)

    # ---- ClusterListener

    def effects(self, effects: Effects) -> None:
        """Wake the waiters that an applied entry concerns."""
        self.job_waiters.effects(effects)
        self.job_waiters.idle_queues.applied()
        if effects.pulses is not None or effects.restored:
            self.grant_waiters.effects(effects)
        if effects.outcomes is not None:
            self.end_waiters.ended(effects.outcomes)

    def serving_changed(self, serving: bool) -> None:
        """React to this node starting or ceasing to serve; when it ceases, all waiters end."""
        log.info("this node %s", "serves" if serving else "does not serve")
        if serving:
            self.pulse_windows.serve()
            self._on_serving()
            self.job_waiters.idle_queues.begin()
        else:
            self.job_waiters.stop()
            self.job_waiters.idle_queues.stop()
            self.grant_waiters.stop()
            self.end_waiters.stop()
            self.pulse_windows.stop()

    def events(self, events: list[Event]) -> None:
        """Collect the events of an applied entry for their subscribers."""
        self.subscriptions.events(events)

    def recording(self, types: frozenset[str]) -> None:
        """Record which types of events are recorded from now on."""
        self.subscriptions.recording(types)

    def notice(self, channel: str, data: bytes) -> None:
        """Pass a message of NOTIFY to its subscribers."""
        self.subscriptions.notice(channel, data)

    def notices_lost(self) -> None:
        """Inform the subscribers that messages of NOTIFY may have been lost."""
        self.subscriptions.notices_lost()

    def state_replaced(self) -> None:
        """Report a gap to the subscribers."""
        self.subscriptions.replaced()

    def turn_ended(self) -> None:
        """End the turn: advance all conversations that were waiting for it."""
        self.budget = COMMANDS_PER_TURN_MAX
        if self._readers:
            self._let_read()
        self.read_bytes = 0
        while self._small_turns and self.budget > 0:
            self._advance((self._small_turns.popleft(),))
        entry = self.cluster.collecting
        self.job_waiters.pending_puts.turn_ended(entry)
        # While no clients take turns, no client's share is smaller than that.
        self.in_flight_max = COMMANDS_IN_FLIGHT_MAX if entry else min(COMMANDS_IN_FLIGHT_MAX, self.cluster.share)
        if self.crowded and self.cluster.backlog_bytes * 2 < BACKLOG_BYTES_MAX:
            self.crowded = False
            relieved, self._unread = self._unread, {}
            for conversation in relieved:
                conversation.wake()
        if self._awake:
            awake, self._awake = self._awake, []
            self._advance(awake)
        if self._debt > 0:
            self._debt -= COMMANDS_PER_TURN_MAX
        else:
            while self._turns and self.budget > 0:
                self._turns.popleft()()
            if self.budget < -COMMANDS_PER_TURN_MAX // 2:
                self._debt = -self.budget
        self.budget = COMMANDS_PER_TURN_MAX
        if self._pieces:
            self._do_pieces()
        self.subscriptions.turn_ended()
        if self._turns or self._small_turns or self._pieces or self._readers:
            self._go_on_soon()

    def _let_read(self) -> None:
        """Wake some of those that wait to be read: one, and more if others have read less than their share."""
        left = READ_BYTES_PER_TURN - self.read_bytes
        while True:
            conversation = next(iter(self._readers))
            del self._readers[conversation]
            conversation.wake()
            left -= READ_ONCE_BYTES
            if left <= 0 or not self._readers:
                break

    def _do_pieces(self) -> None:
        """Do the pieces of this turn. A piece whose client has gone uses none of the turn's budget."""
        left = LINES_PER_TURN
        pieces = self._pieces
        for _ in range(len(pieces)):        # those that come meanwhile have the next turn
            lines, piece = pieces[0]
            if lines > left:
                break
            pieces.popleft()
            if piece():
                left -= lines

    def _advance(self, conversations: Iterable[Scheduled]) -> None:
        for conversation in conversations:
            try:
                conversation.advance()
            except Exception:
                log.exception("%s: a conversation failed: report it, with this line", conversation.link.peer)
                conversation.cut("after an internal error")

    # ---- for conversations

    def wake(self, conversation: Scheduled) -> None:
        """Schedule the conversation's advance() for the end of the turn."""
        self._awake.append(conversation)
        if not self._scheduled:
            self._go_on_soon()

    def advance_in_turn(self, conversation: Scheduled, backlog_bytes: int) -> None:
        """Schedule the conversation's advance() for after all others have had their turn.

        One with a small backlog does not queue behind busy ones, whose work (such as grants for very many waiters) may
        take a whole turn.
        """
        if conversation.awake:
            return
        conversation.awake = True
        if backlog_bytes <= LONG_LINE_BYTES:
            self._small_turns.append(conversation)
            self._go_on_soon()
        else:
            self.call_in_turn(partial(self._advance, (conversation,)))

    def call_in_turn(self, do: Callable[[], None]) -> None:
        """Call this after all others have had their turn. It must not raise."""
        self._turns.append(do)
        self._go_on_soon()

    def do_piece(self, piece: Piece, lines: int = LINES_PER_PIECE) -> None:
        """Do a piece of a long answer, of about this many lines, when it has its turn."""
        self._pieces.append((lines, piece))
        self._go_on_soon()

    async def turn(self, lines: int = LINES_PER_PIECE) -> None:
        """Wait for the turn of a piece of a long answer."""
        turn: asyncio.Future[None] = self._loop.create_future()

        def begin() -> bool:
            if turn.done():             # the client is gone
                return False
            turn.set_result(None)
            return True

        self.do_piece(begin, lines)
        await turn

    def last_slice_end(self, backlog_bytes: int) -> int:
        """Return how far a conversation with this backlog may draw down the budget when little of it is left.

        Clients with small backlogs get a reserve; otherwise they would queue behind all the busy ones.
        """
        return -COMMANDS_PER_TURN_MAX if backlog_bytes <= LONG_LINE_BYTES else 0

    def _charge(self, commands: int) -> None:
        """Charge a cost, in plain commands, to the budget of this turn."""
        self.budget -= commands

    def _go_on_soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._outside_a_turn)

    def _outside_a_turn(self) -> None:
        self._scheduled = False
        # Otherwise a turn has ended in the meantime.
        if (
            self._awake or self._turns or self._small_turns or self._pieces or self._readers
            or self.subscriptions.pending
        ):
            self.turn_ended()

    def congested(self) -> bool:
        """Return whether the backlog is too large to read from any client, and set `crowded` accordingly.

        Only conversations that propose need to ask.
        """
        if not self.crowded:
            self.crowded = self.cluster.backlog_bytes > BACKLOG_BYTES_MAX
        return self.crowded

    def holds_up(self, backlog_bytes: int, *, in_flight: bool) -> bool:
        """Return whether a conversation must wait until the cluster has worked off half of its backlog.

        A conversation with little to execute and nothing in flight hardly adds to the backlog: it may continue, unless
        there are so many of them that the backlog is twice as large.
        """
        if not self.crowded:
            return False
        return in_flight or backlog_bytes > LONG_LINE_BYTES or self.cluster.backlog_bytes > 2 * BACKLOG_BYTES_MAX

    def no_room(self) -> bytes | None:
        """Return the refusal for a body that has yet to arrive, None if there is room; 500 goes before 503."""
        if not self.account.high and not self.cluster.full:
            return None
        return BUSY if self.cluster.serving else OFFLINE_MODE

    def wake_when_relieved(self, conversation: Scheduled) -> None:
        """Wake the conversation when the cluster has worked off half of its backlog."""
        self._unread[conversation] = None

    def count_read(self, size: int) -> bool:
        """Count a large read; returns whether enough was read, so that this client waits for its next turn."""
        self.read_bytes += size
        return self.read_bytes > READ_BYTES_PER_TURN or bool(self._readers)

    def waits_to_be_read(self, conversation: Scheduled) -> bool:
        """Return whether the conversation waits for its turn to be read."""
        return conversation in self._readers

    def read_in_turn(self, conversation: Scheduled) -> None:
        """Wake the conversation, which is not read again in this turn, after the others that wait to be read."""
        self._readers[conversation] = None
        self._go_on_soon()

    def forget(self, conversation: Scheduled) -> None:
        """Remove a conversation that has ended from the conversations that wait to be read."""
        self._unread.pop(conversation, None)
        self._readers.pop(conversation, None)

    def new_export_path(self) -> Path:
        """Return an unused path for a snapshot that is being sent to a client."""
        return self._export_dir / f"export-{next(self._export_numbers)}"

    def empty_export_dir(self) -> None:
        """Create an empty export directory, removing leftovers of a crash. Raises OSError."""
        shutil.rmtree(self._export_dir, ignore_errors=True)
        self._export_dir.mkdir(mode=0o700, parents=True)
