"""A second process with a member's name, and copies of data directories, on real connections."""

from __future__ import annotations

import asyncio

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.settings import Member
from sockpqd.cluster.wire.messages import Info, Message
from tests.cluster.test_peer_network import End, members, run, until

ALIVE_S = 0.05
WATCHED_S = 3.0
CLOSED_S = 0.2                  # what was refused a moment ago is closed by then
PATIENT_S = 60.0                # longer than a busy machine stands still


def info() -> Message:
    return Info("FOLLOWER", 1, 1, 0, True, True, False, False, 0, "1", 0, b"")


async def alive(end: End) -> None:
    """Describe itself to the others repeatedly, as a node does."""
    while True:
        for name in ("n1", "n2", "n3"):
            end.network.send(name, info())
        end.network.flush()
        await asyncio.sleep(ALIVE_S)


def free() -> str:
    return members(1)[0].peer


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count every member as heard a moment ago, so that a busy machine makes no difference."""
    monkeypatch.setattr(limits, "DUPLICATE_S", PATIENT_S)
    monkeypatch.setattr(limits, "SILENCE_S", PATIENT_S)


def links(end: End, name: str) -> int:
    """Return how often a link was made or lost."""
    return sum(1 for who, event in end.events if who == name and not isinstance(event, Info))


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("known", [True, False])
def test_the_one_that_answers_keeps_its_place(*, known: bool, caplog: pytest.LogCaptureFixture) -> None:
    """`known`: False for an older version, whose processes look the same to their peers: then the links flap."""
    async def test() -> None:
        both = members(2)
        node = End("n1", both, process=b"P")
        first = End("n2", both, process=b"first" if known else b"")
        twin = End("n2", both, process=b"twin" if known else b"", listen=free())
        for end in (node, first):
            await end.network.start()
        await until(lambda: node.events and first.events)
        lives = [asyncio.create_task(alive(end)) for end in (first, twin, node)]
        await asyncio.sleep(0.2)
        await twin.network.start()
        await asyncio.sleep(WATCHED_S)
        if known:
            assert links(node, "n2") == 1
            assert not twin.events
            assert "a second process with the name n2 comes from 127.0.0.1:" in caplog.text
            assert "while the one from 127.0.0.1:" in caplog.text
            assert "n1 refuses this node: a second process with the name n2" in caplog.text
        else:
            assert links(node, "n2") > 3
        for task in lives:
            task.cancel()
        for end in (twin, first, node):
            await end.network.stop()
        await asyncio.sleep(CLOSED_S)
    run(test)


@pytest.mark.usefixtures("patient")
def test_a_process_that_comes_first_from_elsewhere_gives_way_to_the_one_at_the_address() -> None:
    async def test() -> None:
        both = members(2)
        node = End("n1", both, process=b"P")
        twin = End("n2", both, process=b"twin", listen=free())
        first = End("n2", both, process=b"first")
        for end in (node, twin):
            await end.network.start()
        await asyncio.sleep(0.5)
        assert not node.events                      # nobody answers at the address of n2
        await first.network.start()
        lives = [asyncio.create_task(alive(end)) for end in (first, twin, node)]
        await until(lambda: first.events and node.events)
        await asyncio.sleep(WATCHED_S)
        assert links(node, "n2") == 1
        assert not twin.events
        for task in lives:
            task.cancel()
        for end in (twin, first, node):
            await end.network.stop()
        await asyncio.sleep(CLOSED_S)
    run(test)


def test_when_the_one_that_is_there_is_silent_who_answers_at_the_address_has_the_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second one could be the same node after a restart: the link is lost once, and the first is found again."""
    monkeypatch.setattr(limits, "DUPLICATE_S", 0.3)

    async def test() -> None:
        both = members(2)
        node, first = End("n1", both, process=b"P"), End("n2", both, process=b"first")
        twin = End("n2", both, process=b"twin", listen=free())
        for end in (node, first):
            await end.network.start()
        await until(lambda: node.events and first.events)
        await twin.network.start()
        await until(lambda: links(node, "n2") > 1)
        monkeypatch.setattr(limits, "DUPLICATE_S", PATIENT_S)
        monkeypatch.setattr(limits, "SILENCE_S", PATIENT_S)
        lives = [asyncio.create_task(alive(end)) for end in (first, twin, node)]
        found = 0           # where the machine stands still in between it may be lost, and found again, once more
        while found != links(node, "n2"):
            await until(lambda: links(node, "n2") > 1 and links(node, "n2") % 2)
            found = links(node, "n2")
            await asyncio.sleep(WATCHED_S)
        assert not twin.events
        for task in lives:
            task.cancel()
        for end in (twin, first, node):
            await end.network.stop()
        await asyncio.sleep(CLOSED_S)
    run(test)


def test_a_node_that_is_restarted_takes_its_place_again_at_once() -> None:
    async def test() -> None:
        both = members(2)
        node, first = End("n1", both, process=b"P"), End("n2", both, process=b"first")
        for end in (node, first):
            await end.network.start()
        await until(lambda: node.events and first.events)
        await first.network.stop()
        second = End("n2", both, process=b"second")
        await second.network.start()
        await until(lambda: second.events and links(node, "n2") == 3)
        for end in (second, node):
            await end.network.stop()
        await asyncio.sleep(CLOSED_S)
    run(test)


def test_a_copy_of_a_data_directory_is_refused_under_another_name(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        three = members(3)
        ends = [
            End(f"n{k}", three, process=b"%d" % k, journal=journal)
            for k, journal in ((1, b"one"), (2, b"two"), (3, b"two"))
        ]
        for end in ends[:2]:
            await end.network.start()
        await until(lambda: ends[0].events and ends[1].events)
        await ends[2].network.start()
        await asyncio.sleep(1.0)
        assert not ends[2].events
        # Each of the two is told so, but neither knows which one is the copy, and must not name one to be emptied.
        assert "n3 and n2 have copies of one data directory" in caplog.text
        assert "stop n3" not in caplog.text
        assert "stop n2" not in caplog.text
        for end in ends:
            await end.network.stop()
        await asyncio.sleep(CLOSED_S)
    run(test)


def test_nodes_of_an_older_version_are_not_examined() -> None:
    async def test() -> None:
        both: tuple[Member, ...] = members(2)
        new, old = End("n1", both, process=b"P", journal=b"J"), End("n2", both)
        for end in (new, old):
            await end.network.start()
        await until(lambda: new.events and old.events)
        for end in (new, old):
            await end.network.stop()
        await asyncio.sleep(CLOSED_S)
    run(test)
