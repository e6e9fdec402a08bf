"""Commands that only look at the applied state; every node answers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from core import QueueSettings
from gateway.commands.streams import peek_list, queue_list, run_list, session_list
from gateway.protocol import listings, requests, responses

if TYPE_CHECKING:
    from gateway.server.conversation import Conversation


def _total(conversation: Conversation, request: requests.Total) -> None:
    conversation.say(responses.total(conversation.hub.cluster.machine.total(request.queue)))


def _run_list(conversation: Conversation, request: requests.RunList) -> None:
    jobs = conversation.hub.cluster.machine.running()
    conversation.run(run_list(conversation, jobs, request.with_data))


def _session_list(conversation: Conversation, request: requests.SessionList) -> None:
    conversation.run(session_list(conversation))


def _queue_list(conversation: Conversation, request: requests.QueueList) -> None:
    names = conversation.hub.cluster.machine.queue_names(request.prefix)
    conversation.run(queue_list(conversation, conversation.guard.visible(names)))


def _queue_stat(conversation: Conversation, request: requests.QueueStat) -> None:
    cluster = conversation.hub.cluster
    counters = cluster.machine.stat(request.queue, cluster.time_ms)
    conversation.say(responses.QUEUE_NOT_FOUND if counters is None else listings.pairs(counters))


def _queue_config(conversation: Conversation, request: requests.QueueConfig) -> None:
    """A queue that has jobs and was never given a setting has those that hold for it."""
    machine = conversation.hub.cluster.machine
    settings = machine.queue_settings(request.queue)
    if settings is None and machine.counts(request.queue) is None:
        conversation.say(responses.QUEUE_NOT_FOUND)
    else:
        conversation.say(listings.pairs(listings.settings_of_queue(settings or QueueSettings())))


def _config(conversation: Conversation, request: requests.Config) -> None:
    conversation.say(listings.pairs(listings.settings_of_cluster(conversation.hub.cluster.machine.settings)))


def _peek(conversation: Conversation, request: requests.Peek) -> None:
    job = conversation.hub.cluster.machine.peek(request.selector)
    conversation.say(responses.JOB_NOT_FOUND if job is None else b"200 OK " + listings.seen_lines([job]) + job.data)


def _peek_queue(conversation: Conversation, request: requests.PeekQueue) -> None:
    jobs = conversation.hub.cluster.machine.peek_queue(request.queue, request.state, request.count)
    conversation.run(peek_list(conversation, jobs))


def _cluster_status(conversation: Conversation, request: requests.ClusterStatus) -> None:
    cluster = conversation.hub.cluster
    conversation.say(responses.cluster_status(cluster.status(), cluster.machine))


def _cluster_leader(conversation: Conversation, request: requests.ClusterLeader) -> None:
    cluster = conversation.hub.cluster
    name = cluster.leader()
    conversation.say(responses.cluster_leader(next((node for node in cluster.status() if node.name == name), None)))


def _cluster_hash(conversation: Conversation, request: requests.ClusterHash) -> None:
    conversation.say(responses.cluster_hash(*conversation.hub.cluster.state_hash()))


def _interconnect(conversation: Conversation, request: requests.Interconnect) -> None:
    conversation.say(responses.number(conversation.hub.cluster.interconnect_id()))


def _user_list(conversation: Conversation, request: requests.UserList) -> None:
    conversation.say(responses.user_list(conversation.hub.access.listed()))


SEEING: dict[type, Callable[[Conversation, Any], None]] = {
    requests.Total: _total,
    requests.RunList: _run_list,
    requests.SessionList: _session_list,
    requests.QueueList: _queue_list,
    requests.QueueStat: _queue_stat,
    requests.QueueConfig: _queue_config,
    requests.Config: _config,
    requests.Peek: _peek,
    requests.PeekQueue: _peek_queue,
    requests.ClusterStatus: _cluster_status,
    requests.ClusterLeader: _cluster_leader,
    requests.ClusterHash: _cluster_hash,
    requests.Interconnect: _interconnect,
    requests.UserList: _user_list,
}
