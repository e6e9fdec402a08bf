"""The effects of toxiproxy's toxics on connections between a client and a server that do nothing by themselves."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Iterator

import pytest

from tests.chaos.proxies.proxies import BOTH, FRO, TO, Link, Proxies
from tests.chaos.proxies.toxiproxy_api import ToxiproxyError

pytestmark = pytest.mark.usefixtures("toxiproxy_server")

PATIENCE_S = 10.0
NOTHING_S = 0.4         # so long nothing must come
OPEN, FIN, RST = "open", "FIN", "RST"


class Wire:
    """A link with a listener behind it."""

    def __init__(self, proxies: Proxies, name: str) -> None:
        self._sockets = contextlib.ExitStack()
        self._listener = self._sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._listener.settimeout(PATIENCE_S)
        host, port = self._listener.getsockname()
        self.link = proxies.create(name, f"{host}:{port}")

    def dial(self) -> tuple[socket.socket, socket.socket]:
        """Return the two ends of a new connection: dialing, listening."""
        host, port = self.link.address.split(":")
        near = self._sockets.enter_context(socket.create_connection((host, int(port)), PATIENCE_S))
        far = self._sockets.enter_context(self._listener.accept()[0])
        return near, far

    def close(self) -> None:
        """Close everything."""
        self._sockets.close()


@pytest.fixture(scope="module")
def proxies(toxiproxy_server: None) -> Iterator[Proxies]:
    with Proxies() as proxies:
        yield proxies


@pytest.fixture
def wire(proxies: Proxies, request: pytest.FixtureRequest) -> Iterator[Wire]:
    wire = Wire(proxies, request.node.name)
    yield wire
    wire.close()
    proxies.remove_all()


def hears(end: socket.socket, patience: float = PATIENCE_S) -> bytes | str:
    """Return the next data, or what else happens in this time."""
    end.settimeout(patience)
    try:
        return end.recv(1 << 20) or FIN
    except TimeoutError:
        return OPEN
    except ConnectionResetError:
        return RST


def hears_nothing(*ends: socket.socket) -> bool:
    return all(hears(end, NOTHING_S) == OPEN for end in ends)


def passes(near: socket.socket, far: socket.socket) -> bool:
    near.sendall(b"ping")
    there = hears(far)
    far.sendall(b"pong")
    return (there, hears(near)) == (b"ping", b"pong")


def test_a_healthy_link_passes_everything_and_counts(wire: Wire) -> None:
    assert passes(*wire.dial())
    assert passes(*wire.dial())
    assert wire.link.accepted == 2
    assert wire.link.connections == 2


def test_cut_ends_connections_and_refuses_new_ones_until_healed(wire: Wire) -> None:
    near, far = wire.dial()
    wire.link.cut()
    assert (hears(near), hears(far)) == (FIN, FIN)
    assert wire.link.connections == 0
    with pytest.raises(ConnectionRefusedError):
        wire.dial()
    wire.link.heal()
    assert passes(*wire.dial())


def test_silence_is_a_black_hole_and_what_was_sent_arrives_later(wire: Wire) -> None:
    near, far = wire.dial()
    wire.link.silence()
    later_near, later_far = wire.dial()         # is made all the same
    dead_near, dead_far = wire.dial()
    near.sendall(b"to")
    far.sendall(b"fro")
    later_near.sendall(b"later")
    dead_near.sendall(b"last words")
    time.sleep(0.1)
    dead_near.close()
    assert hears_nothing(near, far, later_near, later_far, dead_far)
    wire.link.heal()
    assert (hears(far), hears(near), hears(later_far)) == (b"to", b"fro", b"later")
    assert (hears(dead_far), hears(dead_far)) == (b"last words", FIN)
    assert passes(near, far)
    assert passes(later_near, later_far)


def test_silence_lets_the_end_of_a_connection_without_data_pass(wire: Wire) -> None:
    wire.link.silence()
    near, far = wire.dial()
    near.close()
    assert hears(far) == FIN


def test_silence_keeps_megabytes_in_order(wire: Wire) -> None:
    near, far = wire.dial()
    wire.link.silence(TO)
    near.settimeout(0.3)
    data, sent = bytes(itertools.islice(itertools.cycle(range(251)), 251 << 8)), 0
    with contextlib.suppress(TimeoutError):
        while True:
            sent += near.send(data[sent % 251:][:1 << 15])
    assert sent > 1 << 18
    wire.link.heal()
    received = 0
    while received < sent:
        piece = hears(far)
        assert isinstance(piece, bytes), piece
        assert piece == (data * (1 + len(piece) // len(data) + 1))[received % 251:][:len(piece)]
        received += len(piece)


def test_silence_ends_at_once_also_for_connections_whose_ends_have_gone(wire: Wire) -> None:
    near, far = wire.dial()
    wire.link.silence()
    for _ in range(3):
        dead_near, dead_far = wire.dial()
        for number in range(5):                 # several pieces
            dead_near.sendall(b"%d" % number)
            time.sleep(0.01)
        dead_far.close()
        dead_near.close()
    near.sendall(b"alive")
    for _ in range(2):
        wire.link.heal()
        assert hears(far, 2.5) == b"alive"
        assert passes(*wire.dial())
        wire.link.silence(TO)
        near.sendall(b"alive")
        assert hears_nothing(far)
    wire.link.heal()
    assert hears(far, 2.5) == b"alive"


@pytest.mark.parametrize("way", BOTH)
def test_silence_may_be_one_way(wire: Wire, way: str) -> None:
    near, far = wire.dial()
    wire.link.silence(way)
    near.sendall(b"to")
    far.sendall(b"fro")
    if way == TO:
        assert hears(near) == b"fro"
        assert hears_nothing(far)
    else:
        assert hears(far) == b"to"
        assert hears_nothing(near)


def test_what_is_sent_into_a_lossy_silence_is_gone_and_healing_ends_connections(wire: Wire) -> None:
    near, far = wire.dial()
    idle_near, idle_far = wire.dial()
    wire.link.silence(lost=True)
    dead_near, dead_far = wire.dial()
    near.sendall(b"to")
    far.sendall(b"fro")
    dead_near.sendall(b"last words")
    assert hears_nothing(near, far, idle_near, idle_far)
    dead_near.close()
    assert hears(dead_far) == FIN
    wire.link.heal()
    assert [hears(end) for end in (near, far, idle_near, idle_far)] == [FIN] * 4
    assert passes(*wire.dial())


def test_reset_is_orderly_for_old_connections_and_abrupt_for_new_ones(wire: Wire) -> None:
    old_near, old_far = wire.dial()
    wire.link.reset()
    new_near, new_far = wire.dial()
    assert hears_nothing(old_near, new_near)    # as long as nothing is sent
    old_near.sendall(b"x")
    new_near.sendall(b"x")
    assert (hears(old_near), hears(old_far)) == (FIN, FIN)
    assert (hears(new_near), hears(new_far)) == (RST, RST)
    wire.link.heal()
    assert passes(*wire.dial())


@pytest.mark.parametrize(("size", "arrives"), [(0, b""), (3, b"abc")])
def test_limit_ends_a_connection_in_the_middle(wire: Wire, size: int, arrives: bytes) -> None:
    old = wire.dial()
    wire.link.limit(size, TO)
    for near, far in (old, wire.dial()):
        far.sendall(b"fro")
        assert hears(near) == b"fro"
        near.sendall(b"abcdef")
        if arrives:
            assert hears(far) == arrives
        assert (hears(far), hears(near)) == (FIN, FIN)


def test_slow_close_tells_late_and_healing_tells_at_once(wire: Wire) -> None:
    wire.link.slow_close(700)
    near, far = wire.dial()
    started = time.monotonic()
    far.sendall(b"bye")
    far.close()
    assert (hears(near), hears(near)) == (b"bye", FIN)
    assert time.monotonic() - started > 0.6
    wire.link.heal()
    wire.link.slow_close(3_600_000)
    near, far = wire.dial()
    far.close()
    assert hears_nothing(near)
    wire.link.heal()
    assert hears(near) == FIN


@pytest.mark.parametrize("way", BOTH)
def test_half_open_tells_one_side_only(wire: Wire, way: str) -> None:
    near, far = wire.dial()
    wire.link.half_open(way)
    sender, receiver = (near, far) if way == TO else (far, near)
    sender.sendall(b"x")
    assert hears(receiver) == FIN
    receiver.close()
    sender.sendall(b"still there?")
    assert hears_nothing(sender)
    wire.link.heal()
    assert hears(sender) in (FIN, RST)
    assert passes(*wire.dial())


def test_delay_holds_each_way_and_loses_nothing_when_it_ends(wire: Wire) -> None:
    near, far = wire.dial()
    wire.link.delay(200)
    started = time.monotonic()
    assert passes(near, far)
    assert time.monotonic() - started > 0.39
    near.sendall(b"on its way")
    wire.link.heal()
    assert hears(far) == b"on its way"


def test_throttle_and_slice(wire: Wire) -> None:
    near, far = wire.dial()
    wire.link.throttle(50)
    started = time.monotonic()
    near.sendall(bytes(20_000))
    assert receive(far, 20_000)
    assert time.monotonic() - started > 0.3
    wire.link.heal()
    wire.link.slice(10, 0, 2000)
    near.sendall(bytes(100))
    pieces = receive(far, 100)
    assert len(pieces) > 5
    assert max(pieces) <= 20


def receive(end: socket.socket, size: int) -> list[int]:
    pieces: list[int] = []
    while sum(pieces) < size:
        pieces.append(len(end.recv(1 << 16)))
    return pieces


def test_several_toxics_at_once_are_healed(wire: Wire) -> None:
    near, far = wire.dial()
    wire.link.delay(30, 10)
    wire.link.silence()
    for number in range(100):
        near.sendall(b"%03d" % number)
        time.sleep(0.002)
    wire.link.heal()
    received = b""
    while len(received) < 300:
        piece = hears(far)
        assert isinstance(piece, bytes)
        received += piece
    assert received == b"".join(b"%03d" % number for number in range(100))


def test_a_receiver_that_does_not_read_cannot_keep_a_link_from_being_changed(wire: Wire) -> None:
    near, _ = wire.dial()
    near.settimeout(0.3)
    with contextlib.suppress(TimeoutError):
        while True:
            near.send(bytes(1 << 16))
    wire.link.delay(1)                          # takes a while, and the connection
    wire.link.heal()
    assert passes(*wire.dial())


def test_healing_goes_back_to_an_earlier_condition(wire: Wire) -> None:
    wire.link.delay(150)
    slow = wire.link.condition
    wire.link.silence()
    wire.link.cut()
    wire.link.heal(slow)
    assert wire.link.condition == slow
    started = time.monotonic()
    assert passes(*wire.dial())
    assert time.monotonic() - started > 0.29
    wire.link.heal()
    assert not wire.link.condition


def test_the_same_toxic_twice_is_a_mistake(wire: Wire) -> None:
    wire.link.silence(TO)
    with pytest.raises(ValueError, match="silence_upstream"):
        wire.link.silence()


def test_many_links_are_changed_together_and_an_error_is_told(proxies: Proxies) -> None:
    wires = [Wire(proxies, f"many{number}") for number in range(8)]
    try:
        links = [wire.link for wire in wires]
        ends = [end for wire in wires for end in wire.dial()]
        proxies.together(links, Link.silence)
        for near in ends[::2]:
            near.sendall(b"x")
        assert all(hears(far, 0.02) == OPEN for far in ends[1::2])
        proxies.together(links, Link.heal)
        assert [hears(far) for far in ends[1::2]] == [b"x"] * 8
        with pytest.raises(ToxiproxyError, match="invalid toxic type"):
            proxies.together(links, lambda link: link.add("nonsense", TO))
    finally:
        for wire in wires:
            wire.close()
        proxies.remove_all()


def test_two_servers_in_one_process_do_not_know_of_each_other(proxies: Proxies, wire: Wire) -> None:
    with Proxies() as others:
        other = Wire(others, wire.link.name)
        try:
            other.link.cut()
            assert passes(*wire.dial())
            wire.link.silence(FRO)
            other.link.heal()
            assert passes(*other.dial())
        finally:
            other.close()
