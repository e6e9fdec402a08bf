"""CLUSTER REPLICA: how a copy in another region follows its origin, as the asked node knows it."""

from __future__ import annotations

from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.replica import Phase

STOPPED = "stopped"
UNCONFIGURED = "this node has no replica.of in its configuration: it could not follow if it led"


def replica(client: Client, command: Command) -> None:
    """CLUSTER REPLICA: phase and position of the copy; on the node that follows, also how far it is behind.

    Any user may learn why nothing is executed for them; the server of the origin and the problem are for `admin`.
    """
    hub, rights = client.hub, client.guard.rights
    machine, puller = hub.cluster.machine, hub.puller
    if machine.fenced is not None:          # also with replica.of, as it cannot follow before its data are removed
        client.say(responses.fenced(machine.fenced))
        return
    if not hub.cluster.is_replica:
        client.say(responses.NO_REPLICA)
        return
    phase = Phase.IDLE.value if puller is None else puller.figures.phase.value
    follows = puller is not None and puller.figures.phase is not Phase.IDLE
    server, problem = ("", UNCONFIGURED) if puller is None else (puller.figures.server, puller.figures.problem)
    if rights is not None and "" not in rights.admin:
        server = problem = ""
    lag_s = puller.lag_s if puller is not None and follows else None
    client.say(responses.cluster_replica(
        STOPPED if not machine.online else phase,
        machine.mirrored or 0,
        machine.origin_id,
        puller.figures.executed if puller is not None and follows else None,
        None if lag_s is None else round(lag_s * 1000),
        server,
        problem,
    ))
