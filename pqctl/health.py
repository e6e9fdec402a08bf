"""Assesses a cluster's health from its servers' views: leader, nodes up, losses it survives. IO only in `ask`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sockpq import AuthError, Busy, NodeStatus, ServerView, Untrusted

from sockpqd.pqctl.access import ClusterAccess

HEALTHY, DEGRADED, NOT_SERVING = 0, 1, 2

FULL = "FULL"                   # the role of a node that answers every connection with 503 Busy

Members = frozenset[tuple[str, str]]        # name and client address of every node whose address is known


@dataclass(frozen=True)
class Health:
    """The state of a cluster.

    `nodes` lists every member once, by server id; a member that does not answer clients has the role DOWN and no
    figures, or FULL if it takes no further connections. `learners` are members without a vote, all others are voters.
    `missing` are members that do not answer or, if a leader serves, are not in contact with it. `notes` are sentences
    about anything unusual. `cluster` is the cluster's id, None if no server that answers knows it. `service_off`: the
    whole service is switched offline (CLUSTER OFFLINE), None if no leader reports it. `named`: names and addresses of
    the nodes that answer.
    """

    leader: NodeStatus | None
    nodes: list[NodeStatus]
    learners: frozenset[str]
    missing: frozenset[str]
    notes: list[str]
    cluster: str | None = None
    service_off: bool | None = None
    named: tuple[tuple[str, str], ...] = ()

    @property
    def serving(self) -> bool:
        """True if a leader executes clients' commands."""
        return self.leader is not None

    @property
    def reached(self) -> bool:
        """True if any server answered; without an answer nothing is known of the cluster."""
        return any(node.role != "DOWN" for node in self.nodes)

    @property
    def new(self) -> bool:
        """True if no node that answers has heard of an election: the cluster waits for all its nodes to be founded."""
        known = [node.term for node in self.nodes if node.term is not None]
        return not self.serving and self.cluster is None and bool(known) and not any(known)

    @property
    def switched_off(self) -> bool:
        """True if all nodes that answer report being switched offline."""
        known = [node.online for node in self.nodes if node.online is not None]
        return bool(known) and not any(known)

    @property
    def voters(self) -> int:
        """The number of voting members."""
        return len(self.nodes) - len(self.learners)

    @property
    def up(self) -> int:
        """The number of voters that are not missing."""
        return sum(node.name not in self.learners | self.missing for node in self.nodes)

    @property
    def majority(self) -> int:
        """The number of voters that must be up for a leader to serve."""
        return self.voters // 2 + 1

    @property
    def can_lose(self) -> int:
        """The number of further voters that can fail while a majority stays up."""
        return max(self.up - self.majority, 0)

    @property
    def exit_code(self) -> int:
        """The exit code: HEALTHY, DEGRADED or NOT_SERVING."""
        if not self.serving:
            return NOT_SERVING
        all_well = not self.missing and all(node.online is not False and node.role != FULL for node in self.nodes)
        return HEALTHY if all_well else DEGRADED


def look(servers: Iterable[str], timeout: float, access: ClusterAccess) -> Health:
    """Assess the health of the cluster these servers belong to; takes as long as `ask`.

    Raises AuthError if no server answers and one refuses the user, which says nothing about the cluster.
    """
    views, given = ask(servers, timeout, access)
    if all(view.error is not None for view in views):
        for view in views:
            if isinstance(view.error, AuthError):
                raise view.error
    return assess(views, given)


def ask(servers: Iterable[str], timeout: float, access: ClusterAccess) -> tuple[list[ServerView], int]:
    """Ask the servers, then members they name that were not asked yet; returns all views and how many were given.

    Takes at most 1.5 * `timeout` seconds, and slightly longer if servers refuse the user.
    """
    views = access.survey(servers, timeout)
    given = len(views)
    asked = {address for view in views for address in (view.server, view.peer)}
    others = {node.client for view in views for node in view.nodes if node.client is not None} - asked
    if others:
        views += access.survey(sorted(others), timeout / 2)
    return views, given


