"""The puller of a replica, before real servers of an origin on loopback and a mirror in memory."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme

from sockpqd.connections import SEND_BUFFER_BYTES
from sockpqd.gateway.commands.region import feed as feed_command
from sockpqd.gateway.replica import OriginSettings, Phase, Puller
from sockpqd.gateway.replica import puller as puller_module
from sockpqd.gateway.replica.origin import OriginConnection, OriginError
from tests.client.certificates import ca_file, server_tls
from tests.gateway.helpers.fake_cluster import FakeFeed
from tests.gateway.helpers.fake_mirror import FakeMirror
from tests.gateway.helpers.sockets import Gateway

SO_BUF_LOCK = 72


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look and try again without pauses."""
    monkeypatch.setattr(feed_command, "FEED_LOOK_S", 0.001)
    monkeypatch.setattr(puller_module, "LEADS_LOOK_S", 0.001)
    monkeypatch.setattr(puller_module, "RETRY_S", 0.01)
    monkeypatch.setattr(puller_module, "RETRY_S_MAX", 0.02)
    monkeypatch.setattr(puller_module, "IN_VAIN_S", 0.02)


class World:
    """Servers of an origin, and the puller of a replica."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mirror = FakeMirror()
        self.origins: list[Gateway] = []
        self.puller = Puller(self.mirror, OriginSettings((), None, None, None), folder, time.monotonic)

    @property
    def origin(self) -> Gateway:
        return self.origins[0]

    async def add(self) -> Gateway:
        """Start another server of the origin; it leads."""
        gateway = Gateway()
        gateway.hub._export_dir = self.folder / f"exports-{len(self.origins)}"
        gateway.hub.empty_export_dir()
        await gateway.start()
        self.origins.append(gateway)
        return gateway

    def start(self) -> None:
        """Start to pull from all servers."""
        servers = tuple(gateway.address for gateway in self.origins)
        self.puller = Puller(
            self.mirror, OriginSettings(servers, None, None, None), self.folder / "replica", time.monotonic,
            random.Random(1))
        self.puller.start()

    def fetched(self) -> int:
        """The number of snapshots that were given to the mirror."""
        return self.mirror.unusable + len(self.mirror.installed)

    async def caught_up(self) -> None:
        """Wait until the mirror has what the first server has."""
        await self.origin.until(lambda: self.mirror.index == self.origin.cluster.machine.index)
        assert self.mirror.bytes() == b"".join(self.origin.cluster.machine.snapshot())

    async def cut(self) -> None:
        """Break all connections to the first server."""
        for connection in list(self.origin.hub.connections):
            connection.abort()
        await asyncio.sleep(0)


def with_world(test: Callable[[World], Awaitable[None]], folder: Path) -> None:
    async def run() -> None:
        world = World(folder)
        await world.add()
        try:
            await test(world)
        finally:
            await world.puller.stop()
            await turns()                       # a server may be about to accept the puller's last connection
            for gateway in world.origins:
                await gateway.close()
            await turns()
    asyncio.run(run())


async def turns() -> None:
    """Let the loop look at its sockets some times."""
    for _ in range(5):
        await asyncio.sleep(0.001)


def test_the_mirror_gets_all_entries_in_order_also_after_connections_broke(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.origin.talk(b"PUT q 0 5\r\nhello")
        world.start()
        await world.caught_up()
        for number in range(3):
            await world.cut()
            await world.origin.talk(b"PUT q %d 5\r\nthere" % number)
            await world.caught_up()
        taken = [index for offer in world.mirror.offers for index in offer]
        assert taken == sorted(set(taken))
        assert world.mirror.installed == []
        figures = world.puller.figures
        assert figures.phase is Phase.FOLLOWING
        assert figures.connections >= 4
        assert figures.entries == len(taken)
        assert figures.server == f"127.0.0.1:{world.origin.address[1]}"
    with_world(test, tmp_path)


def grows(connection: socket.socket) -> bool:
    """Return whether the kernel may let the send buffer of this connection grow."""
    with suppress(OSError):
        return connection.getsockopt(socket.SOL_SOCKET, SO_BUF_LOCK) == 0
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > 2 * SEND_BUFFER_BYTES   # an old kernel


def test_a_long_line_is_filled_by_a_feed_and_by_the_snapshot_before_it(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        for command in (b"CLUSTER FEED 1\r\n", b"CLUSTER FEED SNAPSHOT\r\n", b"PING\r\n"):
            _, writer = await asyncio.open_connection(*world.origin.address)
            writer.write(command)
            await world.origin.until(lambda: len(world.origin.hub.connection_manager.accepted) == 1)
            (accepted,) = world.origin.hub.connection_manager.accepted
            far = command != b"PING\r\n"
            if far:
                await world.origin.until(lambda: grows(accepted._socket))       # noqa: B023 (awaited in this round)
            else:
                assert not grows(accepted._socket)
            writer.transport.abort()
            await world.origin.until(lambda: not world.origin.hub.connection_manager.accepted)
    with_world(test, tmp_path)


def test_lag_is_known_from_the_marks_of_the_feed(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        assert world.puller.lag_s is None
        world.start()
        await world.caught_up()
        await world.origin.until(lambda: world.puller.figures.caught_up_at is not None)
        assert world.puller.lag_entries == 0
        at = world.puller.figures.caught_up_at
        await world.origin.until(lambda: world.puller.figures.caught_up_at != at)
        await world.cut()
        await world.origin.close()
        assert world.puller.lag_s is not None
        lag_s = world.puller.lag_s
        await asyncio.sleep(0.01)
        assert world.puller.lag_s > lag_s
    with_world(test, tmp_path)


def test_nothing_is_pulled_while_this_node_does_not_lead(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.mirror.active, world.mirror.halted = False, "the origin has feature level 3"
        world.start()
        await asyncio.sleep(0.05)
        assert world.puller.figures.connections == 0
        assert world.puller.figures.phase is Phase.IDLE
        assert world.puller.figures.problem == "the origin has feature level 3"
        world.mirror.active, world.mirror.halted = True, None
        await world.caught_up()
        world.mirror.active = False
        await world.origin.until(lambda: world.puller.figures.phase is Phase.IDLE)
        await world.origin.talk(b"PUT q 0 1\r\nx")
        assert world.mirror.index < world.origin.cluster.machine.index
        world.mirror.active = True
        await world.caught_up()
    with_world(test, tmp_path)


def test_a_copy_begins_with_a_snapshot_where_the_log_is_gone(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        source = world.origin.cluster.feed
        assert isinstance(source, FakeFeed)
        await world.origin.talk(b"PUT q 0 5\r\nhello")
        source.lost = source.executed + 1
        index = source.executed
        (tmp_path / "replica").mkdir()
        (tmp_path / "replica" / "snapshot-7").write_bytes(b"left by a process that was killed")
        world.start()
        await world.caught_up()
        assert world.mirror.installed == [index]
        await world.origin.talk(b"PUT q 0 5\r\nthere")
        await world.caught_up()
        assert world.mirror.installed == [index]
        assert world.puller.figures.snapshots == 1
        assert not list((tmp_path / "replica").iterdir())
    with_world(test, tmp_path)


def test_a_snapshot_is_fetched_only_when_no_server_has_the_entries(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.add()
        for origin in world.origins:
            origin.cluster.follow("n2")
        short, whole = world.origins[1], world.origin
        assert isinstance(short.cluster.feed, FakeFeed)
        short.cluster.feed.lost = 1000
        for seed in range(4):
            world.mirror = FakeMirror()
            world.puller = Puller(
                world.mirror, OriginSettings((short.address, whole.address), None, None, None), tmp_path / "replica",
                time.monotonic, random.Random(seed))
            world.puller.start()
            await world.caught_up()
            assert world.mirror.installed == []
            await world.puller.stop()
    with_world(test, tmp_path)


@pytest.mark.parametrize(("objection", "why"), [
    (None, "feed.keep_bytes"), ("it is damaged", "it is damaged. The next snapshot is fetched later"),
])
def test_snapshots_in_vain_are_fetched_less_and_less_often_and_said(
    objection: str | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(puller_module, "IN_VAIN_S", 3600.0)

    async def test(world: World) -> None:
        source = world.origin.cluster.feed
        assert isinstance(source, FakeFeed)
        source.lost = 1000                  # also what comes behind the snapshot
        world.mirror.objection = objection
        world.start()
        async with asyncio.timeout(10.0):
            await world.origin.until(lambda: why in world.puller.figures.problem or world.fetched() > 2)
        await asyncio.sleep(0.1)
        assert why in world.puller.figures.problem
        assert world.fetched() == 1
        world.puller._not_before = 0.0
        world.mirror.objection = None
        source.lost = 0
        await world.caught_up()
        await world.origin.until(lambda: world.puller.figures.problem == "" and world.puller._in_vain == 0)
    with_world(test, tmp_path)


def test_a_copy_that_is_too_slow_begins_again_with_a_snapshot(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.start()
        await world.caught_up()
        source = world.origin.cluster.feed
        assert isinstance(source, FakeFeed)
        world.mirror.refuses = True
        await world.origin.talk(b"PUT q 0 5\r\nhello")
        source.lost = source.executed + 1
        world.mirror.refuses = False
        await world.caught_up()
        assert len(world.mirror.installed) == 1
    with_world(test, tmp_path)


class Breaking:
    """A proxy that breaks each connection after this many bytes of answers, until it is switched off."""

    def __init__(self, target: tuple[str, int], bytes_max: int) -> None:
        self._target = target
        self._bytes_max = bytes_max
        self.broken = 0
        self.whole = False
        self._serving = 0
        self.asked: list[bytes] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> tuple[str, int]:
        """Listen on a free port; returns host and port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving += 1
        try:
            await self._pass_on(reader, writer)
        finally:
            self._serving -= 1

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind = await asyncio.open_connection(*self._target)

        async def forward() -> None:
            while data := await reader.read(1 << 16):
                self.asked.append(data)
                behind.write(data)
            behind.transport.abort()        # the client is gone, and a feed has no end of its own

        task = asyncio.ensure_future(forward())
        self._tasks.add(task)
        left = self._bytes_max
        while data := await behind_reader.read(1 << 16):
            if not self.whole and len(data) >= left:
                writer.write(data[:left])
                self.broken += 1
                break
            left -= len(data)
            writer.write(data)
            await writer.drain()
        await asyncio.sleep(0.01)
        task.cancel()
        for each in (behind, writer):
            each.transport.abort()
            with suppress(OSError):
                await each.wait_closed()

    async def close(self) -> None:
        """Stop listening, and wait for the connections."""
        self._server.close()
        await self._server.wait_closed()
        while self._serving:
            await asyncio.sleep(0.01)


