"""How a connection influences the choice among several queues: its policy and its rotation."""

from __future__ import annotations

from msgspec.structs import replace

from core import Get, GetWith, Policy
from gateway.commands.context.client import Client
from gateway.protocol import responses
from gateway.protocol.command import Command
from gateway.waiting.rotation import Rotation


def policy(client: Client, command: Command) -> None:
    """POLICY: set the policy of the connection; works on a node that is not serving, too."""
    client.state.policy = command.arguments[0]
    client.say(responses.OK)


def chosen(client: Client, command: Get | GetWith) -> Get | GetWith:
    """Add the connection's policy and rotation to a command that names several queues or none."""
    get = command.get if isinstance(command, GetWith) else command
    policy = client.state.policy
    if isinstance(command, GetWith) and command.policy is not None:
        policy = command.policy
    effective = client.hub.cluster.machine.settings.policy if policy is None else policy
    if effective is Policy.PRIORITY and get.queues is not None:
        if client.state.rotation is None:
            client.state.rotation = Rotation()
        get = replace(get, queues=client.state.rotation.order(get.queues))
    if isinstance(command, GetWith):
        return replace(command, get=get, policy=policy)
    return get if policy is None else GetWith(get, policy=policy)


def known_empty(client: Client, get: Get) -> bool:
    """FASTEMPTY: return whether it is certain, without the log, that this GET would come back empty.

    The applied state must include everything this connection has sent, so none of its commands may be in flight.
    """
    cluster = client.hub.cluster
    machine = cluster.machine
    if not cluster.serving or get.session is not None or not client.nothing_in_flight():
        return False
    if get.queues is None:
        return not machine.nonempty()
    if get.item is not None:
        return not any(machine.ready_of_item(queue, get.item) for queue in get.queues)
    return not any(map(machine.ready, get.queues))
