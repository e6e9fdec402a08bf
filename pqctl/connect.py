"""The servers of a cluster, and a client for them: what a command needs before it can say anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep

from sockpq import AuthError, Client, NodeStatus, ServerView, Unavailable

from pqctl.health import ask, assess, complaint, of_one_cluster, own_line, serves
from pqctl.invocation import Call
from pqctl.output.exit_codes import DONE, REFUSED, UNREACHED, Failure
from pqctl.output.stdio import say

PAUSE_S = 0.05      # between two looks for a leader
ASK_S = 0.6         # what a server has for telling who leads; those that are slower are asked last


class Servers:
    """The servers of one cluster that answer, the one that leads first."""

    def __init__(self, views: Sequence[ServerView]) -> None:
        self.views = sorted(views, key=_leadership, reverse=True)

    @property
    def addresses(self) -> list[str]:
        """Where they answer."""
        return [view.server for view in self.views]

    @property
    def leader(self) -> NodeStatus | None:
        """The node that leads in its own words, of several the one with the greatest term. It need not serve."""
        line = own_line(self.views[0])
        return line if line is not None and line.role == "LEADER" else None

    @property
    def serving(self) -> bool:
        """Does it execute clients' commands?"""
        return serves(self.views[0])

    def named(self) -> Iterator[tuple[str, str]]:
        """Name and address of every server that says who it is."""
        for view in self.views:
            line = own_line(view)
            if line is not None:
                yield line.name, view.server

    def name(self, server_id: int) -> str:
        """The node with this server id, in words."""
        for view in self.views:
            for line in view.nodes:
                if line.id == server_id:
                    return line.name
        return f"server {server_id}"

    def without(self, name: str) -> str:
        """What is left without this node, in a sentence."""
        health = assess(self.views, len(self.views))
        voters_up = {node.name for node in health.nodes} - health.learners - health.missing
        if len(voters_up - {name}) >= health.majority:
            return f"The cluster goes on with {len(voters_up - {name})} of {health.voters} nodes."
        return "THE CLUSTER CANNOT SERVE WITHOUT IT."

    def find(self, name: str | None) -> tuple[str, str]:
        """Name and address of this node, or of the one that leads. Raises Failure and Unavailable."""
        if name is None:
            if self.leader is None:
                raise Unavailable("no server leads")
            name = self.leader.name
        for told, address in self.named():
            if told == name:
                return name, address
        known = sorted({line.name for view in self.views for line in view.nodes})
        if name in known:
            raise Failure(UNREACHED, f"{name} does not answer")
        raise Failure(REFUSED, f"there is no node {name!r}; there are: {', '.join(known)}")


def _leadership(view: ServerView) -> tuple[bool, int]:
    line = own_line(view)
    return (False, 0) if line is None else (line.role == "LEADER", line.term or 0)


def find(call: Call) -> Servers:
    """The servers of the cluster the given ones belong to; raises Unavailable and AuthError when none answers."""
    views, count = ask(call.servers, min(ASK_S, call.timeout), call.access)
    servers = Servers(of_one_cluster(views, count))
    if not servers.views:
        refused = any(isinstance(view.error, AuthError) for view in views)
        raise (AuthError if refused else Unavailable)("; ".join(map(complaint, views)))
    return servers


def find_leader(call: Call) -> Servers:
    """As find(), but wait for the call's `timeout` until one leads.

    A command that changes the cluster is sent to nobody before: what is sent when the time is nearly over may be
    executed without an answer, and then nobody knows.
    """
    until = monotonic() + call.timeout
    while True:
        servers = find(call)
        if servers.leader is not None:
            return servers
        if monotonic() + PAUSE_S > until:
            raise Unavailable("no server leads")
        sleep(PAUSE_S)


@contextmanager
def cluster_of(
    call: Call, *, leading: bool = False, serving: bool = False, connections: int = 1
) -> Iterator[tuple[Client, Servers]]:
    """A client that knows all servers that answer.

    `leading`: the command is for the one that leads, and is not sent before there is one.
    `serving`: the command is for the jobs, so that it is no use to wait while the service is switched offline.
    `connections`: how many calls there will be at a time.
    """
    servers = (find_leader if leading else find)(call)
    if serving and servers.leader is not None and servers.leader.online is False:
        name = servers.leader.name
        raise Failure(
            UNREACHED, f"{name} leads and is switched offline: `pqctl cluster online`, or `pqctl node online {name}`"
        )
    with call.access.client(servers.addresses, call.timeout, connections) as client:
        yield client, servers


@contextmanager
def reading(call: Call) -> Iterator[tuple[Client, str]]:
    """A client, and the server to ask what is there: the leader, else one that answers; people are told so."""
    with cluster_of(call) as (client, servers):
        if servers.leader is None:
            say("no server leads: this is what another one knows")
        yield client, servers.addresses[0]


def write_snapshot(call: Call, name: str | None) -> int:
    """Let this node, or the leader, write a snapshot to its disk; prints what came of it."""
    with cluster_of(call) as (client, servers):
        node, address = servers.find(name)
        applied = client.cluster_snapshot(address)
    call.answer(f"{node} wrote a snapshot, position {applied} in the log", {"name": node, "applied": applied})
    return DONE
