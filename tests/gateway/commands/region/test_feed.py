"""CLUSTER FEED and its snapshot, as a copy in another region gets them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sockpqd.cluster.api import Checkpoint, Frame
from sockpqd.core import Machine, decode_entry
from sockpqd.gateway.commands.region import feed as feed_command
from sockpqd.gateway.limits import EXPORTED_MAX, FEEDS_MAX, STREAM_PIECE_BYTES
from sockpqd.gateway.replica.feed_stream import FeedStream, Mark
from tests.gateway.helpers.fake_cluster import FakeFeed
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway, with_gateway
from tests.waiting import PATIENCE_S


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for new entries at once; a feed without any says only once how far it is, however slow the machine is."""
    monkeypatch.setattr(feed_command, "FEED_LOOK_S", 0)
    monkeypatch.setattr(feed_command, "FEED_MARK_S", 1e9)


async def started(gateway: MemoryGateway, index: int) -> tuple[MemoryClient, bytes]:
    """Begin a feed; return its client, and what came behind the first line."""
    client = gateway.connect()
    client.send(b"CLUSTER FEED %d\r\n" % index)
    await gateway.settle()
    head, _, rest = client.take().partition(b"\r\n")
    assert head == b"200 OK %d" % index
    return client, rest


def test_a_feed_has_all_entries_from_its_index_on_and_those_that_come() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.talk(b"PUT q 0 5\r\nhello")
        client, rest = await started(gateway, 1)
        stream = FeedStream()
        items = stream.items(rest)
        await gateway.talk(b"PUT q 0 5\r\nthere")
        await gateway.settle()
        items += stream.items(client.take())
        frames = [item for item in items if isinstance(item, Frame)]
        assert frames == gateway.cluster.frames
        machine = Machine()
        for frame in frames:
            machine.apply(frame.index, frame.now_ms, frame.seed, decode_entry(frame.data).operations)
        assert b"".join(machine.snapshot()) == b"".join(gateway.cluster.machine.snapshot())
        last = items[-1]
        assert isinstance(last, Mark)
        assert last == Mark(len(frames), len(frames), 0)
        assert gateway.hub.feeds.running == 1
        assert gateway.hub.feeds.sent_entries == len(frames)
        client.vanish()
        await gateway.settle()
        assert gateway.hub.feeds.running == 0
    with_gateway(test)


def test_a_feed_of_nothing_says_that_it_lives() -> None:
    async def test(gateway: MemoryGateway) -> None:
        _, rest = await started(gateway, 2)
        assert FeedStream().items(rest) == [Mark(1, 1, 0)]
        gateway.cluster.silence_s = 2.5
        _, rest = await started(gateway, 2)
        assert FeedStream().items(rest) == [Mark(1, 1, 2500)]
        gateway.cluster.silence_s = float("inf")
        _, rest = await started(gateway, 2)
        assert FeedStream().items(rest) == [Mark(1, 1, 10**12)]
    with_gateway(test)


def test_checkpoints_come_with_the_entries_behind_which_they_are() -> None:
    async def test(gateway: MemoryGateway) -> None:
        source = gateway.cluster.feed
        assert isinstance(source, FakeFeed)
        source.hashes.update({1: b"a" * 16, 2: b"b" * 16, 3: b"c" * 16})
        await gateway.talk(b"PUT q 0 1\r\nx")
        client, rest = await started(gateway, 2)
        stream = FeedStream()
        items = stream.items(rest)
        await gateway.talk(b"PUT q 0 1\r\nx")
        await gateway.settle()
        items += stream.items(client.take())
        kinds = [type(item) for item in items]
        assert kinds == [Frame, Checkpoint, Mark, Frame, Checkpoint, Mark]
        assert [item for item in items if isinstance(item, Checkpoint)] == [
            Checkpoint(2, b"b" * 16), Checkpoint(3, b"c" * 16)]
    with_gateway(test)


