"""Lines, bodies, and errors in them."""

from __future__ import annotations

import pytest

from tests.beanstalk.helpers.transcript import World

BARE = ("reserve", "peek-ready", "peek-delayed", "peek-buried", "stats", "list-tubes", "list-tube-used",
        "list-tubes-watched")


@pytest.mark.parametrize("line", [
    "nothing", "PUT 0 0 1 1", "", "put", "delete", "kick", "use", " use a", "statistics", "quie",
])
def test_an_unknown_command(line: str) -> None:
    World().play(f"a > {line}\na < UNKNOWN_COMMAND\na > list-tube-used\na < USING default")


@pytest.mark.parametrize("line", [
    *(f"{verb} 1" for verb in BARE), *(f"{verb} " for verb in BARE), "reserved", "statsx", "list-tubes-watchedx",
    "stats-tube", "peek-readyx",
])
def test_a_verb_is_known_by_its_beginning(line: str) -> None:
    World().play(f"a > {line}\na < BAD_FORMAT\na > list-tube-used\na < USING default")


@pytest.mark.parametrize("verb", ["delete", "touch", "peek", "kick-job", "stats-job", "reserve-job", "release", "bury"])
@pytest.mark.parametrize("number", ["x", "-1", "", "1x", "18446744073709551616", "+1", "0x1", "\t1"])
def test_an_id_must_be_a_number(verb: str, number: str) -> None:
    tail = {"release": " 0 0", "bury": " 0"}.get(verb, "")
    World().play(f"""
        a > {verb} {number}{tail}
        a < BAD_FORMAT
        a > {verb} 18446744073709551615{tail}
        a < NOT_FOUND
    """)


@pytest.mark.parametrize("line", [
    "put a 0 1 1", "put -1 0 1 1", "put 4294967296 0 1 1", "put 0 -1 1 1", "put 0 4294967296 1 1", "put 0 0 -1 1",
    "put 0 0 4294967296 1", "put 0 0 1 -1", "put 0 0 1", "put 0 0 1 1 1", "put 0 0 1 1x", "put 0 0 60 4294967296",
    "reserve-with-timeout x", "reserve-with-timeout -1", "reserve-with-timeout ", "reserve-with-timeout 2147483648",
    "release 1", "release 1 0", "release 1 x 0", "release 1 0 0 0", "release 1 0 4294967296", "bury 1", "bury 1 0 0",
    "kick x", "kick ", "kick 18446744073709551616", "pause-tube", "pause-tube default", "pause-tube default x",
    "pause-tube default 1 1", "pause-tube -a 1", "pause-tube default 4294967296", "use a\\0b",
    f"pause-tube {'x' * 201} 1", "use", "put 0 0 1 " + "1" * 100,
])
def test_a_bad_format(line: str) -> None:
    answer = "UNKNOWN_COMMAND" if line == "use" else "BAD_FORMAT"
    World().play(f"a > {line}\na < {answer}\na > list-tube-used\na < USING default")


@pytest.mark.parametrize("verb", ["use", "watch", "ignore", "stats-tube"])
@pytest.mark.parametrize("name", ["-a", "a b", "a:b", "a@b", "a*", "a|b", "x" * 201, "", "\xe9", "a\tb", "a\\nb"])
def test_a_bad_name(verb: str, name: str) -> None:
    World().play(f"a > {verb} {name}\na < BAD_FORMAT")


@pytest.mark.parametrize("name", ["a+/;.$_()-", "(a)", "$a", ".a", "+a", "_a", ";a", "/a", "0", "x" * 200])
def test_a_name(name: str) -> None:
    World().play(f"""
        a > use {name}
        a < USING {name}
        a > watch {name}
        a < WATCHING 2
        a > pause-tube {name} 0
        a < PAUSED
    """)


def test_the_longest_line_is_a_command_and_one_byte_more_is_not() -> None:
    name = "x" * 200
    World().play(f"""
        a > use {name}
        a < USING {name}
        a > pause-tube {name} 4294967295
        a < PAUSED
        a > pause-tube {name}  4294967295
        a < BAD_FORMAT
    """)


def test_a_line_that_is_too_long_is_answered_once_at_its_end() -> None:
    piece = "a" * 100
    world = World()
    world.play(f"a > {piece}\\\n" * 5)
    world.play("a > \na < BAD_FORMAT\na > list-tube-used\na < USING default")
    world.play(f"a > {'x' * 223}\\r\\\na > \\n\\\na < BAD_FORMAT\na > use a\na < USING a")


def test_lf_alone_does_not_end_a_line() -> None:
    World().play("a > list-tube-used\\n\\\na > x\na < BAD_FORMAT")


