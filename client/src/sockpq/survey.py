"""Ask several servers at once, and wait only as long as it is worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sockpq import commands
from sockpq.addresses import Address
from sockpq.commands import Command
from sockpq.errors import SockpqError, Unavailable
from sockpq.link import Link
from sockpq.model import NodeStatus
from sockpq.network import Network
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


async def view_all(network: Network, addresses: Sequence[Address], timeout: float) -> list[ServerView]:
    """The view of every server, asked in parallel within `timeout` seconds; in the order of `addresses`."""
    questions: list[Command[Any]] = [commands.INTERCONNECT, commands.CLUSTER_STATUS]
    responses = await ask_all(network, addresses, questions, timeout)
    return [_view(address, responses[address]) for address in addresses]


def _view(address: Address, response: Response) -> ServerView:
    failure = response.failure or next((answer.error for answer in response.answers if answer.error), None)
    if failure is None:
        own_id, nodes = (answer.value for answer in response.answers)
        return ServerView(str(address), str(response.peer), own_id, nodes, None)
    error = failure if isinstance(failure, SockpqError) else Unavailable(str(failure))
    return ServerView(str(address), str(response.peer) if response.peer else None, None, [], error)


async def ask_all(
    network: Network,
    addresses: Sequence[Address],
    questions: Sequence[Command[Any]],
    timeout: float,
    straggler: float | None = None,
) -> dict[Address, Response]:
    """Ask all servers all questions within `timeout` seconds, and within `straggler` seconds after the first answer."""
    until = network.now() + timeout
    race = network.race([ask(network, address, questions, timeout) for address in addresses])
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


async def ask(network: Network, address: Address, questions: Sequence[Command[Any]], timeout: float) -> Response:
    """Ask one server on a connection of its own, within `timeout` seconds; never raises what the network can cause."""
    until = network.now() + timeout
    peer = None
    try:
        link = await Link.open(network, address, timeout)
        try:
            peer = link.peer()
            if await link.send_many([(question, 0) for question in questions], timeout) < len(questions):
                raise link.lost("the connection broke")
            answers: list[Answer] = []
            while len(answers) < len(questions):
                answers += await link.receive(max(until - network.now(), 0.001))
            return Response(peer, answers, None)
        finally:
            link.close()
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
