"""The bytes of each command, and arguments that are refused before anything is sent."""

from __future__ import annotations

import math
import re
import string
from enum import Enum
from typing import Any

import pytest
from sockpq import BadArguments, DataTooLarge, Number, Place
from sockpq._protocol import arguments
from sockpq._protocol.addresses import parse_server, parse_servers
from sockpq._protocol.command import Command, Repeat
from sockpq._protocol.commands import cluster, jobs, queues


class Queue(str, Enum):     # noqa: UP042 - unlike StrEnum it is written with the name of its class
    MAIL = "mail"


class Priority(int, Enum):
    HIGH = 5


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (jobs.put("mail", b"hi"), b"PUT mail 0 2\r\n"),
        (jobs.put("mail", b"", -7, item="order_1"), b"PUT mail -7 0 IS order_1\r\n"),
        (jobs.put("NEW", bytearray(b"abc"), 5, new_item=True), b"PUT NEW 5 3 NEW\r\n"),
        (jobs.remote_call("in", b"x", "out"), b"PUT in 0 1 NEW WAIT out\r\n"),
        (jobs.remote_call("in", b"x", "WAIT", item="NEW", expire=1.5, then="done"),
         b"PUT in 0 1 IS NEW WAIT WAIT EXPIRE 1.500 THEN DONE\r\n"),
        (jobs.put(Queue.MAIL, b"", Priority.HIGH, item=Queue.MAIL), b"PUT mail 5 0 IS mail\r\n"),
        (jobs.get(Queue.MAIL), b"GET mail\r\n"),
        (queues.total(Queue.MAIL), b"TOTAL mail\r\n"),
        (jobs.get(), b"GET\r\n"),
        (jobs.get("EXPIRE"), b"GET EXPIRE\r\n"),
        (jobs.get(expire=5), b"GET EXPIRE 5\r\n"),
        (jobs.get("EXPIRE", expire=5), b"GET EXPIRE EXPIRE 5\r\n"),
        (jobs.get(["a", "b", "a"], block=True), b"GETB a|b\r\n"),
        (jobs.get("a", block="until_done", expire=0.0001, then="later"), b"GETBE a EXPIRE 0.001 THEN LATER\r\n"),
        (jobs.get("a", expire=0), b"GET a EXPIRE 0\r\n"),
        (jobs.get("a", expire=0.07), b"GET a EXPIRE 0.070\r\n"),
        (jobs.done(2**64 - 1), b"DONE 18446744073709551615\r\n"),
        (jobs.later(0), b"LATER 0\r\n"),
        (queues.total(), b"TOTAL\r\n"),
        (queues.total("celery@host.pidbox:1"), b"TOTAL celery@host.pidbox:1\r\n"),
        (queues.queues(), b"QUEUE LIST\r\n"),
        (queues.queues("mail."), b"QUEUE LIST mail.*\r\n"),
        (jobs.put("q", b"a", number=True, lease=60), b"PUT q 0 1 NUMBER LEASE 60\r\n"),
        (jobs.put("q", b"a", delay=5, lease=0), b"PUT q 0 1 DELAY 5 LEASE 0\r\n"),
        (jobs.get_number(17, 30, "dead", meta=True), b"GET NUMBER 17 EXPIRE 30 THEN DEAD META\r\n"),
        (jobs.get_number(Number(17)), b"GET NUMBER 17\r\n"),
        (jobs.bury(5, "full", here=True, priority=-3), b"BURY 5 HERE PRI -3 REASON full\r\n"),
        (jobs.kick("q", 9, here=True), b"KICK q 9 HERE\r\n"),
        (jobs.kick_job(Number(17)), b"KICK JOB NUMBER 17\r\n"),
        (jobs.kick_job(Place("mail_dead", 17)), b"KICK JOB SEQ mail_dead 17\r\n"),
        (jobs.job_stat(17), b"JOB STAT NUMBER 17\r\n"),
        (jobs.delete(Number(17)), b"DELETE NUMBER 17\r\n"),
        (jobs.delete(Number(17), untaken=True), b"DELETE NUMBER 17 UNTAKEN\r\n"),
        (jobs.change(Number(17), priority=3), b"CHANGE NUMBER 17 PRI 3\r\n"),
        (jobs.peek(Number(17)), b"PEEK NUMBER 17\r\n"),
        (jobs.peek_queue("q", "buried"), b"PEEK q BURIED COUNT 1\r\n"),
        (jobs.get(["a", "b"], policy="place"), b"GET a|b BY PLACE\r\n"),
        (queues.queue_purge("q", "buried"), b"QUEUE PURGE q BURIED\r\n"),
        (queues.queue_pause("q", "out", seconds=2.5), b"QUEUE PAUSE q OUT FOR 2.500\r\n"),
        (queues.total("Default/a+b;$(x)"), b"TOTAL Default/a+b;$(x)\r\n"),
        (queues.running(), b"RUNLIST\r\n"),
        (queues.running(True), b"RUNLIST DATA\r\n"),
        (queues.clone(memoryview(b"abc")), b"CLONE 3\r\n"),
        (cluster.cluster_add("n4", "10.0.0.4:11362", "host-4.example:011361"),
         b"CLUSTER ADD n4 10.0.0.4 11362 host-4.example 11361\r\n"),
        (cluster.cluster_add("n-4_b.c", "[::1]:1", "[2001:db8::5]:65535"),
         b"CLUSTER ADD n-4_b.c ::1 1 2001:db8::5 65535\r\n"),
        (cluster.cluster_remove("n4"), b"CLUSTER REMOVE n4\r\n"),
        (cluster.cluster_transfer(), b"CLUSTER TRANSFER\r\n"),
        (cluster.cluster_transfer("n4"), b"CLUSTER TRANSFER n4\r\n"),
    ],
)
def test_a_command_is_written_as_the_protocol_has_it(command: Command[Any], line: bytes) -> None:
    assert command.line == line


