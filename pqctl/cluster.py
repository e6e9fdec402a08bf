"""What the servers say, put together: who leads, who is up, how much the cluster can lose. Only `look` does IO."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sockpq import NodeStatus, ServerView, survey

HEALTHY, DEGRADED, NOT_SERVING = 0, 1, 2

Members = frozenset[tuple[str, str]]        # the name and the client address of every node


@dataclass(frozen=True)
class Health:
    """The state of a cluster.

    `nodes` has every configured member once, in the order of the server ids; a member that does not answer clients has
    the role DOWN and no figures. `up` counts the members that answer and, where a leader serves, are in contact with
    it. `notes` are sentences about servers that do not fit in.
    """

    leader: NodeStatus | None
    nodes: list[NodeStatus]
    up: int
    notes: list[str]

    @property
    def serving(self) -> bool:
        """Does a leader execute clients' commands?"""
        return self.leader is not None

    @property
    def majority(self) -> int:
        """How many members must be up for a leader to serve."""
        return len(self.nodes) // 2 + 1

    @property
    def can_lose(self) -> int:
        """How many further nodes may die while a majority of all members stays up."""
        return max(self.up - self.majority, 0)

    @property
    def exit_code(self) -> int:
        """HEALTHY, DEGRADED or NOT_SERVING."""
        if not self.serving:
            return NOT_SERVING
        all_well = self.up == len(self.nodes) and all(node.online is not False for node in self.nodes)
        return HEALTHY if all_well else DEGRADED


def look(servers: Iterable[str], timeout: float) -> Health:
    """Ask the servers, then the members they name that were not asked yet; takes at most 1.5 * `timeout` seconds."""
    views = survey(servers, timeout)
    given = len(views)
    asked = {address for view in views for address in (view.server, view.peer)}
    others = {node.client for view in views for node in view.nodes} - asked
    if others:
        views += survey(sorted(others), timeout / 2)
    return assess(views, given)


def assess(views: list[ServerView], given: int) -> Health:
    """The state of the cluster most of the first `given` servers belong to, in doubt the first one's.

    Views of another cluster only lead to a note.
    """
    answered = [view for view in views if view.error is None and view.nodes]
    silent = [view for view in views if view.error is not None]
    if not answered:
        nodes = [_down(None, view.server, view.server) for view in silent]
        return Health(None, nodes, 0, [str(view.error) for view in silent])
    members = max((_members(view) for view in answered), key=lambda members: _belonging(members, views[:given]))
    own = [view for view in answered if _members(view) == members]
    leaders = [view for view in own if _leads(view)]
    main = max(leaders or own, key=_term)
    told = {line.name: view for view in own if (line := _own_line(view))}
    nodes = [_told(told[line.name], main) if line.name in told else _down(line.id, line.name, line.client)
             for line in main.nodes]
    out_of_contact = {line.name for line in main.nodes if leaders and line.role == "DOWN"}
    up = sum(node.name in told and node.name not in out_of_contact for node in nodes)
    leader = _own_line(main) if leaders else None
    return Health(leader, nodes, up, _notes(members, own, answered, silent, out_of_contact & told.keys()))


def _notes(
    members: Members, own: list[ServerView], answered: list[ServerView], silent: list[ServerView], cut_off: set[str]
) -> list[str]:
    """Sentences about what does not fit in."""
    clients = {client for _, client in members}
    foreign = [(view.server, ", ".join(name for name, _ in sorted(_members(view))))
               for view in answered if view not in own]
    return [
        *(f"{server} belongs to another cluster ({names})" for server, names in foreign),
        *(f"{view.server} does not answer: {view.error}" for view in silent if view.server not in clients),
        *(f"{name} answers, but is not in contact with the leader" for name in sorted(cut_off)),
    ]


def _leads(view: ServerView) -> bool:
    """Does this view come from a serving leader? Its INTERCONNECT number is then its own id and the smallest."""
    line = _own_line(view)
    return (
        line is not None
        and line.role == "LEADER"
        and line.id == view.id
        and line.id == min(node.id for node in view.nodes if node.id is not None)
    )


def _own_line(view: ServerView) -> NodeStatus | None:
    """The line in which the answering node speaks of itself."""
    for line in view.nodes:
        if line.client in (view.peer, view.server):
            return line
    return next((line for line in view.nodes if line.id is not None and line.id == view.id), None)


def _told(view: ServerView, main: ServerView) -> NodeStatus:
    """A node in its own words, with the lag the leader sees."""
    line = _own_line(view)
    assert line is not None
    seen = next(node for node in main.nodes if node.name == line.name)
    return line._replace(id=seen.id, lag=line.lag if seen.lag is None else seen.lag)


def _down(server_id: int | None, name: str, client: str) -> NodeStatus:
    return NodeStatus(server_id, name, client, "DOWN", None, None, None, None, None)


def _belonging(members: Members, views: list[ServerView]) -> int:
    """How many of these servers belong to the cluster with these members."""
    clients = {client for _, client in members}
    return sum(_members(view) == members or view.server in clients for view in views)


def _term(view: ServerView) -> int:
    return max((node.term for node in view.nodes if node.term is not None), default=0)


def _members(view: ServerView) -> Members:
    return frozenset((node.name, node.client) for node in view.nodes)
