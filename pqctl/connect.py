"""Finds the servers of a cluster and its leader, and creates a client for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep

from sockpq import AuthError, BadArguments, Client, NodeStatus, NotExecuted, ServerView, Unavailable

from sockpqd.pqctl.health import (
    ask,
    assess,
    complaint,
    id_of,
    in_words,
    of_one_cluster,
    own_line,
    serves,
    strangers,
)
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNREACHED, USAGE_ERROR, Failure
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.replicas import part_of

NO_LEADER = "no server leads: `pqctl cluster status` shows which nodes run"
PAUSE_S = 0.05      # between two attempts to find a leader
ASK_S = 0.6         # timeout for asking a server for the leader, if any answers in it; slower ones are tried last


class Servers:
    """The servers of one cluster that answer, the leader first."""

    def __init__(self, views: Sequence[ServerView]) -> None:
        self.views = sorted(views, key=_leadership, reverse=True)

    @property
    def addresses(self) -> list[str]:
        """The addresses at which the servers answer."""
        return [view.server for view in self.views]

    @property
    def leader(self) -> NodeStatus | None:
        """The node that reports itself as leader, with the highest term if several do. It need not be serving."""
        line = own_line(self.views[0])
        return line if line is not None and line.role == "LEADER" else None

    @property
    def serving(self) -> bool:
        """True if the leader executes clients' commands."""
        return serves(self.views[0])

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield name and address of every server that reports its name."""
        for view in self.views:
            line = own_line(view)
            if line is not None:
                yield line.name, view.server

    def name(self, server_id: int) -> str:
        """Return the name of the node with this server id."""
        for view in self.views:
            for line in view.nodes:
                if line.id == server_id:
                    return line.name
        return f"server {server_id}"

    def without(self, name: str) -> str:
        """Describe in a sentence the rest of the cluster without this node."""
        health = assess(self.views, len(self.views))
        voters_up = {node.name for node in health.nodes} - health.learners - health.missing
        if len(voters_up - {name}) >= health.majority:
            return f"The cluster goes on with {len(voters_up - {name})} of {health.voters} nodes."
        return "THE CLUSTER CANNOT SERVE WITHOUT IT."

    def find(self, name: str | None) -> tuple[str, str]:
        """Return name and address of this node, or of the leader. Raises Failure and Unavailable."""
        if name is None:
            if self.leader is None:
                raise Unavailable(NO_LEADER)
            name = self.leader.name
        for told, address in self.named():
            if told == name:
                return name, address
        if name in self._members():
            raise Failure(UNREACHED, f"{name} does not answer")
        raise self.missing(name)

    def missing(self, name: str) -> Failure:
        """Return the failure for a node that the cluster does not have."""
        return Failure(REFUSED, f"there is no node {name!r}; there are: {', '.join(self._members())}")

    @contextmanager
    def having(self, name: str | None) -> Iterator[None]:
        """Turn a refusal into a Failure if the cluster has no such node; None: no node was named."""
        try:
            yield
        except NotExecuted as error:
            if isinstance(error, BadArguments) or name is None or name in self._members():
                raise
            raise self.missing(name) from None

    def _members(self) -> list[str]:
        return sorted({line.name for view in self.views for line in view.nodes})


def _leadership(view: ServerView) -> tuple[bool, int]:
    line = own_line(view)
    return (False, 0) if line is None else (line.role == "LEADER", line.term or 0)


def find(call: Call, *, several: bool = False) -> Servers:
    """Find the servers of the cluster the given ones belong to; raises Unavailable or AuthError if none answers.

    Raises Failure if they belong to several clusters, as it is unknown which one is meant; with `several` any will do.
    """
    views, count = _asked(call)
    own = of_one_cluster(views, count)
    if not own:
        refused = any(isinstance(view.error, AuthError) for view in views)
        raise (AuthError if refused else Unavailable)("; ".join(map(complaint, views)))
    foreign = [view for view in strangers(views[:count], own) if view.cluster is not None]
    if foreign and id_of(own) is not None and not several:
        raise Failure(USAGE_ERROR, f"{in_words(foreign, own)}; correct the list of servers")
    return Servers(own)


def _asked(call: Call) -> tuple[list[ServerView], int]:
    """Return the views of the servers, and how many were given; see `ask`.

    When none answers in ASK_S, as on machines with too much to do, they have what is left of the call's timeout.
    """
    until = monotonic() + call.timeout
    patience = min(ASK_S, call.timeout)
    begun = monotonic()
    views, count = ask(call.servers, patience, call.access)
    slow = monotonic() - begun >= patience          # otherwise all refuse, and would again
    left = until - monotonic()
    if slow and left > 0 and all(isinstance(view.error, Unavailable) for view in views):
        return ask(call.servers, left, call.access)
    return views, count


def _offline(views: list[ServerView], leader: str) -> str:
    """Return what is switched offline, and the command that ends it."""
    by_service, by_node = "`pqctl cluster online`", f"`pqctl node online {leader}`"
    match assess(views, len(views)).service_off:
        case True:
            return f"the whole service is switched offline: {by_service}"
        case False:
            return f"{leader} leads and is switched offline: {by_node}"
    return f"{leader} leads and is switched offline: {by_service}, or {by_node}"


def find_leader(call: Call) -> Servers:
    """Like find(), but wait up to the call's `timeout` for a leader.

    A command that changes the cluster is not sent before there is one: a command sent when the time is nearly up could
    be executed without an answer, leaving its outcome unknown.
    """
    until = monotonic() + call.timeout
    while True:
        servers = find(call)
        if servers.leader is not None:
            return servers
        if monotonic() + PAUSE_S > until:
            raise Unavailable(NO_LEADER)
        sleep(PAUSE_S)


@contextmanager
def cluster_of(
    call: Call, *, leading: bool = False, serving: bool = False, connections: int = 1
) -> Iterator[tuple[Client, Servers]]:
    """Create a client that knows all servers that answer.

    `leading`: the command is for the leader, and is not sent before there is one.
    `serving`: the command works on jobs, so there is no use in waiting while the service is switched offline.
    `connections`: the number of concurrent calls.
    """
    servers = (find_leader if leading else find)(call)
    if serving and servers.leader is not None and servers.leader.online is False:
        must_play_no_part(call, servers)
        raise Failure(UNREACHED, _offline(servers.views, servers.leader.name))
    with call.access.client(servers.addresses, call.timeout, connections) as client:
        try:
            yield client, servers
        except Unavailable:
            if serving:
                must_play_no_part(call, servers)
            raise


def must_play_no_part(call: Call, servers: Servers) -> None:
    """Raise Failure if the cluster executes no clients' commands, as it is a copy of another one or was fenced."""
    part = part_of(list(servers.named()), call.timeout, call.access)
    if part is not None:
        raise Failure(UNREACHED, part.reason)


@contextmanager
def reading(call: Call) -> Iterator[tuple[Client, str]]:
    """Create a client, and choose the server to read from: the leader, or else one that answers, with a notice."""
    with cluster_of(call) as (client, servers):
        if servers.leader is None:
            say("no server leads: this is what another one knows")
        yield client, servers.addresses[0]


def write_snapshot(call: Call, name: str | None) -> int:
    """Make this node, or the leader, write a snapshot to its disk; prints the result."""
    with cluster_of(call) as (client, servers):
        node, address = servers.find(name)
        applied = client.cluster_snapshot(address)
    call.answer(f"{node} wrote a snapshot, position {applied} in the log", {"name": node, "applied": applied})
    return DONE
