"""What each request does, as two tables: those that may run while earlier ones await their answers, and the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from core import Done, Get, Later, Put
from gateway import administration, answers, requests
from gateway.clone import Clone
from gateway.pending import PutOfWait
from gateway.streams import run_list, snapshot
from gateway.waiters import Waiter

if TYPE_CHECKING:
    from gateway.conversation import Conversation


# ---- operations

def _put(conversation: Conversation, put: Put) -> None:
    if _no_room(conversation):
        return
    conversation.propose(put)
    waiters = conversation.hub.waiters
    if len(waiters):
        waiters.follow(put)


def _no_room(conversation: Conversation) -> bool:
    """Refuse to take a job that the disks have no room for (A62); 500 comes before 503."""
    cluster = conversation.hub.cluster
    if cluster.full and cluster.serving:
        conversation.say(answers.BUSY)
        return True
    return False


def _operation(conversation: Conversation, operation: Get | Done | Later) -> None:
    conversation.propose(operation)


def _blocking_get(conversation: Conversation, request: requests.BlockingGet) -> None:
    waiter = Waiter(conversation, request.get, request.until_finished)
    conversation.block(waiter)
    conversation.hub.cluster.propose(request.get, waiter)


def _put_wait(conversation: Conversation, request: requests.PutWait) -> None:
    """Two operations, back to back: the hand-out always stands directly behind its PUT (DECISIONS 3)."""
    if _no_room(conversation):
        return
    waiter = Waiter(conversation, request.get)
    slot = PutOfWait(conversation, waiter=waiter)
    conversation.await_slot(slot)
    conversation.block(waiter)
    hub = conversation.hub
    hub.cluster.propose(request.put, slot)
    hub.cluster.propose(request.get, waiter)
    if len(hub.waiters):
        hub.waiters.follow(request.put)


# ---- answers known at once

def _refused(conversation: Conversation, request: requests.Refused) -> None:
    conversation.say(request.answer)


def _caps(conversation: Conversation, request: requests.Caps) -> None:
    conversation.say(answers.CAPS)


def _ping(conversation: Conversation, request: requests.Ping) -> None:
    conversation.say(answers.OK)


# ---- this node and its applied state

def _broken(conversation: Conversation, request: requests.Broken) -> None:
    conversation.say_last(request.answer)


def _quit(conversation: Conversation, request: requests.Quit) -> None:
    conversation.say_last(answers.GOODBYE)


def _shutdown(conversation: Conversation, request: requests.Shutdown) -> None:
    conversation.say_last(answers.SHUTTING_DOWN)
    conversation.hub.shut_down(f"SHUTDOWN from {conversation.link.peer}")


def _total(conversation: Conversation, request: requests.Total) -> None:
    conversation.say(answers.total(conversation.hub.cluster.machine.total(request.queue)))


def _interconnect(conversation: Conversation, request: requests.Interconnect) -> None:
    conversation.say(answers.number(conversation.hub.cluster.interconnect_id()))


def _run_list(conversation: Conversation, request: requests.RunList) -> None:
    conversation.run(run_list(conversation, request.with_data))


def _snapshot(conversation: Conversation, request: requests.Snapshot) -> None:
    conversation.run(snapshot(conversation))


def _online(conversation: Conversation, request: requests.Online) -> None:
    conversation.hub.cluster.go_online()
    conversation.say(answers.SWITCHED_ONLINE)


def _cluster_status(conversation: Conversation, request: requests.ClusterStatus) -> None:
    cluster = conversation.hub.cluster
    conversation.say(answers.cluster_status(cluster.status(), cluster.machine))


def _cluster_leader(conversation: Conversation, request: requests.ClusterLeader) -> None:
    cluster = conversation.hub.cluster
    name = cluster.leader()
    conversation.say(answers.cluster_leader(next((node for node in cluster.status() if node.name == name), None)))


def _cluster_hash(conversation: Conversation, request: requests.ClusterHash) -> None:
    conversation.say(answers.cluster_hash(*conversation.hub.cluster.state_hash()))


# ---- CLONE

def _clone_start(conversation: Conversation, request: requests.CloneStart) -> None:
    conversation.clone = Clone(conversation, request.total_bytes)
    conversation.await_slot(conversation.clone)


def _clone_data(conversation: Conversation, request: requests.CloneData) -> None:
    assert conversation.clone is not None
    conversation.clone.add(request.data, request.last)
    if request.last:
        conversation.clone = None


AT_ONCE: dict[type, Callable[[Conversation, Any], None]] = {
    Put: _put,
    Get: _operation,
    Done: _operation,
    Later: _operation,
    requests.BlockingGet: _blocking_get,
    requests.PutWait: _put_wait,
    requests.Refused: _refused,
    requests.Caps: _caps,
    requests.Ping: _ping,
    requests.CloneData: _clone_data,
}

ALONE: dict[type, Callable[[Conversation, Any], None]] = {
    requests.Broken: _broken,
    requests.Quit: _quit,
    requests.Shutdown: _shutdown,
    requests.Total: _total,
    requests.RunList: _run_list,
    requests.Snapshot: _snapshot,
    requests.CloneStart: _clone_start,
    requests.Interconnect: _interconnect,
    requests.Online: _online,
    requests.ClusterStatus: _cluster_status,
    requests.ClusterLeader: _cluster_leader,
    requests.ClusterHash: _cluster_hash,
    **dict.fromkeys(administration.WORK, administration.begin),
}
