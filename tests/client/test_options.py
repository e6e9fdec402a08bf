"""The bytes of the commands for time, keys, several jobs, queues; and what is refused before anything is sent."""

from __future__ import annotations

import math
from typing import Any

import pytest
from sockpq import BadArguments, Key
from sockpq._protocol import commands, job_commands, queue_commands
from sockpq._protocol.commands import Command, Repeat


def lines(*made: Command[Any]) -> list[bytes]:
    return [command.line + command.data for command in made]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (commands.put("q", b"", delay=1.5), b"PUT q 0 0 DELAY 1.500\r\n"),
        (commands.put("q", b"", 3, "i", at=1795130000), b"PUT q 3 0 IS i AT 1795130000\r\n"),
        (commands.put("q", b"", new_item=True, ttl=5, every=60), b"PUT q 0 0 NEW TTL 5 EVERY 60\r\n"),
        (commands.put("q", b"", after="a"), b"PUT q 0 0 AFTER a\r\n"),
        (commands.put("q", b"", after=["a", "b", "a"], tries=3), b"PUT q 0 0 AFTER a|b TRIES 3\r\n"),
        (commands.put("q", b"", key="mail:1-a.b_c", on_duplicate="replace"),
         b"PUT q 0 0 KEY mail:1-a.b_c ONDUP REPLACE\r\n"),
        (commands.call("in", b"", "out", wait=5, expire=3), b"PUT in 0 0 NEW WAIT out EXPIRE 3 WITHIN 5\r\n"),
        (commands.get("q", True, 5, wait=2.5), b"GETB q EXPIRE 5 WITHIN 2.500\r\n"),
        (commands.get(block=True, wait=1), b"GETB * WITHIN 1\r\n"),
        (commands.get(expire=5, then="dead"), b"GET * EXPIRE 5 THEN DEAD\r\n"),
        (commands.get("q", item="i7", meta=True), b"GET q IS i7 META\r\n"),
        (commands.get(["a", "b"], policy="priority"), b"GET a|b BY PRIORITY\r\n"),
        (commands.get(item="i7"), b"GET * IS i7\r\n"),
        (job_commands.get_batch(100, "q", expire=60, then="later"), b"GET q EXPIRE 60 THEN LATER COUNT 100\r\n"),
        (job_commands.get_batch(1, None, "until_done", 60, wait=5, item="i", meta=True),
         b"GETBE * EXPIRE 60 IS i META COUNT 1 WITHIN 5\r\n"),
        (job_commands.done_last(5), b"DONE 5 LAST\r\n"),
        (job_commands.later(5, delay=1, priority=-3), b"LATER 5 DELAY 1 PRI -3\r\n"),
        (job_commands.later(5, at=0, yielded=True), b"LATER 5 AT 0 YIELD\r\n"),
        (job_commands.later(5, first=True), b"LATER 5 FIRST\r\n"),
        (job_commands.touch(5), b"TOUCH 5\r\n"),
        (job_commands.touch(5, 60, "dead"), b"TOUCH 5 EXPIRE 60 THEN DEAD\r\n"),
        (job_commands.change(Key("q", "k"), priority=5, at=7, item="i"), b"CHANGE KEY q k PRI 5 AT 7 IS i\r\n"),
        (job_commands.change(5, no_item=True, data=b"abc"), b"CHANGE 5 NOITEM DATA 3\r\nabc"),
        (job_commands.move(5, "next", data=b"", priority=1, delay=2), b"MOVE 5 next PRI 1 DELAY 2 DATA 0\r\n"),
        (job_commands.move(5, "next"), b"MOVE 5 next\r\n"),
        (job_commands.delete(5), b"DELETE 5\r\n"),
        (job_commands.delete(Key("q", "k")), b"DELETE KEY q k\r\n"),
        (job_commands.bury(5), b"BURY 5\r\n"),
        (job_commands.bury(5, "broken:1"), b"BURY 5 REASON broken:1\r\n"),
        (job_commands.kick("q", 10), b"KICK q 10\r\n"),
        (job_commands.peek(Key("q", "k")), b"PEEK KEY q k\r\n"),
        (job_commands.peek_queue("q", "dead", 3), b"PEEK q DEAD COUNT 3\r\n"),
        (queue_commands.create("q", {}), b"QUEUE CREATE q\r\n"),
        (queue_commands.configure("q", {
            "expire": 300, "then": "later", "order": "time", "tries": 5, "dead": "d", "weight": 3, "limit": 1,
            "item_limit": 2, "capacity": 4, "data_bytes_max": 5, "batch": 6, "portion": 7, "keep": 0.5,
        }), b"QUEUE CONFIG q EXPIRE 300 THEN LATER ORDER TIME TRIES 5 DEAD d WEIGHT 3 LIMIT 1 ITEMLIMIT 2 CAPACITY 4 "
            b"MAXDATA 5 BATCH 6 PORTION 7 KEEP 0.500\r\n"),
        (queue_commands.config("q"), b"QUEUE CONFIG q\r\n"),
        (queue_commands.delete("q", force=True), b"QUEUE DELETE q FORCE\r\n"),
        (queue_commands.purge("q", "all"), b"QUEUE PURGE q ALL\r\n"),
        (queue_commands.purge("q", "dead"), b"QUEUE PURGE q DEAD\r\n"),
        (queue_commands.pause("q", "in"), b"QUEUE PAUSE q IN\r\n"),
        (queue_commands.resume("q"), b"QUEUE RESUME q\r\n"),
        (queue_commands.stat("q"), b"QUEUE STAT q\r\n"),
    ],
)
def test_a_command_is_written_as_the_protocol_has_it(command: Command[Any], line: bytes) -> None:
    assert command.line + command.data == line