def test_a_copy_that_cannot_be_fed_hears_why() -> None:
    async def test(gateway: MemoryGateway) -> None:
        source = gateway.cluster.feed
        assert isinstance(source, FakeFeed)
        await gateway.talk(b"PUT q 0 1\r\nx")
        source.hashes[1] = b"a" * 16
        good, wrong = b"61" * 16, b"62" * 16
        assert await gateway.talk(b"CLUSTER FEED 2 1 %b\r\n" % wrong) == b"409 Different\r\n"
        assert (await gateway.talk(b"CLUSTER FEED 2 1 %b\r\n" % good)).startswith(b"200 OK 2\r\n2 ")
        assert await gateway.talk(b"CLUSTER FEED 9\r\n") == b"409 Too New\r\n"
        source.lost = 2
        assert await gateway.talk(b"CLUSTER FEED 1\r\n") == b"409 Too Old\r\n"
        assert await gateway.talk(b"CLUSTER FEED 1\r\nPING\r\n") == b"409 Too Old\r\n200 OK\r\n"
    with_gateway(test)


def test_a_copy_that_loses_its_place_hears_it_and_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    async def test(gateway: MemoryGateway) -> None:
        source = gateway.cluster.feed
        assert isinstance(source, FakeFeed)
        client, _ = await started(gateway, 1)
        source.lost = 100
        await gateway.settle()
        assert client.take().endswith(b"409 Too Old\r\n")
        assert client.closed
        assert "the copy is too slow" in caplog.text
    with_gateway(test)


def test_a_copy_is_not_called_slow_if_entries_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    async def test(gateway: MemoryGateway) -> None:
        source = gateway.cluster.feed
        assert isinstance(source, FakeFeed)
        client, _ = await started(gateway, 1)
        source.damaged = 1
        await gateway.settle()
        assert client.take().endswith(b"409 Too Old\r\n")
        assert client.closed
        assert "too slow" not in caplog.text
    with_gateway(test)


def test_a_copy_that_reads_nothing_holds_a_bounded_number_of_bytes() -> None:
    async def test(gateway: MemoryGateway) -> None:
        for _ in range(40):
            await gateway.talk(b"PUT q 0 100000\r\n" + bytes(100_000))
        client = gateway.connect()
        client.transport.stuck = True
        client.send(b"CLUSTER FEED 1\r\n")
        await gateway.settle()
        await gateway.settle()
        assert client.transport.get_write_buffer_size() < 2 * STREAM_PIECE_BYTES + 200_000
        assert gateway.hub.account.held_bytes > 4_000_000, "what was read of the log for it counts as well"
        client.transport.stuck = False
        stream = FeedStream()
        items = stream.items(client.take().partition(b"\r\n")[2])
        while sum(isinstance(item, Frame) for item in items) < len(gateway.cluster.frames):
            await asyncio.sleep(0)
            items += stream.items(client.take())
        assert [item for item in items if isinstance(item, Frame)] == gateway.cluster.frames
        await gateway.settle()
        assert gateway.hub.account.held_bytes < 4_000_000
    with_gateway(test)


def test_only_so_many_feeds_run_at_a_time() -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = [(await started(gateway, 1))[0] for _ in range(FEEDS_MAX)]
        assert await gateway.talk(b"CLUSTER FEED 1\r\n") == b"503 Busy\r\n"
        look = b"CLUSTER FEED %d\r\n" % (2**63 - 1)            # as Client.feed_check
        assert await gateway.talk(look) == b"503 Busy\r\n"
        clients[0].vanish()
        await gateway.settle()
        assert await gateway.talk(look) == b"409 Too New\r\n"
        await started(gateway, 1)
    with_gateway(test)