def is_full(view: ServerView) -> bool:
    """Return whether the server is up but takes no further connections."""
    return isinstance(view.error, Busy)


CLOSED = "the server closed the connection"     # without a word, as a server does that expects TLS


def complaint(view: ServerView) -> str:
    """Describe why this server is of no use, including its address to tell several apart."""
    if is_full(view):
        return f"{view.server} is full: it takes no further connections"
    reason = "reports no nodes" if view.error is None else str(view.error)
    if reason.endswith(CLOSED):
        reason += " (does it expect TLS? give --ca FILE or --tls; or is this its port for other nodes?)"
    return reason if reason.startswith(view.server) else f"{view.server}: {reason}"


def of_one_cluster(views: list[ServerView], given: int) -> list[ServerView]:
    """Return the views of the cluster that most of the first `given` servers belong to, the first one's in a tie.

    Views of one cluster can differ while its membership changes, but have a member in common.
    """
    answered = [view for view in views if view.error is None and view.nodes]
    main = max(answered, key=lambda one: _belonging(one, views[:given]), default=None)
    return [] if main is None else [view for view in answered if _together(main, view)]


def id_of(own: Iterable[ServerView]) -> str | None:
    """Return the id of the cluster these views are of; None if no server knows it."""
    return next((view.cluster for view in own if view.cluster is not None), None)


def strangers(given: Iterable[ServerView], own: Sequence[ServerView]) -> list[ServerView]:
    """Return the given servers that answer and belong to another cluster than `own`."""
    return [view for view in given if view.error is None and view.nodes and view not in own]


def in_words(foreign: Sequence[ServerView], own: Sequence[ServerView]) -> str:
    """Describe servers of another cluster in a sentence."""
    others = ", ".join(sorted({view.cluster for view in foreign if view.cluster is not None}))
    one = id_of(own)
    ids = f": {others}, not {one}" if others and one else ""
    belong = "belongs" if len(foreign) == 1 else "belong"
    return f"{', '.join(view.server for view in foreign)} {belong} to another cluster{ids}"


def assess(views: list[ServerView], given: int) -> Health:
    """Assess the cluster chosen by of_one_cluster(); views of any other only result in a note."""
    own = of_one_cluster(views, given)
    if not own:
        nodes = [_silent(None, view.server, view.server, full=is_full(view)) for view in views]
        missing = frozenset(node.name for node in nodes if node.role != FULL)
        return Health(None, nodes, frozenset(), missing, [complaint(view) for view in views])
    leaders = [view for view in own if serves(view)]
    main = max(leaders or own, key=_news)
    told = {line.name: view for view in own if (line := own_line(view))}
    full = {line.name for line in main.nodes if line.name not in told and line.client in _full(views)}
    nodes = [_told(told[line.name], main) if line.name in told
             else _silent(line.id, line.name, line.client, full=line.name in full) for line in main.nodes]
    cut_off = {line.name for line in main.nodes if leaders and line.name in told and not in_contact(line)}
    learners = frozenset(node.name for line, node in zip(main.nodes, nodes, strict=True) if _learns(line, node))
    silent = sorted(learners - told.keys())
    return Health(
        leader=own_line(main) if leaders else _full_leader(main, full),
        nodes=nodes,
        learners=learners,
        missing=frozenset(cut_off) | {line.name for line in main.nodes
                           if line.name not in told and not (line.name in full and in_contact(line))},
        notes=[*_notes(views, own, main, cut_off),
               *(f"{name} was added and does not answer: it does not count yet" for name in silent)],
        cluster=id_of(own),
        service_off=_service_off(own),
        named=tuple((name, view.server) for name, view in told.items()),
    )


def _service_off(own: list[ServerView]) -> bool | None:
    """Return whether a leader is offline with the whole service: then it keeps its INTERCONNECT number."""
    told = [(line.online, line.id == view.id) for view in own if (line := own_line(view)) and line.role == "LEADER"]
    return any(online is False and keeps for online, keeps in told) if told else None


