"""What all conversations of this node share: the cluster, the waiters, and the turn in which they go on."""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import shutil
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from cluster.api import BACKLOG_BYTES_MAX, Cluster
from core import Effects
from gateway.auth.authenticator import Access
from gateway.commands.catalog import VERBS
from gateway.counters import Tally
from gateway.limits import (
    COMMANDS_IN_FLIGHT_MAX,
    COMMANDS_PER_TURN_MAX,
    EXPORTS_MAX,
    LONG_LINE_BYTES,
    Limits,
)
from gateway.link import Link
from gateway.process.memory_limit import memory_mark_bytes
from gateway.protocol.responses import BUSY, OFFLINE_MODE
from gateway.protocol.verbs import Verbs
from gateway.server.memory_account import Account, held_bytes_max
from gateway.server.places import Places
from gateway.waiting.slots import Outcome
from gateway.waiting.waiters import Waiters

log = logging.getLogger("sockpqd.gateway")


class Talk(Protocol):
    """A conversation, as far as its turns are concerned."""

    awake: bool             # the hub will call advance()
    link: Link

    def advance(self) -> None:
        """Go on."""

    def wake(self) -> None:
        """Go on when the turn has ended."""

    def cut(self, why: str) -> None:
        """Close at once."""

    def evict(self) -> None:
        """Let go at once of all that is held for it."""


class Guest(Protocol):
    """A connection, as far as the server ends it or looks at it."""

    def look(self, now: float) -> None:
        """Cut the client off if it takes longer than it may."""

    def hang_up(self) -> None:
        """Close behind what is answered."""

    def abort(self) -> None:
        """Close at once."""


class Hub:
    """The cluster's listener; wakes conversations once per turn.

    Outcomes only mark a conversation awake. It goes on at the end of the turn, or, for outcomes outside of a turn, in
    the next iteration of the loop: so each connection is written to once, after all entries were sent to the others.
    Conversations that have more to execute than their slice stand in line and take turns, behind all others.
    """

    def __init__(
        self, limits: Limits, export_dir: Path, offline_close: bool, shut_down: Callable[[str], None],
        access: Access | None = None, verbs: Verbs = VERBS,
    ) -> None:
        self.verbs = verbs
        self.limits = limits
        self.access = access or Access()            # who may do what; everybody everything when it is not given
        self.offline_close = offline_close
        self.shut_down = shut_down                  # called with the reason
        self.budget = COMMANDS_PER_TURN_MAX         # commands that may still be executed until the turn ends
        self.exports = asyncio.Semaphore(EXPORTS_MAX)
        self.work: set[asyncio.Future[Outcome]] = set()     # of operators; held here, as their clients may go
        self.connections: set[Guest] = set()
        self.refused: set[Guest] = set()       # that get their answer, and are no clients
        self.places = Places(limits)
        self.tally = Tally(verbs.rows)
        self.account = Account(held_bytes_max(memory_mark_bytes(limits.memory_mark_bytes)))
        self.on_serving: Callable[[], None] = lambda: None
        self.new_secret: Callable[[], int] = lambda: secrets.randbits(64)       # of a session
        self._export_dir = export_dir
        self._export_numbers = itertools.count(1)
        self._loop = asyncio.get_running_loop()
        self.in_flight_max = COMMANDS_IN_FLIGHT_MAX     # commands of one connection
        self._awake: list[Talk] = []
        self._line: deque[Talk] = deque()   # who has more to execute
        self._scheduled = False
        self.crowded = False                        # too much is proposed: until half of it is worked off
        self._unread: dict[Talk, None] = {}      # who is not read because of that

    def attach(self, cluster: Cluster) -> None:
        """The cluster whose listener this is; before anything else."""
        self.cluster = cluster
        self.access.attach(cluster.machine)
        self.waiters = Waiters(cluster)

    # ---- ClusterListener

    def effects(self, effects: Effects) -> None:
        """An entry was applied."""
        self.waiters.effects(effects)

    def serving_changed(self, serving: bool) -> None:
        """This node begins or ceases to serve."""
        log.info("this node %s", "serves" if serving else "does not serve")
        if serving:
            self.on_serving()
        else:
            self.waiters.stop()

    def turn_ended(self) -> None:
        """Let everybody go on who has been waiting for this turn."""
        self.budget = COMMANDS_PER_TURN_MAX
        self.in_flight_max = min(COMMANDS_IN_FLIGHT_MAX, self.cluster.share)
        if self.crowded and self.cluster.backlog_bytes * 2 < BACKLOG_BYTES_MAX:
            self.crowded = False
            relieved, self._unread = self._unread, {}
            for conversation in relieved:
                conversation.wake()
        awake, self._awake = self._awake, []
        self._advance(awake)
        while self._line and self.budget > 0:
            self._advance((self._line.popleft(),))
        self.budget = COMMANDS_PER_TURN_MAX
        if self._line:
            self._go_on_soon()

    def _advance(self, conversations: Iterable[Talk]) -> None:
        for conversation in conversations:
            try:
                conversation.advance()
            except Exception:
                log.exception("%s: a conversation failed: report it, with this line", conversation.link.peer)
                conversation.cut("after an error of ours")

    # ---- for conversations

    def wake(self, conversation: Talk) -> None:
        """Call the conversation's advance() when the turn has ended."""
        self._awake.append(conversation)
        if not self._scheduled:
            self._go_on_soon()

    def stand_in_line(self, conversation: Talk) -> None:
        """The same when all others had their turn."""
        if not conversation.awake:
            conversation.awake = True
            self._line.append(conversation)
            self._go_on_soon()

    def last_slice_end(self, backlog_bytes: int) -> int:
        """How far the budget may go down for who has sent so much, when little of it is left.

        Whoever has little to say has a reserve, or he would stand in line behind all that have much.
        """
        return -COMMANDS_PER_TURN_MAX if backlog_bytes <= LONG_LINE_BYTES else 0

    def _go_on_soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._outside_a_turn)

    def _outside_a_turn(self) -> None:
        self._scheduled = False
        self.turn_ended()

    def congested(self) -> bool:
        """Is so much proposed that nobody should be read? Only those who propose need to ask: it sets `crowded`."""
        if not self.crowded:
            self.crowded = self.cluster.backlog_bytes > BACKLOG_BYTES_MAX
        return self.crowded

    def no_room(self) -> bytes | None:
        """What is said to data that are not here yet, if there is no room for them; 500 goes before 503."""
        if not self.account.high and not self.cluster.full:
            return None
        return BUSY if self.cluster.serving else OFFLINE_MODE

    def wake_when_relieved(self, conversation: Talk) -> None:
        """Wake the conversation when the cluster has worked off half of its backlog."""
        self._unread[conversation] = None

    def forget(self, conversation: Talk) -> None:
        """The conversation is closed."""
        self._unread.pop(conversation, None)

    def new_export_path(self) -> Path:
        """A file that does not exist, for a snapshot on its way to a client."""
        return self._export_dir / f"export-{next(self._export_numbers)}"

    def empty_export_dir(self) -> None:
        """Make the folder for exports; what lies there is left over from a crash. Raises OSError."""
        shutil.rmtree(self._export_dir, ignore_errors=True)
        self._export_dir.mkdir(parents=True)
