"""One client's commands in order, and their answers in the same order, without sockets.

Operations that follow each other are proposed at once; their answers wait in slots, first in, first out. Two kinds of
commands hold up what stands behind them: those that may block, and those that read or change this node itself, which
also wait until everything before them is answered. What is held up stays in the parser as plain bytes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine

from core import Policy, Reply, Requested
from gateway.auth.authorizer import Guard
from gateway.commands import auth
from gateway.commands.client import Attachment, Mode, Upload
from gateway.commands.in_session import in_session
from gateway.commands.transaction import Transaction
from gateway.limits import AHEAD_BYTES_MAX, COMMANDS_PER_SLICE, OUTPUT_PIECE_BYTES
from gateway.link import Link
from gateway.protocol import responses
from gateway.protocol.command import Command
from gateway.protocol.parser import Parser
from gateway.protocol.request_id import Numbering
from gateway.server.hub import Hub
from gateway.server.timeouts import Turn
from gateway.waiting.rotation import Rotation
from gateway.waiting.slots import Awaited, AwaitedRequest, Fate, Outcome, Said, Slot, Told, give_back
from gateway.waiting.waiter import Waiter

log = logging.getLogger("sockpqd.gateway")


class Conversation:
    """The conversation with one client. All calls come from the loop."""

    def __init__(self, hub: Hub, link: Link, *, on_trial: bool = False) -> None:
        """`on_trial`: the client has a place only if it is an administrator."""
        self.hub = hub
        self.link = link
        self.guard = Guard(hub.access, hub.cluster, link)       # who the client is
        self.ended = False                          # the client sent its last byte
        self.closed = False                         # nothing is answered any more
        self.awake = False                          # the hub will call advance()
        self.clone: Upload | None = None             # the CLONE whose data arrive
        self.attached: Attachment | None = None       # the session of the connection
        self.waiter: Waiter | None = None           # the blocked command, the last slot
        self.transaction: Transaction | None = None     # between BEGIN and COMMIT
        self.trial: Mode | None = auth.on_trial if on_trial else None  # what is done with commands until it is decided
        self._mode = self.trial                     # what is done with commands for now, if not what their rows say
        self.policy: Policy | None = None           # of this connection (POLICY)
        self.rotation: Rotation | None = None       # of queues among which it took turns
        self._parser = Parser(hub.limits, hub.verbs, self.guard.refusal if hub.access.required else None, hub.no_room)
        self._sated = False                         # its share of what is queued for the log is used up
        self._dry = True                            # all complete commands in the parser are executed
        self._slots: deque[Slot] = deque()
        self._held: Command | None = None           # waits until all slots are answered
        self._task: asyncio.Task[None] | None = None    # a command that takes its time
        self._out: list[bytes] = []
        self._paused = False                        # the client is not read
        self._output_full = False
        self._held_bytes = 0                        # as the account was told
        self._room: asyncio.Future[None] | None = None
        self._leader = hub.cluster.leader()         # the last one known when the client came

    # ---- what happens to the connection

    def receive(self, data: bytes) -> None:
        """The client sent bytes."""
        if self.closed:
            return
        self._parser.feed(data)
        self._dry = False
        if not self.awake:
            self._go_on()
        if not self.closed:
            self._throttle()
        if self._parser.holding or self._held_bytes or self.transaction is not None:
            self._weigh()

    def end(self) -> None:
        """The client sent its last byte: a command that is blocked is cancelled, the others are answered."""
        self.ended = True
        if self.waiter is not None and self.waiter.number:
            self.finish()
        else:
            self._go_on()

    def lost(self) -> None:
        """The connection is gone: what waits for a turn is not executed, as what was not begun."""
        self._close()
        self.hub.cluster.withdraw(self)
        self._output_full = False
        self._weigh()

    def output_full(self) -> None:
        """The client does not take its answers."""
        self._output_full = True
        self._weigh()

    def output_taken(self) -> None:
        """There is room for answers again."""
        self._output_full = False
        self._weigh()
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        self.wake()

    def turn(self) -> tuple[Turn, int]:
        """What is waited for, and a number that changes when the client gets on."""
        parser = self._parser
        held_up = self.waiter or self._task or self._held or not self._dry      # what stands behind it is not late
        if self.closed or self._paused or held_up:
            return Turn.OURS, 0
        if parser.amid_command and parser.lines:    # the data of a CLONE may take as long as they get on
            return Turn.REST, parser.complete if self.clone is None else -parser.missing_bytes
        if self._slots:
            return Turn.OURS, 0
        return (Turn.NEXT, parser.complete) if parser.lines else (Turn.HELLO, 0)

    # ---- what commands do

    def propose(self, operation: Requested, numbering: Numbering | None = None) -> None:
        """Put an operation into the log, as a request if it is numbered; its answer gets the next slot."""
        slot = Awaited(self) if numbering is None else AwaitedRequest(self)
        self._slots.append(slot)
        self._sated = self.hub.cluster.propose_for(
            self, operation if numbering is None else numbering.request(operation), slot)

    def propose_told(
        self, operation: Requested, tell: Callable[[Reply], Outcome], numbering: Numbering | None = None,
    ) -> None:
        """The same; what `tell` makes of the reply is the answer."""
        slot = Told(self, tell, numbering is not None)
        self._slots.append(slot)
        self._sated = self.hub.cluster.propose_for(
            self, operation if numbering is None else numbering.request(operation), slot)

    def nothing_in_flight(self) -> bool:
        """Are all commands before this one answered?"""
        self._drain()
        return not self._slots

    def enter_transaction(self, mode: Mode, transaction: Transaction | None) -> None:
        """Until it is left `mode` says what is done with commands."""
        self._mode, self.transaction = mode, transaction

    def end_trial(self) -> None:
        """The client is an administrator."""
        self.trial = self._mode = None
        self.link.end_trial()

    def leave_transaction(self) -> Transaction | None:
        """The transaction is over; returns it."""
        self._mode = None
        transaction, self.transaction = self.transaction, None
        return transaction

    def await_slot(self, slot: Slot) -> None:
        """The next answer is the outcome of `slot`."""
        self._slots.append(slot)

    def attach(self, attached: Attachment | None) -> None:
        """This is the session of the connection from now on."""
        if self.attached is not None:
            self.attached.leave()
        self.attached = attached

    def block(self, waiter: Waiter) -> None:
        """The next answer is `waiter`'s; nothing behind it is executed before."""
        self.waiter = waiter
        self._slots.append(waiter)
        self._parser.trim()
        if waiter.held_bytes:
            self._weigh()

    def say(self, outcome: Outcome) -> None:
        """Answer at once, in order."""
        self._slots.append(Said(outcome))

    def say_last(self, answer: bytes) -> None:
        """Answer and close."""
        self._out.append(answer)
        if answer >= responses.REFUSAL:
            self.hub.tally.refused(answer)
        self.finish()

    def run(self, work: Coroutine[None, None, None]) -> None:
        """Execute a command that takes its time; nothing behind it is executed before."""
        if self._out:
            self._flush()
        if self.closed:
            work.close()
            return
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(self._task_done)

    async def stream(self, piece: bytes) -> None:
        """Send a piece of a long answer as soon as the client has taken most of those before."""
        self.link.write(piece)
        while self._output_full:
            self._weigh()
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def wake(self) -> None:
        """Go on when the turn has ended."""
        if not self.awake:
            self.awake = True
            self.hub.wake(self)

    def finish(self) -> None:
        """Send what is answered and close."""
        if self._out:
            self._flush()
        if not self.closed:
            self._close()
            self.link.finish()

    def cut(self, why: str) -> None:
        """Close at once."""
        if not self.closed:
            log.info("%s: connection cut, %s", self.link.peer, why)
            self._close()
            self.link.abort()

    def evict(self) -> None:
        """Let go of all that is held for the client; see memory_account.py."""
        self.cut("too much is held for it")
        self.link.abort()           # also when only its answers are left

    # ---- going on

    def advance(self) -> None:
        """Outcomes or room have come."""
        self.awake = self._sated = False
        if self.closed:
            self._slots = give_back(self.hub.cluster, self._slots)
        else:
            self._go_on()
            if self._paused and not self.closed:
                self._throttle()
            if self._held_bytes:
                self._weigh()

    def _go_on(self) -> None:
        self._drain()
        if not self._dry:
            self._dry = self._pump()
            self._drain()
        if self._out:
            self._flush()
        # A CLONE whose data end too early will never be answered; everything before it is (it stands alone).
        if self.ended and self._dry and (not self._slots or self.clone is not None):
            self.finish()

    def _pump(self) -> bool:
        """Execute commands as long as nothing holds them up; are all that are complete executed?"""
        hub = self.hub
        if hub.crowded:
            hub.wake_when_relieved(self)
            return False
        slice_end = hub.budget - COMMANDS_PER_SLICE
        if slice_end < 0:
            slice_end = hub.last_slice_end(self._parser.backlog_bytes)
        while not (self.waiter or self._task or self._sated or self._output_full or self.closed):
            if len(self._slots) >= hub.in_flight_max:
                self._drain()       # those answered at once make room
                if len(self._slots) >= hub.in_flight_max:
                    return False
                continue
            if hub.budget <= slice_end:
                hub.stand_in_line(self)
                return False
            command = self._held or self._parser.next()
            if self._parser.toil:
                hub.budget -= self._parser.toil
                self._parser.toil = 0
            elif command is None:
                return True
            if command is None:
                continue
            hub.budget -= 1
            row = command.row
            alone = row.kind.alone
            if self._mode is not None:
                run = self._mode(command)
            elif alone:
                run = None
            else:
                run = in_session if command.number or command.bound else row.run
            if run is None:
                self._drain()
                if self._slots or self.closed:
                    self._held = command
                    return False
                self._held = None
                self._mode = self.trial         # it cannot stand in a transaction
                run = row.run
            if alone or not (command.number or command.bound):      # else it is counted when there is a session
                hub.tally.commands[row] += 1
            run(self, command)
        return False

    def _drain(self) -> None:
        """Take the answers whose turn it is."""
        slots, out = self._slots, self._out
        size = 0
        while slots and (outcome := slots[0].outcome) is not None:
            if slots.popleft() is self.waiter:
                self.waiter = None
            if isinstance(outcome, Fate):
                if outcome is Fate.REFUSED:
                    out.append(responses.OFFLINE_MODE)
                    self.hub.tally.refused(responses.OFFLINE_MODE)
                elif outcome is Fate.UNKNOWN_REQUEST:
                    out.append(responses.OUTCOME_UNKNOWN)
                    self.hub.tally.refused(responses.OUTCOME_UNKNOWN)
                if outcome is not Fate.REFUSED or self._leader_changed():
                    self.finish()
                    return
            else:
                answer = outcome if isinstance(outcome, bytes) else responses.answer(outcome)
                out.append(answer)
                if answer >= responses.REFUSAL:
                    self.hub.tally.refused(answer)
                size += len(answer)
                if size > OUTPUT_PIECE_BYTES:       # so that what does not fit any more can be given back
                    size = 0
                    self._flush()
                    if self.closed:
                        return

    def _leader_changed(self) -> bool:
        """Another leader than when the client came? Then the client should choose anew (spec/cluster 3.2)."""
        leader = self.hub.cluster.leader()
        if leader is None or leader == self._leader:
            return False
        if self._leader is None:
            self._leader = leader
            return False
        return self.hub.offline_close

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("%s: a command failed: report it, with this line", self.link.peer, exc_info=error)
            self.cut("after an error of ours")
        self.wake()

    # ---- the connection's buffers

    def _flush(self) -> None:
        data = b"".join(self._out)
        self._out.clear()
        self.link.write(data)
        if self._output_full:
            self._weigh()
            if self.link.unsent_bytes() > self.hub.limits.output_bytes_max:
                self.cut("it does not take its answers")

    def _throttle(self) -> None:
        """Do not read a client that is ahead of us; go on at the half."""
        hub, full = self.hub, False
        if not self._dry:
            limit = AHEAD_BYTES_MAX if hub.account.high else hub.limits.pipeline_bytes_max
            full = self._parser.backlog_bytes * (2 if self._paused else 1) > limit
        if hub.crowded or (self._sated and hub.congested()):
            hub.wake_when_relieved(self)
            full = True
        if full and not self._paused:
            self.link.pause()
        elif self._paused and not full:
            self.link.resume()
        self._paused = full

    def _weigh(self) -> None:
        """Tell the account what is held for the client."""
        held = self._parser.held_bytes
        if self.waiter is not None:
            held += self.waiter.held_bytes
        if self.transaction is not None:
            held += self.transaction.held_bytes
        if self._output_full:
            held += self.link.unsent_bytes()
        if held != self._held_bytes:
            self._held_bytes = held
            self.hub.account.hold(self, held)

    def _close(self) -> None:
        if self.closed:
            return
        self.closed = self.ended = True
        self._out.clear()
        self._parser.close()
        self._held = self.transaction = None
        if self._task is not None:
            self._task.cancel()
        self.attach(None)
        # Slots refer to the conversation, and the garbage collector does not see them: none may stay without outcome.
        if self.waiter is not None:
            self.hub.waiters.cancel(self.waiter)
            self.waiter = None
        if self.clone is not None:
            self.clone.cancel()
            self.clone = None
        self._slots = give_back(self.hub.cluster, self._slots)
        self.hub.forget(self)
        self._weigh()