def _notes(views: list[ServerView], own: list[ServerView], main: ServerView, cut_off: set[str]) -> list[str]:
    """Describe anything unusual, in sentences."""
    names, clients = {line.name for line in main.nodes}, {line.client for line in main.nodes}
    foreign = strangers(views, own)
    silent = [view for view in views if view.error is not None and view.server not in clients]
    extra = {line.name for view in own if (line := own_line(view))} - names
    return [
        *(f"{view.server} belongs to another cluster ({_members_of(view)})" for view in foreign),
        *(complaint(view) if is_full(view) else f"{view.server} does not answer: {view.error}" for view in silent),
        *(complaint(view) for view in views if isinstance(view.error, Untrusted) and view.server in clients),
        *(f"{name} answers, but is not a member of the cluster" for name in sorted(extra)),
        *(f"{name} answers, but is not in contact with the leader" for name in sorted(cut_off)),
    ]


def _members_of(view: ServerView) -> str:
    """Return the id and the members of the cluster this view is of."""
    members = ", ".join(sorted(node.name for node in view.nodes))
    return members if view.cluster is None else f"{view.cluster}: {members}"


def _full(views: list[ServerView]) -> set[str]:
    return {address for view in views if is_full(view) for address in (view.server, view.peer) if address}


def _full_leader(main: ServerView, full: set[str]) -> NodeStatus | None:
    """Return the leader as the other nodes see it, if it is full and cannot be asked itself."""
    return next((line for line in main.nodes if line.name in full and line.role == "LEADER" and line.online), None)


def in_contact(line: NodeStatus) -> bool:
    return line.role != "DOWN" and line.term is not None


def _learns(seen: NodeStatus, told: NodeStatus) -> bool:
    """Return whether the node is a learner as the leader sees it, or by its own account if they are not in contact."""
    return "LEARNER" in (seen.role, told.role if seen.role == "DOWN" else "")


def serves(view: ServerView) -> bool:
    """Return whether this view comes from a serving leader; its INTERCONNECT number is then its own id, the smallest.

    Just after CLUSTER OFFLINE the number is still the old one, so its own line counts as well.
    """
    line = own_line(view)
    return (
        line is not None
        and line.role == "LEADER"
        and line.online is not False
        and line.id == view.id
        and line.id == min(node.id for node in view.nodes if node.id is not None)
    )


def own_line(view: ServerView) -> NodeStatus | None:
    """Return the line in which the answering node describes itself."""
    for line in view.nodes:
        if line.client is not None and line.client in (view.peer, view.server):
            return line
    return next((line for line in view.nodes if line.id is not None and line.id == view.id), None)


def _told(view: ServerView, main: ServerView) -> NodeStatus:
    """Return the line in which a node describes itself, with the lag as the leader sees it."""
    line = own_line(view)
    assert line is not None
    seen = next(node for node in main.nodes if node.name == line.name)
    return line._replace(id=seen.id, lag=line.lag if seen.lag is None else seen.lag)


def _silent(server_id: int | None, name: str, client: str | None, *, full: bool) -> NodeStatus:
    return NodeStatus(server_id, name, client, FULL if full else "DOWN", None, None, None, None, None)


def _together(one: ServerView, other: ServerView) -> bool:
    """Return whether two views are of one cluster: by their ids or, if one is unknown, by a member in common."""
    if one.cluster is not None and other.cluster is not None:
        return one.cluster == other.cluster
    return bool(_members(one) & _members(other))


def _belonging(one: ServerView, views: list[ServerView]) -> int:
    """Count the servers that belong to the cluster of this view; silent ones count if they are members."""
    clients = {client for _, client in _members(one)}
    return sum(_together(one, view) if view.nodes else view.server in clients for view in views)


def _news(view: ServerView) -> tuple[int, int]:
    """Return a sort key for views: newer ones have a higher term, or else a node that has applied more."""
    line = own_line(view)
    applied = 0 if line is None or line.applied is None else line.applied
    return max((node.term for node in view.nodes if node.term is not None), default=0), applied


def _members(view: ServerView) -> Members:
    return frozenset((node.name, node.client) for node in view.nodes if node.client is not None)