def test_a_snapshot_continues_where_its_connection_broke(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        for _ in range(20):
            await world.origin.talk(b"PUT q 0 100000\r\n" + random.Random(2).randbytes(100_000))
        source = world.origin.cluster.feed
        assert isinstance(source, FakeFeed)
        source.lost = source.executed + 1
        proxy = Breaking(world.origin.address, 700_000)
        address = await proxy.start()
        world.puller = Puller(
            world.mirror, OriginSettings((address,), None, None, None), tmp_path / "replica", time.monotonic)
        world.puller.start()
        await world.origin.until(lambda: proxy.broken >= 2)
        await world.caught_up()
        assert len(world.mirror.installed) == 1
        asked = b"".join(proxy.asked)
        assert asked.count(b"CLUSTER FEED SNAPSHOT\r\n") == 1
        assert asked.count(b"CLUSTER FEED SNAPSHOT %d " % world.mirror.installed[0]) >= 2
        await world.puller.stop()
        await proxy.close()
    with_world(test, tmp_path)


def test_another_snapshot_is_fetched_when_the_rest_of_one_is_gone(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        for _ in range(20):
            await world.origin.talk(b"PUT q 0 100000\r\n" + bytes(100_000))
        source = world.origin.cluster.feed
        assert isinstance(source, FakeFeed)
        source.lost = source.executed + 1
        proxy = Breaking(world.origin.address, 500_000)
        address = await proxy.start()
        world.puller = Puller(
            world.mirror, OriginSettings((address,), None, None, None), tmp_path / "replica", time.monotonic)
        world.puller.start()
        await world.origin.until(lambda: proxy.broken >= 1)
        world.origin.hub.feeds.forget(world.origin.hub.feeds.snapshot)
        proxy.whole = True
        await world.caught_up()
        assert b"".join(proxy.asked).count(b"CLUSTER FEED SNAPSHOT\r\n") == 2
        await world.puller.stop()
        await proxy.close()
    with_world(test, tmp_path)


def test_a_server_that_dies_before_the_first_byte_of_its_snapshot_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(puller_module, "RESUMED_S_MAX", 0.2)

    async def test(world: World) -> None:
        source = world.origin.cluster.feed
        assert isinstance(source, FakeFeed)
        source.lost = source.executed + 1
        dying = HeadOnly()
        world.puller = Puller(
            world.mirror, OriginSettings((await dying.start(),), None, None, None), tmp_path / "replica",
            time.monotonic)
        world.puller.start()
        await world.origin.until(lambda: dying.died)
        world.puller._settings = OriginSettings((world.origin.address,), None, None, None)
        await world.caught_up()
        assert len(world.mirror.installed) == 1
    with_world(test, tmp_path)


@pytest.mark.parametrize("leads", [False, True])
def test_the_server_that_has_the_rest_of_a_snapshot_is_asked_first(leads: bool, tmp_path: Path) -> None:
    async def test(world: World) -> None:
        followers = [await world.add(), await world.add(), *([] if leads else [world.origin])]
        for origin in followers:
            origin.cluster.follow("n2")
        servers = tuple(gateway.address for gateway in world.origins)
        for seed in range(6):
            puller = Puller(
                world.mirror, OriginSettings(servers, None, None, None), tmp_path, time.monotonic, random.Random(seed))
            puller._partial = puller_module._Partial(tmp_path / "part", world.origin.address, 9, b"", 0.0)
            async with await puller._connected() as connection:
                assert connection.address == world.origin.address
            await puller.stop()
    with_world(test, tmp_path)


class Whole(random.Random):
    """Makes each pause as long as it may be."""

    def uniform(self, a: float, b: float) -> float:
        """Return the greater one."""
        return b


def test_a_server_that_cannot_be_used_is_asked_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    async def test() -> None:
        settings = OriginSettings((), None, None, None, "replica.ca: no certificate")
        puller = Puller(FakeMirror(), settings, tmp_path, lambda: 0.0, Whole())
        puller.start()
        while len(pauses) < 7:
            await asyncio.sleep(0)
        await puller.stop()

    monkeypatch.setattr(puller_module, "RETRY_S", 0.5)
    monkeypatch.setattr(puller_module, "RETRY_S_MAX", 10.0)
    monkeypatch.setattr(puller_module, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": noted}))
    asyncio.run(test())
    assert pauses[:7] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0]


def test_an_error_in_this_program_is_a_problem_that_operators_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(frames: object) -> bool:
        raise RuntimeError("a bug")

    async def test(world: World) -> None:
        await world.origin.talk(b"PUT q 0 5\r\nhello")
        monkeypatch.setattr(world.mirror, "offer", broken)
        monkeypatch.setattr(puller_module, "RETRY_S", 3600.0)
        world.start()
        await world.origin.until(lambda: world.puller.figures.problem != "")
        assert "which the log of this node has" in world.puller.figures.problem
        assert world.puller.figures.phase is Phase.CONNECTING
    with_world(test, tmp_path)
    assert "RuntimeError: a bug" in caplog.text


def test_a_snapshot_that_the_origin_still_writes_is_being_fetched(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        writing = HeadOnly(silent=True)
        address = await writing.start()
        world.puller = Puller(
            world.mirror, OriginSettings((address,), None, None, None), tmp_path / "replica", time.monotonic)
        figures = world.puller.figures
        world.puller.start()
        await world.origin.until(lambda: figures.phase is Phase.SNAPSHOT)
        assert figures.server == f"{address[0]}:{address[1]}"
        await world.puller.stop()
        writing.close()
        await world.origin.until(lambda: not writing.connections)
    with_world(test, tmp_path)


class HeadOnly:
    """A server of an origin that dies behind the first line of a snapshot, or does not come to send it."""

    def __init__(self, *, silent: bool = False) -> None:
        self.died = False
        self.connections = 0
        self._silent = silent

    async def start(self) -> tuple[str, int]:
        """Listen on a free port; returns host and port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers = {
            b"CLUSTER ID": b"200 OK - -", b"INTERCONNECT": b"200 OK 2", b"CLUSTER LEADER": b"404 No Leader",
            b"CLUSTER FEED SNAPSHOT": b"200 OK 9 ab 100",
        }
        self.connections += 1
        try:
            while not self.died and (line := await reader.readline()):
                if self._silent and line.strip() == b"CLUSTER FEED SNAPSHOT":
                    continue
                writer.write(answers.get(line.strip(), b"409 Too Old") + b"\r\n")
                await writer.drain()
                self.died = line.strip() == b"CLUSTER FEED SNAPSHOT"
        except ConnectionError:
            pass                            # who looked at this server has gone
        finally:
            writer.close()
            self.connections -= 1
            if self.died:
                self.close()

    def close(self) -> None:
        """Listen no longer."""
        self._server.close()


def test_a_follower_is_read_rather_than_the_leader_and_any_server_when_it_fails(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.add()
        world.origin.cluster.follow("n2")
        world.start()
        await world.caught_up()
        assert world.puller.figures.server.endswith(f":{world.origin.address[1]}")
        await world.cut()
        await world.caught_up()
        assert world.puller.figures.server.endswith(f":{world.origin.address[1]}")
    with_world(test, tmp_path)


def test_a_server_that_cannot_be_reached_is_passed_over(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        gone = await world.add()
        await gone.close()
        world.origins.pop()
        servers = (gone.address, world.origin.address)
        world.puller = Puller(
            world.mirror, OriginSettings(servers, None, None, None), tmp_path / "replica", time.monotonic)
        world.puller.start()
        await world.caught_up()
    with_world(test, tmp_path)


def test_a_server_that_is_cut_off_is_left_for_another_with_all_that_it_has(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.origin.talk(b"PUT q 0 5\r\nhello")
        world.origin.cluster.silence_s = 1000.0
        world.start()
        await world.caught_up()
        await world.origin.until(lambda: "has not heard its leader for 1000 s" in world.puller.figures.problem)
        assert world.puller.lag_s is not None
        assert world.puller.lag_s > 900
        world.origin.cluster.silence_s = 0.0
        await world.origin.until(lambda: (world.puller.lag_s or 1000) < 900)
    with_world(test, tmp_path)


def test_a_copy_of_another_log_is_told_apart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test(world: World) -> None:
        source = world.origin.cluster.feed
        assert isinstance(source, FakeFeed)
        source.hashes[1] = b"a" * 16
        world.mirror.index, world.mirror.checkpoint = 1, (1, b"b" * 16)
        world.start()
        await world.origin.until(lambda: "differs from 127.0.0.1" in world.puller.figures.problem)
        assert world.mirror.offers == []
        assert "at entry 1" in world.puller.figures.problem
    with_world(test, tmp_path)
    assert caplog.text.count("this replica does not follow its origin") == 1


def test_a_server_of_another_cluster_is_told_apart_before_anything_is_taken(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.mirror.origin = b"another cluster!"
        world.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(5.0):
                await world.origin.until(lambda: world.puller.figures.problem != "" or world.mirror.offers != [])
        assert "is a server of the cluster " in world.puller.figures.problem
        assert "a copy of 616e6f7468657220" in world.puller.figures.problem
        assert world.mirror.offers == []
        world.mirror.origin = world.origin.cluster.machine.cluster_id
        await world.caught_up()
    with_world(test, tmp_path)


def test_a_hash_that_differs_on_the_way_ends_following(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        source = world.origin.cluster.feed
        assert isinstance(source, FakeFeed)
        world.start()
        await world.caught_up()
        await world.origin.talk(b"PUT q 0 1\r\nx")
        await world.caught_up()
        world.mirror.checkpoint = (3, b"b" * 16)
        source.hashes[3] = b"a" * 16
        await world.origin.talk(b"PUT q 0 1\r\nx")
        await world.origin.until(lambda: "at entry 3" in world.puller.figures.problem)
    with_world(test, tmp_path)


def test_a_user_logs_in_with_the_secret_of_a_file(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        secret_file = tmp_path / "secret"
        settings = OriginSettings((world.origin.address,), "copy", secret_file, None)
        world.puller = Puller(world.mirror, settings, tmp_path / "replica", time.monotonic)
        world.puller.start()
        await world.origin.until(lambda: "replica.secret_file cannot be read" in world.puller.figures.problem)
        secret_file.write_text("two words\n")
        await world.origin.until(lambda: "holds no secret" in world.puller.figures.problem)
        secret_file.write_text("wrong\n")
        await world.origin.until(lambda: "refuses the user copy: 403 Forbidden" in world.puller.figures.problem)
    with_world(test, tmp_path)


@pytest.mark.parametrize(("answer", "words"), [
    (b"403 Forbidden\r\n", "give replica.user the right admin"),
    (b"500 Offline Mode\r\n", "is a copy itself"),
    (b"503 Busy\r\n", "answered CLUSTER FEED with 503 Busy"),
])
def test_a_refused_feed_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, words: str,
) -> None:
    async def test(world: World) -> None:
        monkeypatch.setattr(feed_command, "_refusal", lambda *_: answer)
        world.start()
        await world.origin.until(lambda: words in world.puller.figures.problem)
    with_world(test, tmp_path)


def test_a_refused_connection_is_said_in_words() -> None:
    async def test() -> None:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))           # and does not listen
            address = nobody.getsockname()
            with pytest.raises(OriginError, match=r"^no connection \(connection refused\)$"):
                await OriginConnection.connect(address, OriginSettings((address,), None, None, None))
    asyncio.run(test())


def test_a_server_whose_host_vanishes_is_noticed_by_the_kernel(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        settings = OriginSettings((world.origin.address,), None, None, None)
        async with await OriginConnection.connect(world.origin.address, settings) as origin:
            connected = origin._writer.get_extra_info("socket")
            assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
    with_world(test, tmp_path)


def test_settings_that_cannot_be_used_are_the_problem_of_a_replica(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        settings = OriginSettings((world.origin.address,), None, None, None, "replica.ca: no certificate")
        world.puller = Puller(world.mirror, settings, tmp_path / "replica", time.monotonic)
        world.puller.start()
        await world.origin.until(lambda: "replica.ca: no certificate" in world.puller.figures.problem)
        assert world.puller.figures.connections == 0
    with_world(test, tmp_path)


def test_the_feed_is_read_over_tls_from_servers_of_the_right_authority(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        address = await world.origin.server.start("127.0.0.1", 0, context=server_tls())
        wrong = ssl.create_default_context(cadata=trustme.CA().cert_pem.bytes().decode())
        world.puller = Puller(
            world.mirror, OriginSettings((address,), None, None, wrong), tmp_path / "replica", time.monotonic)
        world.puller.start()
        await world.origin.until(lambda: "its certificate is not accepted: " in world.puller.figures.problem)
        assert "compare replica.ca" in world.puller.figures.problem
        await world.puller.stop()
        right = ssl.create_default_context(cafile=ca_file(tmp_path))
        world.puller = Puller(
            world.mirror, OriginSettings((address,), None, None, right), tmp_path / "replica", time.monotonic)
        world.puller.start()
        await world.caught_up()
    with_world(test, tmp_path)


def test_an_origin_without_tls_is_named_as_that(tmp_path: Path) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"400 Bad Request\r\n")
        with suppress(OSError):
            await reader.read()
        writer.close()

    async def test(world: World) -> None:
        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
            address = server.sockets[0].getsockname()
            settings = OriginSettings((address,), None, None, ssl.create_default_context(cafile=ca_file(tmp_path)))
            with pytest.raises(OriginError, match=r"^no TLS with it \(.*\): replica.of needs ports"):
                await OriginConnection.connect(address, settings)
    with_world(test, tmp_path)


@pytest.mark.parametrize("answer", [b"", b"500 Broken\r\n"], ids=["none, as it ends", "a bad one"])
def test_a_connection_ends_when_its_server_cannot_be_asked_who_leads(tmp_path: Path, answer: bytes) -> None:
    """What is not closed stays: the loop watches its socket as long as the process runs."""
    asked, ended = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while line := await reader.readline():
                writer.write({b"CLUSTER ID\r\n": b"200 OK -\r\n", b"INTERCONNECT\r\n": answer}.get(line, answer))
                if line == b"INTERCONNECT\r\n":
                    asked.set()
        ended.set()
        writer.close()

    async def test(world: World) -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            settings = OriginSettings((server.sockets[0].getsockname(),), None, None, None)
            world.puller = Puller(world.mirror, settings, tmp_path / "replica", time.monotonic)
            world.puller.start()
            await asyncio.wait_for(asked.wait(), 60)
            if not answer:
                await world.puller.stop()
            await asyncio.wait_for(ended.wait(), 60)
    with_world(test, tmp_path)
