"""A simulated machine whose process has a gateway too: the real hub with its connections, on a loop of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sockpqd.cluster import RefusalLog
from sockpqd.cluster.api import ClientPending, Cluster, Pending
from sockpqd.cluster.driven_node import DrivenNode
from sockpqd.cluster.driver import Driver
from sockpqd.core import Effects, Event, Operation
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.server.connection import Connection
from sockpqd.gateway.server.hub import Hub, Scheduled
from sockpqd.gateway.server.port import Port
from tests.sim.gateway.answers import Answer
from tests.sim.gateway.connections import Line, SimTransport
from tests.sim.gateway.first_come import FirstCome
from tests.sim.gateway.loop import SimLoop
from tests.sim.world.idle_time import BEYOND_S
from tests.sim.world.node import SimNode

if TYPE_CHECKING:
    from tests.sim.gateway.world import GatewayWorld

SWEEP_S = 5.0
log = logging.getLogger("sockpqd.gateway")


class SimHub(Hub):
    """The hub of a simulated process: a conversation that fails ends the run."""

    def _advance(self, conversations: Iterable[Scheduled]) -> None:
        for conversation in conversations:
            conversation.advance()


class GatewayDriven(DrivenNode):
    """The cluster as the hub sees it."""

    def __init__(self, driver: Driver, node: GatewayNode) -> None:
        super().__init__(driver)
        self._node = node

    def _wake(self) -> None:
        self._node.wake(self._node.world.events.now)

    @property
    def holds_lease(self) -> bool:
        """See Cluster. What the hub answers now, if it does, was not confirmed by another node."""
        holds = super().holds_lease
        if holds:
            self._node.world.trace.seen["answers from the lease"] += 1
            self._node.world.leases.judge(self._node)
        return holds

    def propose(self, operation: Operation, pending: Pending) -> None:
        """Implement Cluster."""
        super().propose(operation, self._node.decided(operation, pending))

    def propose_for(
        self, client: object, operation: Operation, pending: ClientPending, behind: bool = False,
    ) -> bool:
        """Implement Cluster."""
        return super().propose_for(client, operation, self._node.decided(operation, pending), behind)


class Process:
    """The objects that live and die with a process: its loop, hub and connections."""

    def __init__(self, node: GatewayNode) -> None:
        rng = node.world.secrets
        self.loop = SimLoop(node.clock.monotonic)
        self.first_come = FirstCome(node.world.events)
        self.transports: dict[SimTransport, None] = {}
        with self.loop.running():
            self.hub = SimHub(Limits(memory_mark=1 << 30), Path("unused"), True, lambda reason: None)
            self.hub.new_secret = lambda: rng.getrandbits(64)
            self.loop.call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        """Look for clients that are gone, as the server does."""
        for accepted in list(self.hub.connection_manager.accepted):
            accepted.check(self.loop.time())
        self.loop.call_later(SWEEP_S, self._sweep)

    def accept(self, transport: SimTransport) -> None:
        """Accept a client on this transport."""
        transport.begin(Connection(self.hub, Port(), RefusalLog(log)))


class GatewayNode(SimNode):
    """See the module. `freeze_s`: for this long it gets no processor before it writes its next grants."""

    world: GatewayWorld
    _process: Process

    def __init__(self, world: GatewayWorld, *others: Any) -> None:
        super().__init__(world, *others)
        self.freeze_s = 0.0
        self.has_grants = False         # they are given, and not written yet

    @property
    def hub(self) -> Hub:
        """The gateway of the process, which must be running."""
        return self._process.hub

    # Life

    def _built(self, driver: Driver) -> None:
        self.hub.attach(cast(Cluster, GatewayDriven(driver, self)))

    def _build(self) -> Driver:
        self._process = Process(self)
        with self._process.loop.running():
            return super()._build()

    def _gone(self) -> None:
        if self.driver is not None:
            transports, self._process.transports = self._process.transports, {}
            for transport in transports:
                transport.died()
        self.freeze_s, self.has_grants = 0.0, False
        super()._gone()

    # Connections

    def accept(self, transport: SimTransport) -> None:
        """Accept a client; the process must be running."""
        process = self._process
        process.transports[transport] = None
        self.soon(lambda: process.accept(transport))

    def forget(self, transport: SimTransport) -> None:
        """Remove a closed connection."""
        self._process.transports.pop(transport, None)
        self._process.first_come.gone(transport.line)

    def soon(self, action: Callable[[], object]) -> None:
        """Call this as soon as the process has the processor."""
        self._process.loop.call_soon(action)
        self.wake(self._events.now)

    def reads(self, line: Line, command: bytes) -> None:
        """Note that the process reads a command."""
        if self.serving and any(command.startswith(b"PULSE WAIT %s " % name.encode()) for name in self.machine.pulses):
            self._process.first_come.reads(line, command)

    def wrote(self, line: Line, answer: Answer) -> None:
        """Note that the process writes an answer to a client."""
        self._process.first_come.wrote(line, answer)
        self.world.monitor.wrote(self, answer, answer.asked.pulse)

    def decided(self, operation: Operation, pending: Any) -> Any:
        """Note that the process proposes an operation."""
        return self.world.monitor.decided(self, operation, pending)

    # Turns

    def _take_turn(self, driver: Driver) -> None:
        loop = self._process.loop
        with loop.running():
            loop.run()
            driver.turn()

    def _busy(self, driver: Driver) -> bool:
        return not self._blocked and (super()._busy(driver) or self._process.loop.busy)

    @property
    def _blocked(self) -> bool:
        return self._blocked_until > self._events.now

    def _idle_until(self, driver: Driver) -> float:
        if self._blocked:
            return self._blocked_until
        idle, timer_s = super()._idle_until(driver), self._process.loop.next_s()
        return min(idle, max(self.clock.when(timer_s) + BEYOND_S / 10, self._events.now))

    # ClusterListener

    def effects(self, effects: Effects) -> None:
        self.hub.effects(effects)

    def events(self, events: list[Event]) -> None:
        self.hub.events(events)

    def recording(self, types: frozenset[str]) -> None:
        self.hub.recording(types)

    def notice(self, channel: str, data: bytes) -> None:
        self.hub.notice(channel, data)

    def notices_lost(self) -> None:
        self.hub.notices_lost()

    def state_replaced(self) -> None:
        self.hub.state_replaced()

    def serving_changed(self, serving: bool) -> None:
        super().serving_changed(serving)
        self.hub.serving_changed(serving)

    def turn_ended(self) -> None:
        frozen, self.has_grants = self.has_grants and self.freeze_s > 0, False
        if frozen:
            self._process.loop.first(self.hub.turn_ended)
            seconds, self.freeze_s = self.freeze_s, 0.0
            self.pause(seconds)
        else:
            self.hub.turn_ended()
