"""Commands that only read the applied state; any node answers them."""

from __future__ import annotations

from sockpqd.core import JobView, QueueSettings, bytes_of
from sockpqd.gateway.commands import streams
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.limits import LOOKED_PER_COMMAND, PEEKED_BYTES_PER_COMMAND
from sockpqd.gateway.protocol import listings, responses
from sockpqd.gateway.protocol.command import Command


def total(client: Client, command: Command) -> None:
    """TOTAL: show the counts of queues, priorities, jobs and running jobs."""
    client.say(responses.total(client.hub.cluster.machine.total(*command.arguments)))


def run_list(client: Client, command: Command) -> None:
    """RUNLIST: list the running jobs."""
    client.run(streams.running_list(client, *command.arguments))


def session_list(client: Client, command: Command) -> None:
    """SESSION LIST: list all sessions."""
    client.run(streams.session_list(client))


def queue_list(client: Client, command: Command) -> None:
    """QUEUE LIST: list the queues on which the user has any right."""
    client.run(streams.queue_list(client, *command.arguments))


def item_list(client: Client, command: Command) -> None:
    """ITEM LIST: list the user's items."""
    client.run(streams.item_list(client, *command.arguments))


def item_stat(client: Client, command: Command) -> None:
    """ITEM STAT: show the figures of an item; each of its queues adds to the cost."""
    hub, name = client.hub, command.arguments[0]
    hub.budget -= hub.cluster.machine.queues_of_item(name) // LOOKED_PER_COMMAND
    counts = hub.cluster.machine.item(name)
    client.say(responses.ITEM_NOT_FOUND if counts is None else listings.pairs(listings.of_item(counts)))


def topic_list(client: Client, command: Command) -> None:
    """TOPIC LIST: list the bindings of which the user has any right on the topic and on the queue."""
    client.run(streams.topic_list(client, *command.arguments))


def worker_list(client: Client, command: Command) -> None:
    """WORKER LIST: list the user's pools by name, for administrators all pools."""
    client.run(streams.worker_list(client))


def queue_stat(client: Client, command: Command) -> None:
    """QUEUE STAT: show the counters of a queue."""
    cluster, queue = client.hub.cluster, command.arguments[0]
    waiting: int | str = client.hub.job_waiters.waiting(queue) if cluster.serving else responses.UNKNOWN
    counters = cluster.machine.stat(queue, cluster.time_ms, awaited=waiting not in (0, responses.UNKNOWN))
    if counters is None:
        client.say(responses.QUEUE_NOT_FOUND)
    else:
        disk = cluster.machine.on_disk(queue)           # looks at all priorities
        client.hub.budget -= cluster.machine.total(queue).priorities // LOOKED_PER_COMMAND
        client.say(listings.pairs([
            *counters, ("WAITERS", waiting), ("ON_DISK", disk.jobs), ("ON_DISK_BYTES", disk.data_bytes)]))


def queue_settings(client: Client, command: Command) -> None:
    """QUEUE CONFIG without settings: show them. A queue that has jobs but was never configured has the defaults."""
    machine = client.hub.cluster.machine
    queue: str = command.arguments[0]
    settings = machine.queue_settings(queue)
    if settings is None and machine.counts(queue) is None:
        client.say(responses.QUEUE_NOT_FOUND)
    else:
        settings = settings or QueueSettings()
        pulse = None if settings.pulse is None else machine.pulses.get(settings.pulse)
        client.say(listings.pairs([*listings.settings_of_queue(settings), *listings.rate_of_queue(pulse)]))


def settings(client: Client, command: Command) -> None:
    """CONFIG without settings: show the cluster's settings."""
    client.say(listings.pairs(listings.settings_of_cluster(client.hub.cluster.machine.settings)))


def sched_show(client: Client, command: Command) -> None:
    """SCHED SHOW: show the levels of FAIR."""
    client.say(listings.fair_levels(client.hub.cluster.machine.fair_levels()))


def sched_group(client: Client, command: Command) -> None:
    """SCHED GROUP: show one group of FAIR."""
    cluster, name = client.hub.cluster, command.arguments[0]
    group = cluster.machine.fair_group(name, cluster.time_ms)
    client.say(responses.GROUP_NOT_FOUND if group is None else responses.fair_group(group))


