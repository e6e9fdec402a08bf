"""Operator commands that change the cluster or this node's own switch (spec/cluster 6).

None of them may be left half done because the client has disconnected. So the hub owns the work, which runs to
completion; the client, if still connected, gets the answer. Later commands of the client wait for that answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from sockpqd.cluster.api import Cluster, NotLeader, NotPossible, OutcomeUnknown
from sockpqd.core import Accepted, MapError, ReplicaRefused, SetMap, read_map
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.commands.context.client_state import Run
from sockpqd.gateway.commands.context.proposing import propose
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.waiting.slots import NoReply, Outcome

log = logging.getLogger("sockpqd.gateway")

Work = Callable[..., Coroutine[Any, Any, bytes]]


def _work(work: Work) -> Run:
    """Wrap `work` as a command; later commands of the client are executed only after its answer."""
    def run(client: Client, command: Command) -> None:
        client.run(_answer(client, command, work))
    return run


async def _answer(client: Client, command: Command, work: Work) -> None:
    hub = client.hub
    decision = asyncio.ensure_future(_decide(hub.cluster, command, work))
    hub.work.add(decision)
    decision.add_done_callback(hub.work.discard)
    client.say(await asyncio.shield(decision))


async def _decide(cluster: Cluster, command: Command, work: Work) -> Outcome:
    try:
        return await work(cluster, *command.arguments)
    except NotLeader:
        return NoReply.REFUSED
    except OutcomeUnknown:
        return NoReply.UNKNOWN
    except Exception:
        log.exception("%s failed: report it, with this line", command.row.word.decode())
        return NoReply.UNKNOWN


def set_map(client: Client, command: Command) -> None:
    """MAP SET: replace the map of clusters."""
    client.run(_set_map(client, command.operation))


async def _set_map(client: Client, operation: SetMap) -> None:
    try:
        read_map(operation.version, operation.text, None)
    except MapError as error:
        client.say(responses.bad_arguments(str(error)))
    else:
        client.say(await propose(client.hub.cluster, operation, client))


@_work
async def offline(cluster: Cluster) -> bytes:
    """OFFLINE: switch this node offline."""
    await cluster.go_offline()
    return responses.SWITCHED_OFFLINE


def online(client: Client, command: Command) -> None:
    """ONLINE: switch this node online."""
    client.hub.cluster.go_online()
    client.say(responses.SWITCHED_ONLINE)


@_work
async def cluster_offline(cluster: Cluster) -> bytes:
    """CLUSTER OFFLINE: switch the service offline on all nodes."""
    await cluster.switch_service(False)
    return responses.SWITCHED_OFFLINE


@_work
async def cluster_online(cluster: Cluster) -> bytes:
    """CLUSTER ONLINE: switch the service online on all nodes."""
    reply = await cluster.switch_service(True)
    return responses.SWITCHED_ONLINE if isinstance(reply, Accepted) else responses.answer(reply)


@_work
async def cluster_promote(cluster: Cluster, grace_ms: int) -> bytes:
    """CLUSTER PROMOTE: let this replica continue without its origin."""
    return responses.answer(await cluster.promote(grace_ms))


@_work
async def _fence(cluster: Cluster, replica: str) -> bytes:
    reply = await cluster.fence(replica)
    return responses.UNKNOWN_REPLICA if isinstance(reply, ReplicaRefused) else responses.answer(reply)


def cluster_fenced(client: Client, command: Command) -> None:
    """CLUSTER FENCED: switch the service off for good, if the file of this node names that replica."""
    if command.arguments[0] == client.hub.fencing_replica:
        _fence(client, command)
    else:
        client.say(responses.UNKNOWN_REPLICA)


@_work
async def cluster_add(cluster: Cluster, node: str, peer: str, client: str) -> bytes:
    """CLUSTER ADD: add a node to the cluster."""
    return responses.answer(await cluster.add_node(node, peer, client))


@_work
async def cluster_remove(cluster: Cluster, node: str) -> bytes:
    """CLUSTER REMOVE: remove a node from the cluster."""
    reply = await cluster.remove_node(node)
    return responses.not_possible(reply) if isinstance(reply, NotPossible) else responses.answer(reply)


@_work
async def cluster_transfer(cluster: Cluster, node: str | None) -> bytes:
    """CLUSTER TRANSFER: hand leadership to another node."""
    reply = await cluster.transfer(node)
    return responses.not_possible(reply) if isinstance(reply, NotPossible) else responses.cluster_leader(reply)


@_work
async def cluster_snapshot(cluster: Cluster) -> bytes:
    """CLUSTER SNAPSHOT: write a snapshot on this node and compact its journal."""
    try:
        return responses.number(await cluster.compact())
    except OSError as error:
        log.warning("CLUSTER SNAPSHOT failed: %s. Make room on the disk of node.data_dir.", error)
        return responses.BUSY
