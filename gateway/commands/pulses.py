"""The commands on pulses (PROTOCOL "Pulses")."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import Accepted, Pulse, Reply
from sockpqd.gateway.commands import streams
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.limits import LOOKED_PER_COMMAND
from sockpqd.gateway.protocol import listings, responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.waiting.grant_waiters import GrantWaiter


def create(client: Client, command: Command) -> None:
    """PULSE CREATE: the limit on their number is this node's, so it travels with the operation."""
    client.propose(replace(command.operation, pulses_max=client.hub.limits.pulses_max), command.numbering)


def configure_queue(client: Client, command: Command) -> None:
    """QUEUE CREATE and QUEUE CONFIG: a RATE makes a pulse; there may be `limits.pulses_max` of them."""
    operation = command.operation
    if operation.change.rate:
        change = replace(operation.change, pulses_max=client.hub.limits.pulses_max)
        operation = replace(operation, change=change)
    client.propose(operation, command.numbering)


def wait(client: Client, command: Command) -> None:
    """PULSE WAIT: block until there is a grant."""
    waiters = client.hub.grant_waiters
    waiter = GrantWaiter(client, waiters, pulse=command.arguments[0], numbering=command.numbering)
    client.block(waiter)
    waiters.add(waiter, command.within_ms)


def result(client: Client, command: Command) -> None:
    """PULSE RESULT: the reason goes to the server's log."""
    def tell(reply: Reply) -> Reply:
        if isinstance(reply, Accepted):
            operation = command.operation
            reason = f"ticket {operation.ticket}: {operation.result.name}, {command.arguments[0]}"
            client.hub.reasons.note(client.link.peer, reason)
        return reply
    if command.arguments:
        client.propose_mapped(command.operation, tell, command.numbering)
    else:
        client.propose(command.operation, command.numbering)


def list_(client: Client, command: Command) -> None:
    """PULSE LIST: list the pulses that the user may see."""
    client.run(streams.pulse_list(client))


def stat(client: Client, command: Command) -> None:
    """PULSE STAT: show settings and figures of a pulse. Only the leader knows which clients wait."""
    hub, name = client.hub, command.arguments[0]
    pulse: Pulse | None = hub.cluster.machine.pulses.get(name)
    if pulse is None:
        client.say(responses.PULSE_NOT_FOUND)
    else:
        waiting = hub.grant_waiters.waiting(name) if hub.cluster.serving else None
        hub.budget -= len(pulse.tickets) // LOOKED_PER_COMMAND
        client.say(listings.pairs(listings.pulse(pulse, waiting, hub.cluster.time_ms)))
