"""Turns of requests with large bodies: users and strangers alternate, and addresses do on each side."""

from __future__ import annotations

import asyncio

from sockpq_http.access.large_turns import LargeTurns
from sockpq_http.access.peer import Peer


class Client:
    """A client that waits for a turn, and notes in `order` when it has one."""

    def __init__(self, turns: LargeTurns, order: list[str], name: str, address: str, *, known: bool) -> None:
        peer = Peer(address)
        peer.known = known

        async def wait() -> None:
            await turns.take(peer)
            order.append(name)
        self.task = asyncio.create_task(wait())


async def all_of(turns: LargeTurns, order: list[str], count: int) -> None:
    """Give turns back until so many have had one."""
    await asyncio.sleep(0)
    while len(order) < count:
        turns.give_back()
        await asyncio.sleep(0)


def test_a_flood_of_strangers_keeps_no_user_and_no_other_address_waiting() -> None:
    async def run() -> None:
        turns, order = LargeTurns(), list[str]()
        await turns.take(Peer("first"))
        flood = [Client(turns, order, f"flood {number}", "evil", known=False) for number in range(100)]
        await asyncio.sleep(0)
        others = [Client(turns, order, "user", "a", known=True), Client(turns, order, "new", "b", known=False)]
        await asyncio.sleep(0)
        await all_of(turns, order, 102)
        assert set(order[:3]) == {"user", "new", "flood 0"}
        assert order[3:] == [f"flood {number}" for number in range(1, 100)]
        assert all(one.task.done() for one in (*flood, *others))
    asyncio.run(run())


def test_users_do_not_keep_strangers_waiting_either() -> None:
    async def run() -> None:
        turns, order = LargeTurns(), list[str]()
        await turns.take(Peer("first"))
        for number in range(10):
            Client(turns, order, f"user {number}", "a", known=True)
        Client(turns, order, "new", "b", known=False)
        await all_of(turns, order, 11)
        assert order.index("new") <= 1
    asyncio.run(run())


def test_a_turn_of_one_that_has_gone_is_given_on() -> None:
    async def run() -> None:
        turns, order = LargeTurns(), list[str]()
        await turns.take(Peer("first"))
        clients = [Client(turns, order, name, "a", known=False) for name in ("one", "two", "three")]
        await asyncio.sleep(0)
        clients[0].task.cancel()            # while it waits, and before it knows
        turns.give_back()
        clients[1].task.cancel()            # when it has just got its turn
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert order == ["three"]
        turns.give_back()
        await turns.take(Peer("again"))     # nobody has it
    asyncio.run(run())
