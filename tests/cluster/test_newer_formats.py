"""Files, snapshots and greetings of a newer version are refused in words that say what to do; nothing is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
import pytest

from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.snapshots import snapshot_file
from sockpqd.cluster.storage.errors import JournalTooNew, SnapshotTooNew
from sockpqd.cluster.wire.messages import WIRE_FORMAT, Hello, encode
from sockpqd.core import SnapshotError
from tests.cluster.helpers.faulty_disk import FaultyDisk
from tests.cluster.helpers.small_cluster import SmallCluster
from tests.cluster.test_hazards import lagging
from tests.cluster.test_peer_network import End, frame, members, run, until
from tests.cluster.test_snapshots import JOURNAL, Counter, Node, commands, compacted, path

NEWER = snapshot_file.VERSION_WITH_PAGES + 1
AGAIN = "Start the newer version again, or empty this node's data directory."
HERE = "Start the newer version on this node."


def contents(disk: FaultyDisk) -> dict[str, bytes]:
    """Return all files of a disk."""
    return {name: bytes(file.data) for name, file in disk.names_now.items()}


def not_understood(chunks: Iterable[bytes]) -> None:
    """Return the restore() of a machine that does not know the format of a state."""
    raise SnapshotError("snapshot of format 9; this version reads formats 1 to 2")


def refused(disk: FaultyDisk, error: type[Exception], what: str) -> None:
    """Assert that a node does not start on this disk, says so, and leaves it unchanged."""
    before = contents(disk)
    with pytest.raises(error) as raised:
        Node(disk)
    assert what in str(raised.value)
    assert str(raised.value).endswith(AGAIN)
    assert contents(disk) == before


def test_a_journal_of_a_newer_format_in_any_frame() -> None:
    disk = FaultyDisk()
    compacted(disk, 10, 20, 30)
    segment = JOURNAL / "journal-00000001"
    original = bytes(disk.file(segment))
    starts = [offset for offset, _ in journal_format.later_headers(original, 0)]
    assert len(starts) > 5
    for start in starts:
        header = bytearray(original[start:start + journal_format.HEADER.size])
        header[4:6] = (journal_format.VERSION + 1).to_bytes(2, "little")
        header[56:60] = journal_format.crc32(bytes(header[:56])).to_bytes(4, "little")
        disk.file(segment)[start:start + len(header)] = header
        refused(disk, JournalTooNew, f"journal {segment} has format 2; this version of sockpqd reads formats up to 1")
        disk.file(segment)[:] = original


def test_a_snapshot_of_a_newer_format(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FaultyDisk()
    with monkeypatch.context() as newer:
        newer.setattr(snapshot_file, "VERSION", NEWER)
        compacted(disk, 10, 20, 30)
    refused(disk, SnapshotTooNew, f"snapshot {path(20)} has format 3; this version of sockpqd reads formats up to 2")


def test_a_snapshot_with_a_state_of_a_newer_format_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FaultyDisk()
    compacted(disk, 10, 20, 30)
    monkeypatch.setattr(Counter, "restore", lambda self, chunks: not_understood(chunks))
    refused(disk, SnapshotTooNew, f"does not understand snapshot {path(20)}: snapshot of format 9; this version reads")


def install(node: Node, snapshot: bytes) -> None:
    """Install a snapshot of 50 entries as snapshot_transfer.py does."""
    incoming = node.store.begin_incoming("n1")
    incoming.write(snapshot)
    assert incoming.finish() == (50, 1)
    node.store.expect(incoming)
    node.store.setTransmissionData((b"", True, True))


@pytest.mark.parametrize("inside", [False, True], ids=["file", "state"])
def test_a_snapshot_that_a_newer_leader_sends_replaces_nothing(inside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    leader, disk = FaultyDisk(), FaultyDisk()
    with monkeypatch.context() as newer:
        newer.setattr(snapshot_file, "VERSION", 1 if inside else NEWER)
        compacted(leader, 50, 60)
    compacted(disk, 5, 7, 8)
    node = Node(disk)
    node.load()
    before = contents(disk)
    if inside:
        node.machine.restore = not_understood       # type: ignore[method-assign]
    with pytest.raises(SnapshotTooNew) as raised:
        install(node, bytes(leader.file(path(50))))
    message = str(raised.value)
    assert message.startswith("n1 sent a snapshot of a newer version: ")
    assert ("has format 3" in message) is not inside
    assert message.endswith(HERE)
    assert contents(disk) == before
    assert node.machine.applied == commands(8)
    node.close()
    assert Node(disk).load() == commands(8)


def test_a_node_whose_leader_sends_a_newer_snapshot_stops_and_catches_up_when_it_is_newer_too() -> None:
    world = SmallCluster(3)
    away = lagging(world)
    world.put_now(b"last")
    world.start(away.name)
    away.machine.restore = not_understood           # type: ignore[method-assign]
    world.run_until(lambda: away.failure is not None)
    assert isinstance(away.failure, SnapshotTooNew)
    assert str(away.failure).endswith(HERE)
    world.put_now(b"without it")
    world.kill(away.name)
    world.start(away.name)
    world.run_until(world.settled)
    assert len(world.states()) == 1
    assert world.bodies(away.name)[-2:] == [b"last", b"without it"]



class Newer(End):
    """A node whose messages are of the next format."""

    def hello(self, receiver: str) -> Hello:
        return msgspec.structs.replace(super().hello(receiver), format=WIRE_FORMAT + 1)


def test_nodes_that_speak_different_formats_say_so_and_do_not_talk(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        both = members(2)
        old, new = End("n1", both), Newer("n2", both)
        await old.network.start()
        await new.network.start()
        said = f"n2 speaks format {WIRE_FORMAT + 1} of this protocol, n1 speaks {WIRE_FORMAT}"
        await until(lambda: said in caplog.text)
        assert not old.events
        assert not new.events
        await new.network.stop()
        same = End("n2", both)
        await same.network.start()
        await until(lambda: old.events and same.events)
        await old.network.stop()
        await same.network.stop()
    run(test)


def test_a_greeting_of_a_newer_format_may_say_other_things(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        node = End("n1", members(2))
        await node.network.start()
        greeting = msgspec.msgpack.decode(encode(Newer("n2", members(2)).hello("n1")))
        kept = {key: greeting[key] for key in ("type", "format", "sender", "receiver")}
        knock = msgspec.msgpack.encode({**kept, "news": ["?"]})
        host, port = node.network._settings.peer_listen.split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(frame(knock))
        await until(lambda: f"n2 speaks format {WIRE_FORMAT + 1}" in caplog.text)
        writer.close()
        await node.network.stop()
    run(test)
