"""Asks several servers at once, and waits only as long as that is useful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sockpq._backends.base import Network
from sockpq._engine.connection import Connection, OfCluster
from sockpq._engine.retry import ForeignLeader, ForeignServer, Lost, NoLeader
from sockpq._protocol.addresses import Address, parse_server
from sockpq._protocol.command import Command
from sockpq._protocol.commands.cluster import CLUSTER_LEADER, CLUSTER_STATUS, INTERCONNECT, PING
from sockpq._protocol.protocol import Answer
from sockpq.errors import AuthError, Busy, ForeignCluster, NotExecuted, SockpqError, Unavailable, Untrusted
from sockpq.model import NodeStatus

REFUSAL_S = 1.5             # a server takes its time to refuse AUTH: one second
MEMBERS_MAX = 32            # of a cluster, as far as a client cares
NOBODY = 2_147_483_647      # INTERCONNECT of a node that knows no leader


# The questions: the server's id, the leader, the members.
QUESTIONS: tuple[Command[Any], ...] = (INTERCONNECT, CLUSTER_LEADER, CLUSTER_STATUS)


class Response(NamedTuple):
    """The answers of one server: `answers` in the order of the commands, or the reason why there are none.

    `expires_at`: when its certificate ends, in Unix time; `cluster`: the id of its cluster, None if it does not report
    one.
    """

    peer: Address | None
    answers: list[Answer]
    failure: Exception | None
    expires_at: int | None = None
    cluster: str | None = None


class ServerView(NamedTuple):
    """The cluster as one server reports it.

    `peer` is the numeric address that answered, "ip:port"; `id` what it answers to INTERCONNECT; `nodes` its CLUSTER
    STATUS. If `error` is set the server could not be asked, and these are None or empty. `expires_at`: when its
    certificate ends, in Unix time; None without TLS. `cluster`: the id of its cluster, which no other one has; None if
    it has not heard of a leader yet, or is too old to report it.
    """

    server: str
    peer: str | None
    id: int | None
    nodes: list[NodeStatus]
    error: SockpqError | None
    expires_at: int | None = None
    cluster: str | None = None


def any_cluster(address: Address, cluster: str, name: str | None) -> None:
    """Accept any cluster, for callers that only read."""


async def view_all(
    network: Network, addresses: Sequence[Address], timeout: float, of_cluster: OfCluster = any_cluster
) -> list[ServerView]:
    """Return the view of every server, asked in parallel within `timeout` seconds; in the order of `addresses`."""
    questions: list[Command[Any]] = [INTERCONNECT, CLUSTER_STATUS]
    responses = await ask_all(network, addresses, questions, timeout, refusal_s=REFUSAL_S, of_cluster=of_cluster)
    return [_view(address, responses[address]) for address in addresses]


async def status_of_best(
    network: Network, addresses: Sequence[Address], timeout: float, of_cluster: OfCluster
) -> list[NodeStatus]:
    """Return CLUSTER STATUS of the best of these servers. Raises Unavailable if none answers, AuthError."""
    views = await view_all(network, addresses, timeout, of_cluster)
    answered = [view for view in views if view.error is None]
    if not answered:
        failures = {address: view.error for address, view in zip(addresses, views, strict=True)}
        raise hopeless(failures) or Unavailable("; ".join(str(view.error) for view in views))
    return min(answered, key=lambda view: view.id or 0).nodes


def _view(address: Address, response: Response) -> ServerView:
    failure = response.failure or next((answer.error for answer in response.answers if answer.error), None)
    if failure is None:
        own_id, nodes = (answer.value for answer in response.answers)
        return ServerView(str(address), str(response.peer), own_id, nodes, None, response.expires_at, response.cluster)
    error = failure if isinstance(failure, SockpqError) else (
        ForeignCluster if isinstance(failure, ForeignServer) else Unavailable)(str(failure))
    peer = str(response.peer) if response.peer else None
    return ServerView(str(address), peer, None, [], error, response.expires_at, response.cluster)


async def ask_all(
    network: Network,
    addresses: Sequence[Address],
    questions: Sequence[Command[Any]],
    timeout: float,
    straggler: float | None = None,
    refusal_s: float = 0.0,
    of_cluster: OfCluster = any_cluster,
) -> dict[Address, Response]:
    """Ask all servers all questions within `timeout` seconds, and within `straggler` seconds after the first answer.

    `refusal_s`: extra seconds allowed for a server that has not yet answered AUTH; `of_cluster`: see Connection.open.
    """
    refusal_s = refusal_s if network.access.login else 0.0
    until = network.now() + timeout + refusal_s
    race = network.race([ask(network, address, questions, timeout, refusal_s, of_cluster) for address in addresses])
    late = Response(None, [], Lost("no answer in time", sent=False))
    responses = dict.fromkeys(addresses, late)
    try:
        for _ in addresses:
            ended = await race.next(until - network.now())
            if ended is None:
                break
            position, response = ended
            responses[addresses[position]] = response
            if straggler is not None and response.failure is None:
                until = min(until, network.now() + straggler)
    finally:
        race.stop()
    return responses


async def ask(
    network: Network, address: Address, questions: Sequence[Command[Any]], timeout: float, refusal_s: float = 0.0,
    of_cluster: OfCluster = any_cluster,
) -> Response:
    """Ask one server on a connection of its own, within `timeout` seconds; never raises network errors.

    `refusal_s`: extra seconds allowed for refusing AUTH; `of_cluster`: see Connection.open.
    """
    until = network.now() + timeout
    peer: Address | None = None
    expires_at: int | None = None
    answers: list[Answer] = []
    try:
        login = any(question is not PING for question in questions)
        connection = await Connection.open(network, address, timeout, of_cluster, login=login)
        try:
            peer, expires_at = connection.peer(), connection.expires_at()
            if await connection.send_many([(question, 0) for question in questions], timeout) < len(questions):
                raise connection.lost("the connection broke")
            while len(answers) < len(questions):
                limit = until + refusal_s if connection.entering else until
                answers += await connection.receive(max(limit - network.now(), 0.001))
            return Response(peer, answers, None, expires_at, connection.cluster)
        finally:
            connection.close()
    except TimeoutError:
        return Response(peer, [], Lost(f"{address}: no answer within {timeout:g} s", sent=False), expires_at)
    except (OSError, Lost, SockpqError) as failure:
        # A full server answers the first command with a refusal, and closes.
        full = answers[0].error if answers and isinstance(answers[0].error, Busy) else None
        return Response(peer, [], full or failure, expires_at)


def members(responses: Mapping[Address, Response]) -> tuple[Address, ...]:
    """Return the members' addresses for clients, as reported by the server with the newest term; () without one."""
    newest: tuple[int, list[NodeStatus]] = (-1, [])
    for response in responses.values():
        if response.failure is None and len(response.answers) == len(QUESTIONS) and not response.answers[2].error:
            nodes: list[NodeStatus] = response.answers[2].value
            newest = max(newest, (max((node.term or 0 for node in nodes), default=0), nodes), key=lambda one: one[0])
    return members_of(newest[1])