@pytest.mark.parametrize("line", [b"CLUSTER FEED 1", b"CLUSTER FEED SNAPSHOT"])
def test_a_feed_is_only_for_connections_that_cannot_be_overheard_and_not_of_a_copy(
    line: bytes, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect(secure=False)
        client.send(line + b"\r\nPING\r\n")
        await gateway.settle()
        assert client.take() == b"403 Forbidden\r\n200 OK\r\n"
        monkeypatch.setattr(Machine, "mirrored", 5)
        assert await gateway.talk(line + b"\r\nPING\r\n") == b"500 Offline Mode\r\n200 OK\r\n"
    with_gateway(test)


def test_a_snapshot_has_users_and_the_rest_of_a_broken_one_is_sent(tmp_path: Path) -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.talk(b"PUT q 0 5\r\nhelloUSER SET ann put:* %b\r\n" % (b"ab" * 32))
        gateway.hub.empty_export_dir()
        answer = await gateway.talk(b"CLUSTER FEED SNAPSHOT\r\n")
        head, _, data = answer.partition(b"\r\n")
        index = gateway.cluster.machine.index
        assert head == b"200 OK %d %b %d" % (index, b"ab" * 16, len(data))
        machine = Machine()
        machine.restore([data])
        assert "ann" in machine.users
        assert b"".join(machine.snapshot()) == b"".join(gateway.cluster.machine.snapshot())
        kept = gateway.hub.feeds.snapshot
        assert kept is not None
        forgetting = kept.forgetting
        assert forgetting is not None
        rest = await gateway.talk(b"CLUSTER FEED SNAPSHOT %d 10\r\n" % index)
        assert forgetting.cancelled(), "its time begins again with each use"
        assert kept.forgetting is not None
        assert not kept.forgetting.cancelled()
        assert rest == b"200 OK %d %b %d\r\n" % (index, b"ab" * 16, len(data) - 10) + data[10:]
        await started(gateway, index + 1)
        assert gateway.hub.feeds.snapshot is None, "the copy has it"
        assert await gateway.talk(b"CLUSTER FEED SNAPSHOT %d 10\r\n" % index) == b"409 Too Old\r\n"
        client = gateway.connect()
        client.transport.stuck = True
        client.send(b"CLUSTER FEED SNAPSHOT\r\n")
        await gateway.settle()
        client.vanish()
        await gateway.settle()
        assert not list((tmp_path / "exports").iterdir())
    with_gateway(test, folder=tmp_path / "exports")


def test_the_rest_of_a_snapshot_is_the_same_although_the_state_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sockpqd.gateway.commands.region.feeds.STREAM_PIECE_BYTES", 1000)

    async def test(gateway: MemoryGateway) -> None:
        gateway.hub.empty_export_dir()
        for _ in range(20):
            await gateway.talk(b"PUT q 0 100000\r\n" + bytes(100_000))
        whole = b"".join(gateway.cluster.machine.export(users=True))
        index = gateway.cluster.machine.index
        client = gateway.connect()
        client.transport.stuck = True
        client.send(b"CLUSTER FEED SNAPSHOT\r\n")
        await gateway.settle()
        got = client.take().partition(b"\r\n")[2]
        assert len(got) < len(whole) / 2
        client.vanish()
        await gateway.talk(b"PUT q 0 1\r\nx")
        other = gateway.connect()
        other.send(b"CLUSTER FEED SNAPSHOT %d %d\r\n" % (index, len(got)))
        rest = b""
        while len(rest.partition(b"\r\n")[2]) < len(whole) - len(got):
            await asyncio.sleep(0)
            rest += other.take()
        head, _, data = rest.partition(b"\r\n")
        assert head == b"200 OK %d %b %d" % (index, b"ab" * 16, len(whole) - len(got))
        assert got + data == whole
        assert await gateway.talk(b"CLUSTER FEED SNAPSHOT %d 0\r\n" % (index + 1)) == b"409 Too Old\r\n"
    with_gateway(test, folder=tmp_path / "exports")


def test_snapshots_of_a_client_have_their_places_like_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sockpqd.gateway.commands.region.feeds.STREAM_PIECE_BYTES", 1000)

    async def test(gateway: MemoryGateway) -> None:
        gateway.hub.empty_export_dir()
        for _ in range(5):
            await gateway.talk(b"PUT q 0 100000\r\n" + bytes(100_000))
        places = gateway.hub.exported
        for number in range(EXPORTED_MAX):
            assert places.take(f"other {number}")
        line = b"CLUSTER FEED SNAPSHOT\r\nPING\r\n"
        assert await gateway.talk(line) == b"503 Busy\r\n200 OK\r\n"
        places.leave("other 0")
        assert (await gateway.talk(b"CLUSTER FEED SNAPSHOT\r\n")).startswith(b"200 OK ")
        async with asyncio.timeout(PATIENCE_S):
            while places.taken == EXPORTED_MAX:     # until it is sent
                await asyncio.sleep(0)
        client = gateway.connect()
        client.transport.stuck = True
        client.send(b"CLUSTER FEED SNAPSHOT\r\n")
        await gateway.settle()
        assert places.taken == EXPORTED_MAX, "it is being read"
        assert await gateway.talk(line) == b"503 Busy\r\n200 OK\r\n"
        rest = b"CLUSTER FEED SNAPSHOT %d 0\r\nPING\r\n" % gateway.cluster.machine.index
        assert await gateway.talk(rest) == b"503 Busy\r\n200 OK\r\n"
        client.vanish()
        await gateway.settle()
        assert places.taken == EXPORTED_MAX - 1
    with_gateway(test, folder=tmp_path / "exports")