def test_the_cluster_is_configured_by_one_command_for_each_setting() -> None:
    made = queue_commands.cluster_configure({
        "expire_default": "done", "autocreate": False, "policy": "priority", "grace": 2, "session_ttl": 60,
        "fast_empty": True,
    })
    assert lines(*made) == [
        b"CONFIG EXPIREDEFAULT DONE\r\n", b"CONFIG AUTOCREATE OFF\r\n", b"CONFIG POLICY PRIORITY\r\n",
        b"CONFIG GRACE 2\r\n", b"CONFIG SESSIONTTL 60\r\n", b"CONFIG FASTEMPTY ON\r\n",
    ]


def test_jobs_are_put_by_thousands() -> None:
    parts = job_commands.puts_batch(commands.puts("q", [b"%d" % number for number in range(4097)], 5, key="k"))
    assert [part.members for part in parts] == [4096, 1]
    first = parts[0].command
    assert (first.line + first.data).startswith(b"PUTS 4096\r\nq 5 1 KEY k\r\n0q 5 1 KEY k\r\n1q 5")
    assert lines(parts[1].command) == [b"PUTS 1\r\nq 5 4 KEY k\r\n4096"]


def test_a_batch_is_no_larger_than_a_server_takes() -> None:
    mib = 1 << 20
    parts = job_commands.puts_batch(commands.puts("q", [bytes(6 * mib)] * 3 + [bytes(17 * mib)] + [b""]))
    assert [part.members for part in parts] == [2, 1, 1, 1]
    assert all(len(part.command.data) <= 16 * mib for part in parts if part.command.line.startswith(b"PUTS"))
    assert parts[2].command.line == b"PUT q 0 17825792\r\n"


def test_many_ids_fit_into_lines() -> None:
    parts = job_commands.ends("DONE", range(5000))
    assert [part.members for part in parts] == [4096, 904]
    parts = job_commands.ends("LATER", [2**64 - 1] * 4096)
    assert [part.members for part in parts] == [3119, 977]
    assert all(len(part.command.line) <= 65_536 - 25 for part in parts)
    assert lines(*(part.command for part in job_commands.ends("DONE", [7]))) == [b"DONE 7\r\n"]


def test_what_would_be_taken_for_commands_is_not_sent_to_a_server_that_does_not_know_it() -> None:
    """A body behind a line that is refused is read as the next lines."""
    assert job_commands.puts_batch(commands.puts("q", [b""]))[0].command.needs
    assert job_commands.change(1, data=b"QUIT\r\n").needs
    assert job_commands.move(1, "q", data=b"QUIT\r\n").needs
    assert job_commands.transaction([commands.done(1)], [bool]).opening


