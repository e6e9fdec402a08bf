"""What operators change: this node's own switch, and the cluster (spec/cluster 6).

None of it may stay half done because the client that asked has gone. So the work belongs to the hub: it runs to its
end, and the client, if it is still there, gets the answer. What stands behind the command waits for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from cluster.api import NotLeader, NotPossible, OutcomeUnknown
from gateway.protocol import requests, responses
from gateway.waiting.slots import Fate, Outcome

if TYPE_CHECKING:
    from cluster.api import Cluster
    from gateway.server.conversation import Conversation

log = logging.getLogger("sockpqd.gateway")


def begin(conversation: Conversation, request: requests.Command) -> None:
    """Start what `request` asks for; nothing behind it is executed before its answer."""
    conversation.run(_answer(conversation, request))


async def _answer(conversation: Conversation, request: requests.Command) -> None:
    hub = conversation.hub
    work = asyncio.ensure_future(_decide(hub.cluster, request))
    hub.work.add(work)
    work.add_done_callback(hub.work.discard)
    conversation.say(await asyncio.shield(work))


async def _decide(cluster: Cluster, request: requests.Command) -> Outcome:
    try:
        return await WORK[type(request)](cluster, request)
    except NotLeader:
        return Fate.REFUSED
    except OutcomeUnknown:
        return Fate.UNKNOWN
    except Exception:
        log.exception("%s failed: report it, with this line", type(request).__name__)
        return Fate.UNKNOWN


async def _offline(cluster: Cluster, request: requests.Offline) -> bytes:
    await cluster.go_offline()
    return responses.SWITCHED_OFFLINE


async def _switch(cluster: Cluster, request: requests.ClusterSwitch) -> bytes:
    await cluster.switch_service(request.online)
    return responses.SWITCHED_ONLINE if request.online else responses.SWITCHED_OFFLINE


async def _add(cluster: Cluster, request: requests.ClusterAdd) -> bytes:
    return responses.answer(await cluster.add_node(request.node, request.peer, request.client))


async def _remove(cluster: Cluster, request: requests.ClusterRemove) -> bytes:
    reply = await cluster.remove_node(request.node)
    return responses.not_possible(reply) if isinstance(reply, NotPossible) else responses.answer(reply)


async def _transfer(cluster: Cluster, request: requests.ClusterTransfer) -> bytes:
    reply = await cluster.transfer(request.node)
    return responses.not_possible(reply) if isinstance(reply, NotPossible) else responses.cluster_leader(reply)


async def _snapshot(cluster: Cluster, request: requests.ClusterSnapshot) -> bytes:
    try:
        return responses.number(await cluster.compact())
    except OSError as error:
        log.warning("CLUSTER SNAPSHOT failed: %s. Make room on the disk of node.data_dir.", error)
        return responses.BUSY


WORK: dict[type, Callable[[Cluster, Any], Coroutine[Any, Any, bytes]]] = {
    requests.Offline: _offline,
    requests.ClusterSwitch: _switch,
    requests.ClusterAdd: _add,
    requests.ClusterRemove: _remove,
    requests.ClusterTransfer: _transfer,
    requests.ClusterSnapshot: _snapshot,
}