@pytest.mark.parametrize("name", ["", " ", "a b", "a|b", "a\r\nDONE 1", "a\n", ":a", "-a", "@a", "*", "ä", "a" * 256])
def test_a_name_the_protocol_does_not_allow_is_refused(name: str) -> None:
    for build in (
        lambda: jobs.put(name, b""),
        lambda: jobs.put("q", b"", item=name),
        lambda: jobs.remote_call("q", b"", name),
        lambda: jobs.get(name),
        lambda: jobs.get(["q", name]),
        lambda: queues.total(name),
    ):
        with pytest.raises(BadArguments):
            build()


def test_the_longest_name_is_allowed() -> None:
    assert queues.total("a" * 255).line == b"TOTAL " + b"a" * 255 + b"\r\n"


@pytest.mark.parametrize("name", ["", " ", "a b", "a|b", "a\r\nDONE 1", "a\n", "a:b", "a@b", "*", "ä", "a" * 65])
def test_a_name_no_node_can_have_is_refused(name: str) -> None:
    for build in (
        lambda: cluster.cluster_add(name, "a:1", "a:2"),
        lambda: cluster.cluster_remove(name),
        lambda: cluster.cluster_transfer(name),
    ):
        with pytest.raises(BadArguments):
            build()


@pytest.mark.parametrize(
    "address",
    ["", "a", "[::1]", ":1", "a:", "a:0", "a:65536", "::1:80", "a b:1", "a\r\nQUIT\r\n:1", "ä:1", "*:1", "a/b:1"],
)
def test_an_address_for_a_new_node_is_complete_and_plain(address: str) -> None:
    for peer, client in ((address, "a:1"), ("a:1", address)):
        with pytest.raises(BadArguments):
            cluster.cluster_add("n4", peer, client)


