"""The connection's part in the choice among several queues: its policy and its turns."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import Get, GetWith, InTurn, Policy, Taking
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.waiting.round_robin import RoundRobin

BY_TURNS = (Policy.RR, Policy.PRIORITY)


def policy(client: Client, command: Command) -> None:
    """POLICY: set the policy of the connection; works on a node that is not serving, too."""
    client.state.policy = command.arguments[0]
    client.say(responses.OK)


def configure(client: Client, command: Command) -> None:
    """CONFIG with a setting. Later GETs wait for a new POLICY, as their choice may depend on it."""
    if command.operation.policy is not None:
        client.state.turning = True
    client.propose(command.operation, command.numbering)


def chosen(client: Client, command: Taking) -> Taking:
    """Add the connection's policy and turns to a command."""
    state = client.state
    policy = state.policy
    if policy is None and type(command) is Get and client.hub.cluster.machine.settings.policy not in BY_TURNS:
        return command                          # most of them
    get = command.get if isinstance(command, GetWith) else command
    if isinstance(command, GetWith) and command.policy is not None:
        policy = command.policy
    effective = client.hub.cluster.machine.settings.policy if policy is None else policy
    if effective in BY_TURNS:
        return _in_turn(client, command, get, effective)
    if isinstance(command, GetWith):
        return replace(command, policy=policy) if policy is not command.policy else command
    one = get.queues is not None and len(get.queues) == 1
    return get if policy is None or (one and policy is not Policy.FAIR) else GetWith(get, policy=policy)


def _in_turn(client: Client, command: Taking, get: Get, policy: Policy) -> Taking:
    """Choose by the turns of the connection."""
    state = client.state
    if state.round_robin is None:
        state.round_robin = RoundRobin()
    after = None
    if get.queues is None:
        after = state.round_robin.last
    else:
        held_bytes = state.round_robin.held_bytes
        get = replace(get, queues=state.round_robin.order(get.queues))
        if state.round_robin.held_bytes != held_bytes:
            client.weigh()
        if policy is Policy.PRIORITY and get.queues is not None and len(get.queues) == 1:       # no tie, no turn
            return replace(command, policy=None) if isinstance(command, GetWith) else command
    state.turning = True
    if isinstance(command, GetWith):
        return replace(command, get=get, policy=policy, turn=InTurn(after))
    return GetWith(get, policy=policy, turn=InTurn(after))


def known_empty(client: Client, get: Get) -> bool:
    """FASTEMPTY: return whether it is certain without asking the log that this GET would find nothing.

    The applied state must include everything this connection has sent, so none of its commands may be in flight. And it
    must be the newest state: `serving` may date from before a pause of this process.
    """
    cluster = client.hub.cluster
    machine = cluster.machine
    if not cluster.holds_lease or get.session is not None or not client.nothing_in_flight():
        return False
    if get.queues is None:
        return not machine.nonempty() and not machine.ready_of_pulse
    if get.item is not None:
        return not any(machine.ready_of_item(queue, get.item) for queue in get.queues)
    return not any(map(machine.ready, get.queues))