def sched_settings(client: Client, command: Command) -> None:
    """SCHED CONFIG without settings: show them."""
    client.say(listings.pairs(listings.settings_of_fair(client.hub.cluster.machine.fair_settings)))


def group_settings(client: Client, command: Command) -> None:
    """GROUP CONFIG without settings: show the settings of the group."""
    cluster = client.hub.cluster
    settings = cluster.machine.group_settings(command.arguments[0])
    client.say(listings.pairs(listings.settings_of_group(settings, cluster.time_ms)))


def group_list(client: Client, command: Command) -> None:
    """GROUP LIST: list the groups that the user may see."""
    client.run(streams.group_list(client, *command.arguments))


def peek(client: Client, command: Command) -> None:
    """PEEK: show one job, in any state."""
    selector, head, life = (*command.arguments, False, False)[:3]
    _show(client, client.hub.cluster.machine.peek(selector), head=head, life=life)


def peek_ended(client: Client, command: Command) -> None:
    """PEEK .. ENDED: show one job, even when it has ended."""
    selector, head, life = command.arguments
    machine = client.hub.cluster.machine
    _show(client, machine.peek(selector) or machine.ended(selector.number), head=head, life=life)


def _show(client: Client, job: JobView | None, *, head: bool, life: bool) -> None:
    if job is None:
        client.say(responses.JOB_NOT_FOUND)
        return
    data = bytes_of(job.data) if head else job.body()
    client.hub.budget -= len(data) // PEEKED_BYTES_PER_COMMAND
    client.say(b"200 OK " + listings.seen_lines([job], head=head, life=life) + data)


def peek_result(client: Client, command: Command) -> None:
    """PEEK .. RESULT: show the result of a job that has ended."""
    result = client.hub.cluster.machine.result(command.arguments[0].number)
    if result is None:
        client.say(responses.JOB_NOT_FOUND)
        return
    client.hub.budget -= len(result) // PEEKED_BYTES_PER_COMMAND
    client.say(responses.number(len(result)) + result)


def peek_error(client: Client, command: Command) -> None:
    """PEEK <job> ERROR: show the text that a worker left with the job."""
    text = client.hub.cluster.machine.error(*command.arguments)
    client.say(responses.JOB_NOT_FOUND if text is None else responses.number(len(text)) + bytes_of(text))


def job_stat(client: Client, command: Command) -> None:
    """JOB STAT: show the settings of a numbered job and the counts of its events."""
    cluster = client.hub.cluster
    job = cluster.machine.peek(*command.arguments)
    client.say(responses.JOB_NOT_FOUND if job is None else listings.pairs(listings.of_job(job, cluster.time_ms)))


def peek_queue(client: Client, command: Command) -> None:
    """PEEK at the first jobs of a queue in one state."""
    client.run(streams.peek_list(client, *command.arguments))


def peek_queue_ended(client: Client, command: Command) -> None:
    """PEEK at the jobs of a queue that have ended, the newest first."""
    client.run(streams.peek_ended(client, *command.arguments))


def cluster_status(client: Client, command: Command) -> None:
    """CLUSTER STATUS: list all nodes with role, term and lag."""
    cluster = client.hub.cluster
    client.say(responses.cluster_status(cluster.status(), cluster.machine))


def cluster_leader(client: Client, command: Command) -> None:
    """CLUSTER LEADER: show the address of the leader."""
    cluster = client.hub.cluster
    name = cluster.leader()
    client.say(responses.cluster_leader(next((node for node in cluster.status() if node.name == name), None)))


def cluster_hash(client: Client, command: Command) -> None:
    """CLUSTER HASH: show the hash of the applied state, and its index."""
    client.say(responses.cluster_hash(*client.hub.cluster.state_hash()))


def cluster_map(client: Client, command: Command) -> None:
    """MAP: show the map of clusters."""
    client.say(responses.cluster_map(client.hub.cluster.machine.cluster_map))


def interconnect(client: Client, command: Command) -> None:
    """INTERCONNECT: report this node's server id."""
    client.say(responses.number(client.hub.cluster.interconnect_id()))


def user_list(client: Client, command: Command) -> None:
    """USER LIST: list all users with their rights."""
    client.run(streams.user_list(client))