@pytest.mark.parametrize(
    "build",
    [
        lambda: queues.queues("mail*"),
        lambda: jobs.put("q", b"", 2**63),
        lambda: jobs.put("q", b"", -(2**63) - 1),
        lambda: jobs.put("q", b"", item="i", new_item=True),
        lambda: jobs.get([]),
        lambda: jobs.get([f"{number:0255}" for number in range(300)]),
        lambda: jobs.get("q", block="forever"),     # type: ignore[arg-type]
        lambda: jobs.get("q", then="later"),
        lambda: jobs.get("q", expire=5, then="LATER"),  # type: ignore[arg-type]
        lambda: jobs.get("q", expire=-1),
        lambda: jobs.get("q", expire=math.nan),
        lambda: jobs.get("q", expire=math.inf),
        lambda: jobs.get("q", expire=4.3e9),
        lambda: jobs.done(-1),
        lambda: jobs.done(2**64),
    ],
)
def test_a_value_out_of_range_is_refused(build: Any) -> None:
    with pytest.raises(BadArguments) as refused:
        build()
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(
    "build",
    [
        lambda: jobs.put(b"q", b""),                # type: ignore[arg-type]
        lambda: jobs.put("q", 5),              # type: ignore[arg-type]
        lambda: jobs.put("q", None),                # type: ignore[arg-type]
        lambda: jobs.put("q", b"", 1.0),            # type: ignore[arg-type]
        lambda: jobs.put("q", b"", True),
        lambda: jobs.put("q", b"", item=5),         # type: ignore[arg-type]
        lambda: jobs.get(5),                        # type: ignore[arg-type]
        lambda: queues.queues(None),                  # type: ignore[arg-type]
        lambda: jobs.get(["q", 5]),                 # type: ignore[list-item]
        lambda: jobs.get("q", expire="5"),          # type: ignore[arg-type]
        lambda: jobs.get("q", expire=True),
        lambda: jobs.put("q", b"", new_item="no"),  # type: ignore[arg-type]
        lambda: queues.running("no"),                 # type: ignore[arg-type]
        lambda: jobs.done("5"),                     # type: ignore[arg-type]
        lambda: cluster.cluster_remove(4),             # type: ignore[arg-type]
        lambda: cluster.cluster_add("n4", 5, "a:1"),   # type: ignore[arg-type]
    ],
)
def test_a_wrong_type_is_a_type_error(build: Any) -> None:
    with pytest.raises(TypeError):
        build()


def test_a_body_above_the_protocols_limit_is_refused() -> None:
    with pytest.raises(DataTooLarge):
        jobs.put("q", bytes(256 * 1024 * 1024 + 1))


def test_a_body_the_caller_changes_later_is_sent_as_it_was() -> None:
    body = bytearray(b"before")
    command = jobs.put("q", body)
    body[:] = b"behind"
    assert command.data == b"before"


def test_only_commands_whose_repetition_does_no_harm_are_marked_so() -> None:
    assert jobs.put("q", b"").repeat is Repeat.IF_ASKED
    assert jobs.get("q").repeat is Repeat.IF_ASKED
    assert jobs.get("q", expire=0).repeat is Repeat.IF_ASKED
    assert jobs.get("q", expire=1).repeat is Repeat.HARMLESS
    assert jobs.done(1).repeat is Repeat.HARMLESS
    assert queues.clone(b"").repeat is Repeat.IF_ASKED
    assert queues.total().repeat is Repeat.FREELY
    assert cluster.cluster_add("n4", "a:1", "a:2").repeat is Repeat.IF_ASKED
    assert cluster.cluster_remove("n4").repeat is Repeat.IF_ASKED
    assert cluster.cluster_transfer().repeat is Repeat.IF_ASKED
    assert cluster.cluster_offline().repeat is Repeat.HARMLESS


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("db1:7000", "db1", 7000), ("db1", "db1", 11361), ("[::1]:80", "::1", 80), ("[::1]", "::1", 11361)],
)
def test_a_server_address_is_read(text: str, host: str, port: int) -> None:
    assert parse_server(text) == (host, port)


@pytest.mark.parametrize(
    "text",
    ["", ":", "a:", "a:x", "a:0", "a:65536", "a:-1", "::1", "::1:80",
     "a b:1", "a:1²", "a\0:1", "a\nb:1", "a:00655360"],
)
def test_what_is_no_server_address_is_refused(text: str) -> None:
    with pytest.raises(BadArguments):
        parse_server(text)


def test_where_there_is_no_usual_port_an_address_needs_one() -> None:
    with pytest.raises(BadArguments, match="the port is missing in server address 'db1'"):
        parse_server("db1", None)


def test_servers_are_a_list_or_one_string_and_never_none() -> None:
    assert parse_servers("a:1, b:2,a:1") == (("a", 1), ("b", 2))
    assert parse_servers(["a:1"]) == (("a", 1),)
    with pytest.raises(BadArguments):
        parse_servers(" , ")
    with pytest.raises(TypeError):
        parse_servers([("a", 1)])   # type: ignore[list-item]


def test_the_error_names_the_characters_that_a_name_may_have() -> None:
    with pytest.raises(BadArguments) as caught:
        arguments.name("a b", "queue")
    found = re.search(r"A-Z a-z 0-9 (.*), not beginning with (.*)", str(caught.value))
    assert found
    assert set(found[1].split()) == {one for one in string.punctuation if arguments.NAME.fullmatch(f"a{one}")}
    assert set(found[2].split()) == {one for one in found[1].split() if not arguments.NAME.fullmatch(one)}
