"""The address that is dialled for a node that is not found at its configured one."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from sockpqd.cluster.settings import Member
from sockpqd.cluster.wire.messages import WIRE_FORMAT, Hello
from sockpqd.cluster.wire.moved import Addresses
from tests.cluster.test_peer_network import End, members, run, until

OURS = b"sixteen bytes id"
MINE = Hello(WIRE_FORMAT, "n1", "n2", OURS, address="a:1")


def told(address: str, cluster_id: bytes = OURS) -> Hello:
    return Hello(WIRE_FORMAT, "n2", "n1", cluster_id, address=address)


def test_the_configured_address_goes_first_and_the_other_one_when_nobody_is_there() -> None:
    addresses = Addresses("n2", "b:2")
    addresses.missed()
    assert addresses.present == "b:2"
    addresses.hear(told("c:3"), MINE)
    assert addresses.present == "b:2"
    addresses.missed()
    assert addresses.present == "c:3"
    addresses.hear(told("d:4"), MINE)
    assert addresses.present == "d:4", "it moved again"
    addresses.missed()
    assert addresses.present == "b:2"


def test_an_unknown_address_is_the_one_that_was_told() -> None:
    addresses = Addresses("n2", "")
    assert addresses.present == ""
    addresses.hear(told("c:3"), MINE)
    assert addresses.present == "c:3"
    addresses.missed()
    assert addresses.present == "c:3"


@pytest.mark.parametrize("hello", [
    told("c:3", b""), told("c:3", b"of other cluster"), told("a:1"), told(""), told("c"), told("c:"), told("c:0"),
    told("c:x"), told(":3"), told("c:3\n"), told("c d:3"), told("x" * 300 + ":3"),
], ids=["no cluster", "another", "our own", "none", "no port", "empty", "zero", "word", "no host", "line", "space",
        "long"])
def test_what_is_no_address_of_a_member_is_not_believed(hello: Hello) -> None:
    addresses = Addresses("n2", "b:2")
    addresses.hear(hello, MINE)
    addresses.missed()
    assert addresses.present == "b:2"


def test_clients_are_sent_elsewhere_only_when_the_node_was_not_found_where_it_was() -> None:
    """They may need another route than the one that the node knows of, as this node may."""
    addresses = Addresses("n2", "b:2")
    hello = msgspec.structs.replace(told("c:3"), client="c:4")
    addresses.hear(hello, MINE)
    assert addresses.believed(hello).client == ""
    addresses.missed()
    assert addresses.believed(hello) == hello
    assert addresses.believed(msgspec.structs.replace(hello, address="d:4")).client == ""
    addresses.missed()
    assert addresses.believed(hello).client == ""


class Teller(End):
    """A node that reports its address."""

    tells = ""

    def hello(self, receiver: str) -> Hello:
        return msgspec.structs.replace(super().hello(receiver), address=self.tells)


def test_a_node_at_another_port_is_dialled_where_it_says(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        one, two, new = members(3)
        moved = Member("n2", two.client, new.peer)
        a, b = Teller("n1", (one, two), OURS), Teller("n2", (one, moved), OURS)
        a.tells, b.tells = one.peer, moved.peer
        await a.network.start()
        await b.network.start()
        await until(lambda: a.events and b.events)
        assert f"n2 is at {new.peer}, not at {two.peer}" in caplog.text
        await b.network.stop()
        await until(lambda: a.events[-1] == ("n2", None))
        back = Teller("n2", (one, two), OURS)
        back.tells = two.peer
        await back.network.start()
        await until(lambda: back.events and a.events[-1] != ("n2", None))
        await a.network.stop()
        await back.network.stop()
    run(test)


@pytest.mark.parametrize("cluster_id", [b"", b"of other cluster"], ids=["none", "another"])
def test_a_node_of_no_cluster_or_another_one_is_not_followed(cluster_id: bytes) -> None:
    async def test() -> None:
        one, two, new = members(3)
        a, b = Teller("n1", (one, two), OURS), Teller("n2", (one, Member("n2", two.client, new.peer)), cluster_id)
        a.tells, b.tells = one.peer, new.peer
        dialled: list[Any] = []

        async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            dialled.append(writer)
            writer.close()

        host, port = new.peer.split(":")
        server = await asyncio.start_server(stranger, host, int(port))
        b.network._settings = msgspec.structs.replace(b.network._settings, peer_listen="127.0.0.1:0")
        await a.network.start()
        await b.network.start()
        await asyncio.sleep(1)
        assert dialled == []
        server.close()
        await a.network.stop()
        await b.network.stop()
    run(test)