def test_any_spaces_before_a_number() -> None:
    World().play("""
        a > put  0   0 60  1
        a > x
        a < INSERTED 1
        a > delete    1
        a < DELETED
        a > pause-tubedefault 1
        a < PAUSED
        a > kick \t-0 and more
        a < KICKED 0
        a > reserve-with-timeout 0 and more
        a < TIMED_OUT
    """)


def test_bytes_one_by_one() -> None:
    world = World()
    client = world.client("a")
    for byte in b"put 0 0 60 3\r\na\r\n\r\nuse b\r\n":
        client.conversation.receive(bytes([byte]))
    world.play("a < INSERTED 1\na < USING b")


def test_a_body_may_have_any_bytes() -> None:
    world = World()
    body = bytes(range(256)) + b"\r\nput 0 0 0 1\r\n"
    world.client("a").conversation.receive(b"put 0 0 9 %d\r\n%b\r\nreserve\r\n" % (len(body), body))
    world.client("a").expect(b"INSERTED 1\r\nRESERVED 1 %d\r\n%b\r\n" % (len(body), body))


def test_a_body_without_its_end_is_dropped_with_two_bytes_more() -> None:
    World().play("""
        a > put 0 0 1 3
        a > abcde\\
        a < EXPECTED_CRLF
        a > peek-ready
        a < NOT_FOUND
    """)


def test_a_body_that_is_too_big_is_dropped() -> None:
    world = World(body_bytes_max=10)
    world.play("""
        a > put 0 0 60 11
        a > 12345678901
        a < JOB_TOO_BIG
        a > put 0 0 60 10
        a > 1234567890
        a < INSERTED 1
        a > put 0 0 60 100 and more
        a > 12345678901\\
    """)
    world.client("a").conversation.receive(b"x" * 89)
    world.play("a > \na < JOB_TOO_BIG\na > list-tube-used\na < USING default")


def test_a_put_whose_body_does_not_come_is_none() -> None:
    World().play("""
        a > put 0 0 60 10
        a > abc
        a .
        a x
        b > peek-ready
        b < NOT_FOUND
    """)


def test_quit_closes_and_what_follows_is_not_executed() -> None:
    World().play("""
        a > put 0 0 1 0\\r\\n\\r\\nquitting\\r\\nput 0 0 1 0\\r\\n
        a < INSERTED 1
        a x
        b > kick 1
        b < KICKED 0
        b > peek 2
        b < NOT_FOUND
    """)


def test_much_unread_input_is_full_but_a_body_is_not() -> None:
    world = World(body_bytes_max=1 << 20)
    reader = world.client("a").conversation.reader
    world.client("a").conversation.receive(b"put 0 0 60 1000000\r\n" + b"x" * 900_000)
    assert not reader.full
    world.client("b").conversation.receive(b"reserve\r\n" + b"use a\r\n" * 60_000)
    assert world.client("b").conversation.reader.full


HEADERS = b"Host: 127.0.0.1:11300\r\nContent-Length: 99\r\n\r\n"
LONG = b"/" + b"x" * 1000


@pytest.mark.parametrize("data", [
    b"POST / HTTP/1.1\r\n", b"GET /a?b HTTP/1.0\r\n", b"POST %b HTTP/1.1\r\n" % LONG, b"put / HTTP/1.1\r\n",
    b"list-tubes\r\nHost: a\r\n", b"host:a\r\n", b"list-tubes\r\nHost: %b\r\n" % LONG, b"POST / HTTP/1.1\r\n" + HEADERS,
    b"\r\nPOST / HTTP/1.1\r\n", b"\r\n \r\n\r\nGET %b HTTP/1.1\r\n" % LONG, b"\x16\x03\x01\x02\x00\x01" + bytes(500),
    b"\r\n\x16\x03\x03\r\n",
])
@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_a_web_page_is_no_client(data: bytes, piece: int) -> None:
    world = World()
    client = world.client("a")
    data += b"put 0 0 60 1\r\nx\r\n"
    for start in range(0, len(data), piece):
        client.conversation.receive(data[start : start + piece])
        client.take_turns()
    assert client.closed
    assert client.got.endswith(b"UNKNOWN_COMMAND\r\n")
    assert not world.queue.jobs


def test_lines_that_only_look_like_it() -> None:
    world = World()
    client = world.client("a")
    body = b"POST / HTTP/1.1\r\nHost: a\r\n"
    client.conversation.receive(
        b"put 0 0 60 %d\r\n%b\r\nPOST / HTTP/1.1\r\nx Host: a\r\n" % (len(body), body))
    assert client.got == b"INSERTED 1\r\nUNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\n"
    assert not client.closed
