"""Ask several servers at once, each in a thread of its own, and wait only as long as it is worth it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, NamedTuple

from sockpq import commands
from sockpq.addresses import Address, parse_servers
from sockpq.arguments import span
from sockpq.commands import Command
from sockpq.connection import Connection
from sockpq.errors import SockpqError, Unavailable
from sockpq.model import NodeStatus
from sockpq.protocol import Answer
from sockpq.retry import Lost, NoLeader

NOBODY = 2_147_483_647      # INTERCONNECT of a node that knows no leader (DECISIONS.md 1)


class Response(NamedTuple):
    """What one server answered: `answers` in the order of the commands, or why there are none."""

    peer: Address | None
    answers: list[Answer]
    failure: Exception | None


class ServerView(NamedTuple):
    """The cluster as one server tells it.

    `peer` is the numeric address that answered, "ip:port"; `id` what it answers to INTERCONNECT; `nodes` its CLUSTER
    STATUS. When `error` is set the server could not be asked and the rest is None or empty.
    """

    server: str
    peer: str | None
    id: int | None
    nodes: list[NodeStatus]
    error: SockpqError | None


def survey(servers: str | Iterable[str], timeout: float = 0.5) -> list[ServerView]:
    """The view of every server, asked in parallel within `timeout` seconds; in the order of `servers`.

    Raises BadArguments and TypeError for what is no list of servers, nothing else.
    """
    addresses = parse_servers(servers)
    questions: list[Command[Any]] = [commands.INTERCONNECT, commands.CLUSTER_STATUS]
    responses = ask_all(addresses, questions, span(timeout, "timeout"))
    return [_view(address, responses[address]) for address in addresses]


def _view(address: Address, response: Response) -> ServerView:
    failure = response.failure or next((answer.error for answer in response.answers if answer.error), None)
    if failure is None:
        own_id, nodes = (answer.value for answer in response.answers)
        return ServerView(str(address), str(response.peer), own_id, nodes, None)
    error = failure if isinstance(failure, SockpqError) else Unavailable(str(failure))
    return ServerView(str(address), str(response.peer) if response.peer else None, None, [], error)


def ask_all(
    addresses: Sequence[Address], questions: Sequence[Command[Any]], timeout: float, straggler: float | None = None
) -> dict[Address, Response]:
    """Ask all servers all questions within `timeout` seconds, and within `straggler` seconds after the first answer."""
    finished: SimpleQueue[tuple[Address, Response]] = SimpleQueue()
    until = monotonic() + timeout
    for address in addresses:
        threading.Thread(
            target=lambda address=address: finished.put((address, ask(address, questions, timeout))),
            name=f"sockpq asks {address}",
            daemon=True,        # a name server that does not answer must not keep the program alive
        ).start()
    responses: dict[Address, Response] = {}
    while len(responses) < len(addresses):
        try:
            address, response = finished.get(timeout=max(until - monotonic(), 0.001))
        except Empty:
            break
        responses[address] = response
        if straggler is not None and response.failure is None:
            until = min(until, monotonic() + straggler)
    late = Response(None, [], Lost("no answer in time", sent=False))
    return {address: responses.get(address, late) for address in addresses}


def ask(address: Address, questions: Sequence[Command[Any]], timeout: float) -> Response:
    """Ask one server on a connection of its own, within `timeout` seconds; never raises what the network can cause."""
    until = monotonic() + timeout
    peer = None
    try:
        connection = Connection(address, timeout)
        try:
            peer = connection.peer()
            if connection.send(questions, timeout) < len(questions):
                raise connection.lost("the connection broke")
            answers: list[Answer] = []
            while len(answers) < len(questions):
                answers += connection.receive(max(until - monotonic(), 0.001))
            return Response(peer, answers, None)
        finally:
            connection.close()
    except TimeoutError:
        return Response(peer, [], Lost(f"{address}: no answer within {timeout:g} s", sent=False))
    except (OSError, Lost, SockpqError) as failure:
        return Response(peer, [], failure)


def choose_leader(responses: Mapping[Address, Response]) -> Address:
    """The server with the smallest INTERCONNECT number (CLUSTER.md 4); raises NoLeader when none can be it."""
    ids = {
        address: response.answers[0].value
        for address, response in responses.items()
        if response.failure is None and response.answers[0].error is None
    }
    serving = {address: number for address, number in ids.items() if number < NOBODY}
    if serving:
        return min(serving, key=serving.__getitem__)
    reasons = [f"{address} knows no leader" for address in ids]
    reasons += [_reason(address, response) for address, response in responses.items() if address not in ids]
    raise NoLeader("; ".join(reasons))


def claims_to_serve(response: Response) -> bool:
    """Does this server say that it leads, and has it the leader's number? Asked INTERCONNECT and CLUSTER LEADER."""
    if response.failure or any(answer.error for answer in response.answers):
        return False
    own_id, leader = (answer.value for answer in response.answers)
    return leader is not None and leader.id == own_id


def _reason(address: Address, response: Response) -> str:
    reason = str(response.failure or response.answers[0].error)
    return reason if reason.startswith(str(address)) else f"{address}: {reason}"