def members_of(nodes: Sequence[NodeStatus]) -> tuple[Address, ...]:
    """Return the addresses of these nodes for clients."""
    return tuple(parse_server(node.client) for node in nodes if node.client)[:MEMBERS_MAX]


def choose_leader(responses: Mapping[Address, Response]) -> Address:
    """Return the server that reports serving, or else, of those too old to report it, the one with the smallest id.

    Raises NoLeader if none can be the leader, AuthError or Untrusted if it is pointless to ask again.
    """
    ids = {
        address: response.answers[0].value
        for address, response in responses.items()
        if response.failure is None and response.answers[0].error is None
    }
    claiming = {address: number for address, number in ids.items() if claims_to_serve(responses[address])}
    reasons = [_of_leader(address, responses) for address in ids]
    possible = claiming or {
        address: number for (address, number), reason in zip(ids.items(), reasons, strict=True)
        if number < NOBODY and not reason
    }
    if possible:
        return min(possible, key=possible.__getitem__)
    reasons = [reason or f"{address} knows no leader" for address, reason in zip(ids, reasons, strict=True)]
    failures = {address: _failure(response) for address, response in responses.items() if address not in ids}
    if not ids and (final := hopeless(failures)):
        raise final
    reasons += [_reason(address, failure) for address, failure in failures.items()]
    foreign = not ids and any(isinstance(failure, ForeignServer) for failure in failures.values())
    raise (ForeignLeader if foreign else NoLeader)("; ".join(reasons))


def hopeless(failures: Mapping[Address, Exception | None]) -> NotExecuted | None:
    """Return the error when asking these servers again is pointless.

    A wrong certificate or cluster concerns a single server, a wrong secret all of them.
    """
    told = "; ".join(_reason(address, failure) for address, failure in failures.items())
    if any(isinstance(failure, AuthError) for failure in failures.values()):
        return AuthError(told)
    if failures and all(isinstance(failure, Untrusted) for failure in failures.values()):
        return Untrusted(told)
    if failures and all(isinstance(failure, ForeignServer | ForeignCluster) for failure in failures.values()):
        whys = {failure.why for failure in failures.values() if isinstance(failure, ForeignServer)}
        return ForeignCluster(f"{', '.join(map(str, failures))}: {whys.pop()}" if len(whys) == 1 else told)
    return None


def claims_to_serve(response: Response) -> bool:
    """Return whether this server reports that it leads, and has the leader's number.

    `response`: to INTERCONNECT and CLUSTER LEADER.
    """
    if response.failure or any(answer.error for answer in response.answers[:2]):
        return False
    own_id, leader = (answer.value for answer in response.answers[:2])
    return leader is not None and leader.id == own_id


def _of_leader(address: Address, responses: Mapping[Address, Response]) -> str:
    """Return why the server at `address` cannot be the leader: it names another one, which does not answer; else ""."""
    answers = responses[address].answers
    if len(answers) < 2 or answers[1].error or not answers[1].value or not answers[1].value.client:
        return ""
    leader = parse_server(answers[1].value.client)
    if leader == address or answers[1].value.id == answers[0].value:
        return ""
    told = responses.get(leader)
    answered = told is not None and told.failure is None
    same = any(
        response.failure is None and response.answers[0].value == answers[1].value.id for response in responses.values()
    )
    return "" if answered or same else f"{address} says that {leader} leads, which does not answer"


def _failure(response: Response) -> Exception | None:
    return response.failure or response.answers[0].error


def _reason(address: Address, failure: Exception | None) -> str:
    reason = str(failure)
    return reason if reason.startswith(str(address)) else f"{address}: {reason}"