@pytest.mark.parametrize(
    "build",
    [
        lambda: commands.put("q", b"", delay=1, at=1),
        lambda: commands.put("q", b"", delay=-1),
        lambda: commands.put("q", b"", delay=math.nan),
        lambda: commands.put("q", b"", at=-1),
        lambda: commands.put("q", b"", at=math.inf),
        lambda: commands.put("q", b"", ttl=0),
        lambda: commands.put("q", b"", every=0),
        lambda: commands.put("q", b"", tries=0),
        lambda: commands.put("q", b"", after=[]),
        lambda: commands.put("q", b"", after="a b"),
        lambda: commands.put("q", b"", key=""),
        lambda: commands.put("q", b"", key="a" * 129),
        lambda: commands.put("q", b"", key="a\r\nQUIT"),
        lambda: commands.put("q", b"", key="a@b"),
        lambda: commands.put("q", b"", on_duplicate="ignore"),
        lambda: commands.put("q", b"", key="a", on_duplicate="IGNORE"),     # type: ignore[arg-type]
        lambda: commands.get("q", policy="weight"),
        lambda: commands.get("q", item="a b"),
        lambda: commands.get("q", wait=5),
        lambda: commands.get("q", True, wait=0),
        lambda: job_commands.get_batch(5, "q", wait=5),
        lambda: job_commands.later(5, first=True, delay=1),
        lambda: job_commands.touch(5, None, "later"),
        lambda: job_commands.change(5),
        lambda: job_commands.change(5, item="a", no_item=True),
        lambda: job_commands.change(Key("q", "a b"), priority=1),
        lambda: job_commands.bury(5, "two words"),
        lambda: job_commands.kick("q", 0),
        lambda: job_commands.peek_queue("q", "all"),                        # type: ignore[arg-type]
        lambda: job_commands.peek_queue("q", "ready", 0),
        lambda: job_commands.transaction([commands.done(1)] * 1001, [bool] * 1001),
        lambda: queue_commands.create("q", {"order": "lifo"}),              # type: ignore[typeddict-item]
        lambda: queue_commands.create("q", {"dead": "d"}),
        lambda: queue_commands.create("q", {"limit": -1}),
        lambda: queue_commands.purge("q", "running"),
        lambda: queue_commands.pause("q", "both"),                          # type: ignore[arg-type]
        lambda: queue_commands.cluster_configure({"policy": "fair"}),       # type: ignore[typeddict-item]
    ],
)
def test_a_value_out_of_range_is_refused(build: Any) -> None:
    with pytest.raises(BadArguments):
        build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: commands.put("q", b"", dely=1),                             # type: ignore[call-arg]
        lambda: commands.put("q", b"", key=5),                              # type: ignore[arg-type]
        lambda: commands.put("q", b"", delay="5"),                          # type: ignore[arg-type]
        lambda: commands.get("q", meta=1),                                  # type: ignore[arg-type]
        lambda: job_commands.later(5, yielded="yes"),                       # type: ignore[arg-type]
        lambda: queue_commands.create("q", {"limits": 1}),                  # type: ignore[typeddict-unknown-key]
        lambda: queue_commands.create("q", {"limit": "1"}),                 # type: ignore[typeddict-item]
        lambda: queue_commands.cluster_configure({"autocreate": 1}),        # type: ignore[typeddict-item]
        lambda: queue_commands.cluster_configure({"nonsense": 1}),          # type: ignore[typeddict-unknown-key]
    ],
)
def test_a_wrong_type_is_a_type_error(build: Any) -> None:
    with pytest.raises(TypeError):
        build()


def test_only_commands_whose_repetition_does_no_harm_are_marked_so() -> None:
    assert commands.put("q", b"", key="k", on_duplicate="ignore").repeat is Repeat.IF_ASKED     # it may be done by then
    assert job_commands.delete(5).repeat is Repeat.HARMLESS
    assert job_commands.delete(Key("q", "k")).repeat is Repeat.IF_ASKED
    assert job_commands.move(5, "q").repeat is Repeat.HARMLESS
    assert job_commands.kick("q", 5).repeat is Repeat.IF_ASKED
    assert job_commands.get_batch(5, "q", expire=5).repeat is Repeat.HARMLESS
    assert job_commands.get_batch(5, "q").repeat is Repeat.IF_ASKED
