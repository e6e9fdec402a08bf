"""Records without data: they are counted, wherever the input is cut, and OpenSSL gets only a few at once."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.authority import Authority
from sockpqd.cluster import Handshakes, TlsTransport
from sockpqd.cluster.wire.tls_records import EMPTY_MAX, PORTION_RECORDS, TlsRecords
from tests.key_updates import KeyUpdater

FLOOD = 2000


def record(size: int) -> bytes:
    return b"\x17\x03\x03" + size.to_bytes(2, "big") + bytes(size)


def test_records_are_counted_however_they_are_cut() -> None:
    chance = random.Random(7)
    sizes = chance.choices((0, 1, 22, 300, 16_640), k=400)
    for most, among in ((1, 40), (3, 40), (7, 100), (1000, 400), (70_000, 400), (1 << 30, 400)):
        stream = b"".join(map(record, sizes[:among]))
        records, joined, count, at = TlsRecords(), bytearray(), 0, 0
        while at < len(stream):
            size = chance.randint(1, min(most, len(stream)))
            for portion, ended in records.portions(stream[at:at + size]):
                assert ended <= PORTION_RECORDS
                joined += portion
                count += ended
            at += size
        assert joined == stream
        assert count == among, most


def test_what_has_come_of_an_incomplete_record_is_known() -> None:
    records, stream, at = TlsRecords(), record(300) + record(0) + record(1), 0
    for end, held in ((3, 3), (5, 5), (200, 200), (305, 0), (310, 0), (311, 1), (315, 5), (316, 0)):
        records.portions(stream[at:end])
        assert records.incomplete_bytes == held, end
        at = end


def test_rekeying_now_and_then_is_no_flood_and_data_pays_for_little() -> None:
    records = TlsRecords()
    assert not any(records.too_many_empty(1, 0) or records.too_many_empty(1000, 1000) for _ in range(1000))
    assert sum(not records.too_many_empty(1, 0) for _ in range(1000)) == EMPTY_MAX, "what was paid is no credit"
    mixed = TlsRecords()
    assert any(mixed.too_many_empty(2, 1) for _ in range(100)), "every second one"


class Below(asyncio.Transport):
    """A TCP connection that keeps what is sent."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.sent = bytearray()
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def take(self) -> bytes:
        sent = bytes(self.sent)
        self.sent.clear()
        return sent

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class App(asyncio.Protocol):
    """The protocol above TLS, which keeps what it receives."""

    def __init__(self) -> None:
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data


@pytest.fixture
def client() -> Iterator[KeyUpdater]:
    updater = KeyUpdater()
    yield updater
    updater.close()


@pytest.fixture
def context(tmp_path: Path) -> ssl.SSLContext:
    files = Authority(tmp_path).node("n1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["cert"], files["key"])
    context.num_tickets = 0         # type: ignore[attr-defined, unused-ignore]
    return context


def test_a_flood_of_key_updates_ends_the_connection_after_few(client: KeyUpdater, context: ssl.SSLContext) -> None:
    run(client, context, with_handshake=False)


def test_a_flood_behind_the_handshake_does(client: KeyUpdater, context: ssl.SSLContext) -> None:
    run(client, context, with_handshake=True)


def run(client: KeyUpdater, context: ssl.SSLContext, *, with_handshake: bool) -> None:
    """Send the flood at once, in the same piece as the end of the handshake or after some data."""
    async def flood() -> None:
        refused: list[str] = []
        app, below = App(), Below()
        tls = TlsTransport(context, app, Handshakes(10, 10, lambda _, why: refused.append(why)), server_side=True)
        tls.connection_made(below)
        _, data = client.handshake()
        tls.data_received(data)
        await asyncio.sleep(0)
        complete, last = client.handshake(below.take())
        assert complete
        if with_handshake:
            tls.data_received(last + client.updates(FLOOD))
        else:
            tls.data_received(last)
            await asyncio.sleep(0)
            tls.data_received(client.write(b"PING\r\n") + client.updates(2) + client.write(b"PING\r\n"))
            assert app.received == b"PING\r\nPING\r\n"
            below.take()
            tls.data_received(client.updates(FLOOD))
        for _ in range(10):
            await asyncio.sleep(0)
        assert below.closed
        assert refused == ["it sends too many TLS records without data"]
        answered = below.take().count(b"\x17\x03\x03")
        assert answered <= EMPTY_MAX + 2 * PORTION_RECORDS, "OpenSSL was given no more"
        tls.connection_lost(None)
    asyncio.run(flood())
