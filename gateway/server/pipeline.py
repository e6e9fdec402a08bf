"""One client's pipeline: commands executed in order, answers sent in the same order. Independent of sockets.

Consecutive operations are proposed without waiting; their answers are collected in slots, first in, first out. Two
kinds of commands hold up those behind them: commands that may block, and commands that read or change this node itself,
which also wait until everything before them is answered. Commands held up stay in the parser as raw bytes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import cast, get_args

from sockpqd.core import REQUEST_WINDOW, Handed, HandedMany, JobEnded, PageLost, Reply, Requested
from sockpqd.gateway.auth.authorizer import Guard
from sockpqd.gateway.commands import auth
from sockpqd.gateway.commands.context.client_state import ClientState, Run
from sockpqd.gateway.commands.context.hand_outs import HandOuts
from sockpqd.gateway.commands.context.in_session import in_session
from sockpqd.gateway.limits import COMMANDS_PER_SLICE, HAND_OUTS_PER_LOOK, OUTPUT_PIECE_BYTES, UNSURE_S
from sockpqd.gateway.link import Link
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.parser import Parser
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.rights import Rights
from sockpqd.gateway.server.flow import Flow
from sockpqd.gateway.server.hub import Hub
from sockpqd.gateway.server.slow_commands import SLOW_S
from sockpqd.gateway.waiting.slots import (
    NEVER,
    Awaited,
    ImmediateSlot,
    MappedRequestSlot,
    MappedSlot,
    NoReply,
    OperationSlot,
    Outcome,
    RequestSlot,
    Slot,
    give_back,
)
from sockpqd.gateway.waiting.waiting_line import Waiter

log = logging.getLogger("sockpqd.gateway")

HandingOut = Handed | HandedMany | responses.AtWriting
HANDING_OUT = frozenset(get_args(HandingOut))
SPECIAL = HANDING_OUT | {JobEnded}       # outcomes with which there is more to do than to write their answers


class Pipeline:
    """The `Client` that commands see (commands/context/client.py), woken by the hub; used in the event loop only."""

    def __init__(self, hub: Hub, link: Link, *, on_trial: bool) -> None:
        self.hub = hub
        self.link = link
        self.guard = Guard(hub.access, hub.cluster, link)       # who the client is
        self.state = ClientState(link, auth.on_trial if on_trial else None)
        self.flow = Flow(hub, link)
        self.parser = Parser(hub.limits, hub.verbs, self.guard.refusal if hub.access.required else None, hub.no_room)
        self.ended = False                          # the client has sent its last byte
        self.closed = False                         # no more answers are sent
        self.awake = False                          # the hub will call advance()
        self.caught_up = True                       # all complete commands in the parser have been executed
        self.waiter: Waiter | None = None    # the blocked command; always the last slot
        self._slots: deque[Awaited] = deque()
        self._began = 0.0                           # when the commands that are being executed were taken up
        self._taking: Command | None = None         # the one of them that is
        self._held: Command | None = None           # waits until all slots are answered
        self._task: asyncio.Task[None] | None = None    # a long-running command
        self._task_rights: Rights | None = None         # with which it was begun
        self.over_share = False                     # its share of the log's backlog is used up
        self._cluster = hub.cluster
        self._leader = hub.cluster.leader()         # the last one known when the client connected

    # ---- the interface for commands; see commands/context/client.py

    def propose(self, operation: Requested, numbering: Numbering | None = None) -> None:
        """Propose an operation, as a request if it is numbered; its reply becomes the next answer."""
        slot = OperationSlot(self) if numbering is None else RequestSlot(self)
        self._slots.append((slot, self._began, self._taking))
        self.over_share = self._cluster.propose_for(
            self, operation if numbering is None else numbering.request(operation), slot)

    def propose_mapped(
        self, operation: Requested, tell: Callable[[Reply], Outcome], numbering: Numbering | None = None,
    ) -> None:
        """Propose an operation; `tell` turns its reply into the answer."""
        slot = (MappedSlot if numbering is None else MappedRequestSlot)(self, tell=tell)
        self._slots.append((slot, self._began, self._taking))
        self.over_share = self._cluster.propose_for(
            self, operation if numbering is None else numbering.request(operation), slot)

    def nothing_in_flight(self) -> bool:
        """Return whether all commands before this one have been answered."""
        self._drain()
        return not self._slots

    def number_in_flight(self, number: int) -> bool:
        """Return whether a command before this one may use the request number, or cause its answer to be forgotten."""
        return any(
            taken is not None and (taken.number == number or taken.number >= number + REQUEST_WINDOW)
            for _, _, taken in self._slots
        )

    def await_slot(self, slot: Slot) -> None:
        """Make the outcome of `slot` the next answer."""
        self._slots.append((slot, self._began, self._taking))

    def block(self, waiter: Waiter) -> None:
        """Make `waiter`'s outcome the next answer; later commands wait until then."""
        self.waiter = waiter
        self._slots.append((waiter, NEVER, None))       # it may wait
        self.parser.trim()
        if waiter.held_bytes:
            self.weigh()

    def say(self, outcome: Outcome) -> None:
        """Make `outcome` the answer to this command, after earlier answers."""
        self._slots.append((ImmediateSlot(outcome), self._began, self._taking))

    def say_last(self, answer: bytes) -> None:
        """Send the answer and close."""
        self.flow.out.append(answer)
        if answer >= responses.REFUSAL:
            self.hub.tally.refused(answer)
        self.finish()

    def run(self, work: Coroutine[None, None, None]) -> None:
        """Run a long-running command; later commands wait until it ends."""
        if self.flow.out:
            self._flush()
        if self.closed:
            work.close()
            return
        self._task_rights = self.guard.rights
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(self._task_done)

    @property
    def rights_changed(self) -> bool:
        """True if the user's rights have changed since the running command began."""
        return self.guard.rights != self._task_rights

    async def stream(self, piece: bytes) -> None:
        """Send a piece of a long answer, then wait until the client has read most of the sent bytes.

        If the user's rights have changed since the answer began, the rest is not sent.
        """
        if self.rights_changed:
            self.cut("the rights of its user have changed while it was being answered")
            await asyncio.sleep(0)          # the command ends here
        self.flow.write(piece)
        while self.flow.full:
            self.weigh()
            await self.flow.room()

    def wake(self) -> None:
        """Continue when the current turn ends."""
        if not self.awake:
            self.awake = True
            self.hub.wake(self)

    # ---- progress

    @property
    def held_up(self) -> bool:
        """True if received commands are being held up."""
        return bool(self.waiter or self._task or self._held or not self.caught_up)

    @property
    def answering(self) -> bool:
        """True if there are unanswered commands."""
        return bool(self._slots)

    @property
    def answering_before_waiter(self) -> bool:
        """True if there are unanswered commands before the blocked one."""
        return self._slots[0][0] is not self.waiter

    def advance(self) -> None:
        """Continue after outcomes have arrived or output has drained."""
        self.awake = False
        if self.over_share and (not self._slots or self._slots[0][0].outcome is not None):
            self.over_share = False
        if self.closed:
            self._slots = give_back(self._cluster, self._slots)
        else:
            self.go_on()
            if (self.flow.paused or self.over_share) and not self.closed:
                self.throttle()         # also because it may be the one that makes the backlog too large
            if self.flow.held_bytes:
                self.weigh()

    def go_on(self) -> None:
        """Send the answers that are ready and execute the commands that can be."""
        slots = self._slots
        if slots and slots[0][0].outcome is not None:
            self._drain()
        if not self.caught_up:
            self.caught_up = self._pump()
            slots = self._slots
            if slots and slots[0][0].outcome is not None:
                self._drain()
        if self.flow.out:
            self._flush()
        # A CLONE whose data end too early is never answered; everything before it has been (it stands alone).
        if self.ended and self.caught_up and (not self._slots or self.state.clone is not None):
            self.finish()

    def _pump(self) -> bool:
        """Execute commands until something holds them up; return whether all complete ones were executed."""
        hub, parser, state, flow, slots = self.hub, self.parser, self.state, self.flow, self._slots
        counts = hub.tally.commands
        if hub.crowded and hub.holds_up(parser.backlog_bytes, in_flight=bool(slots)):
            hub.wake_when_relieved(self)
            return False
        slice_end = hub.budget - COMMANDS_PER_SLICE
        if slice_end < 0:
            slice_end = hub.last_slice_end(parser.backlog_bytes)
        self._began = time.monotonic()
        while not (self.waiter or self._task or self.over_share or flow.full or self.closed):
            if len(slots) >= hub.in_flight_max:
                self._drain()       # those already answered make room
                if len(slots) >= hub.in_flight_max:
                    return False
                continue
            if hub.budget <= slice_end:
                hub.advance_in_turn(self, parser.backlog_bytes)
                return False
            command = self._held or parser.next()
            if parser.extra_work:
                hub.budget -= parser.extra_work
                parser.extra_work = 0
                if command is None:
                    continue
            elif command is None:
                return True
            self._taking = command
            row = command.row
            hub.budget -= row.cost
            if row.alone or state.mode is not None or command.number or command.bound or state.turning:
                run = self._run_of(command)
                if run is None:
                    return False
            else:                               # most commands
                counts[row] += 1
                run = row.run
            run(self, command)
            if not parser.holding:
                return True
        return False

    def _run_of(self, command: Command) -> Run | None:
        """Count the command and return the function that executes it; None: the answers before it must come first."""
        row, state = command.row, self.state
        in_its_session = (command.number or command.bound) and not row.alone
        if state.mode is not None:
            run = state.mode(command)
        elif row.alone or (row.takes and state.turning):
            run = None
        else:
            run = in_session if in_its_session else row.run
        if run is None:
            self._drain()
            if self._slots or self.closed:
                self._held = command
                return None
            self._held = None
            state.mode = state.trial            # such a command cannot be part of a transaction
            state.turning = False
            run = in_session if in_its_session else row.run
        if not in_its_session:                  # otherwise it is counted once the session is known
            self.hub.tally.commands[row] += 1
        return run

    def _drain(self) -> None:
        """Collect the answers that are ready at the head of the slots."""
        slots, out, encoders = self._slots, self.flow.out, responses.ENCODERS
        size = 0
        slow_before = time.monotonic() - SLOW_S
        while slots and (outcome := slots[0][0].outcome) is not None:
            kind = type(outcome)
            special = kind in SPECIAL
            if special and kind is responses.AtWriting and self._unsure():
                return
            # Before the slot is taken: if there is no memory for the answer, its jobs can be given back.
            answer = None if kind is NoReply else encoders[kind](outcome)
            slot, began, command = slots.popleft()
            if slot is self.waiter:
                self.waiter = None
            if began < slow_before and command is not None:
                self.hub.slow.note(self.guard.user, self.link.peer, began, command, outcome)
            if answer is None:
                if self._answer_no_reply(cast(NoReply, outcome)):
                    self.finish()
                    return
            else:
                out.append(answer)
                size += len(answer)
                if special:
                    if type(outcome) is Handed and (hand_outs := self.state.hand_outs) is not None:     # nearly always
                        hand_outs.new.append(outcome.id)
                        if len(hand_outs.new) >= HAND_OUTS_PER_LOOK:
                            self._look_at_hand_outs(hand_outs)
                    elif kind in HANDING_OUT:
                        self._handed_out(cast(HandingOut, outcome))
                    if type(answer) is responses.LineOfLarge:
                        out.append(answer.body)
                        size += len(answer.body)
                if answer >= responses.REFUSAL:
                    self.hub.tally.refused(answer)
                if size > OUTPUT_PIECE_BYTES:       # so that jobs that no longer fit can be given back
                    size = 0
                    self._flush()
                    if self.closed:
                        return

    def _handed_out(self, outcome: HandingOut) -> None:
        """Record the jobs handed out to the client."""
        jobs = outcome.jobs if isinstance(outcome, responses.AtWriting) else outcome
        if jobs is None:            # a grant of PULSE WAIT
            return
        if self.state.hand_outs is None:
            self.state.hand_outs = HandOuts()
        self.state.hand_outs.note(jobs)
        if self.state.hand_outs.looks:
            self._look_at_hand_outs(self.state.hand_outs)

    def _look_at_hand_outs(self, hand_outs: HandOuts) -> None:
        """Drop some of those that have ended."""
        hand_outs.look(self._cluster.machine)
        self.weigh()

    def _unsure(self) -> bool:
        """Return whether this node serves without knowing whether another one does.

        If so, it looks again in a moment.
        """
        unsure = self._cluster.serving and not self._cluster.holds_lease
        if unsure:
            asyncio.get_running_loop().call_later(UNSURE_S, self.wake)
        return unsure

    def _answer_no_reply(self, outcome: NoReply) -> bool:
        """Answer a command that has no reply; returns whether the connection ends with that."""
        if outcome is NoReply.REFUSED:
            answer = responses.OFFLINE_MODE
        elif outcome is NoReply.UNKNOWN_REQUEST:
            answer = responses.OUTCOME_UNKNOWN
        else:
            return True
        self.flow.out.append(answer)
        self.hub.tally.refused(answer)
        return outcome is not NoReply.REFUSED or self._leader_changed()

    def _leader_changed(self) -> bool:
        """Return whether the leader has changed since the client connected, so that it should reconnect
        (spec/cluster 3.2).
        """
        leader = self._cluster.leader()
        if leader is None or leader == self._leader:
            return False
        if self._leader is None:
            self._leader = leader
            return False
        return self.hub.offline_close

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if self.state.gathered_bytes:
            self.state.gathered_bytes = 0
            self.weigh()
        error = None if task.cancelled() else task.exception()
        if isinstance(error, PageLost):     # of a state that a newer one has replaced meanwhile, or the node stops
            self.cut("the jobs it was being shown are gone")
        elif error is not None:
            log.error("%s: a command failed: report it, with this line", self.link.peer, exc_info=error)
            self.cut("after an internal error")
        self.wake()

    # ---- buffers

    def _flush(self) -> None:
        self.flow.flush()
        if self.flow.full:
            self.weigh()
            if self.flow.overflows:
                self.cut("it leaves too many answers unread")

    def throttle(self) -> None:
        """Pause or resume reading from the client."""
        flow = self.flow
        if self.caught_up and not (flow.paused or self.over_share or flow.read_much or self.hub.crowded):
            return
        flow.throttle(
            self, 0 if self.caught_up else self.parser.backlog_bytes, in_flight=bool(self._slots),
            over_share=self.over_share,
        )

    def weigh(self) -> None:
        """Report the memory held for the client to the account."""
        held_bytes = self.parser.held_bytes + self.state.parts_bytes + self.state.gathered_bytes
        if self.waiter is not None:
            held_bytes += self.waiter.held_bytes
        if self.state.transaction is not None:
            held_bytes += self.state.transaction.held_bytes
        if self.state.subscribed is not None:
            held_bytes += self.state.subscribed.held_bytes
        if self.state.hand_outs is not None:
            held_bytes += self.state.hand_outs.held_bytes
        if self.state.round_robin is not None:
            held_bytes += self.state.round_robin.held_bytes
        self.flow.weigh(self, held_bytes)

    # ---- the end

    def finish(self) -> None:
        """Send the answers so far and close."""
        if self.flow.out:
            self._flush()
        if not self.closed:
            self.close()
            self.link.finish()

    def cut(self, why: str) -> None:
        """Close immediately and log the reason."""
        if not self.closed:
            log.info("%s: connection cut, %s", self.link.peer, why)
            self.close()
            self.link.abort()

    def evict(self) -> None:
        """Release everything held for the client; see memory_account.py."""
        self.cut("it holds too much memory")
        self.link.abort()           # even if only its answers are left

    def close(self) -> None:
        """Stop executing and answering, and release everything."""
        if self.closed:
            return
        self.closed = self.ended = True
        self.flow.out.clear()
        self.parser.close()
        self._held = None
        if self._task is not None:
            self._task.cancel()
        # Slots refer to the pipeline and are invisible to the garbage collector: none may remain without an outcome.
        if self.waiter is not None:
            self.waiter.leave()
            self.waiter = None
        self.state.close()
        self._slots = give_back(self._cluster, self._slots)
        self._taking = None
        self.hub.forget(self)
        self.weigh()
