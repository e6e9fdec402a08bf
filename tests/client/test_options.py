"""The bytes of the commands for time, keys, several jobs, queues; and arguments that are refused before anything is
sent.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from sockpq import BadArguments, Key, Place
from sockpq._protocol.command import Command, Repeat
from sockpq._protocol.commands import batches, cluster, jobs, queues


def lines(*made: Command[Any]) -> list[bytes]:
    return [command.line + command.data for command in made]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (jobs.put("q", b"", delay=1.5), b"PUT q 0 0 DELAY 1.500\r\n"),
        (jobs.put("q", b"", 3, "i", at=1795130000), b"PUT q 3 0 IS i AT 1795130000\r\n"),
        (jobs.put("q", b"", new_item=True, ttl=5, every=60), b"PUT q 0 0 NEW TTL 5 EVERY 60\r\n"),
        (jobs.put("q", b"", after="a"), b"PUT q 0 0 AFTER a\r\n"),
        (jobs.put("q", b"", after=["a", "b", "a"], tries=3), b"PUT q 0 0 AFTER a|b TRIES 3\r\n"),
        (jobs.put("q", b"", key="mail:1-a.b_c", on_duplicate="replace"),
         b"PUT q 0 0 KEY mail:1-a.b_c ONDUP REPLACE\r\n"),
        (jobs.remote_call("in", b"", "out", wait=5, expire=3), b"PUT in 0 0 NEW WAIT out EXPIRE 3 WITHIN 5\r\n"),
        (jobs.get("q", True, 5, wait=2.5), b"GETB q EXPIRE 5 WITHIN 2.500\r\n"),
        (jobs.get(block=True, wait=1), b"GETB * WITHIN 1\r\n"),
        (jobs.get("q", wait=1), b"GETB q WITHIN 1\r\n"),          # to wait is to block
        (batches.get_batch(5, "q", wait=5), b"GETB q COUNT 5 WITHIN 5\r\n"),
        (jobs.get(expire=5, then="dead"), b"GET * EXPIRE 5 THEN DEAD\r\n"),
        (jobs.get("q", item="i7", meta=True), b"GET q IS i7 META\r\n"),
        (jobs.get(["a", "b"], policy="priority"), b"GET a|b BY PRIORITY\r\n"),
        (jobs.get("q", policy="weight"), b"GET q BY WEIGHT\r\n"),
        (queues.config({"policy": "fair"}).before[0], b"CONFIG POLICY FAIR\r\n"),
        (jobs.get(item="i7"), b"GET * IS i7\r\n"),
        (batches.get_batch(100, "q", expire=60, then="later"), b"GET q EXPIRE 60 THEN LATER COUNT 100\r\n"),
        (batches.get_batch(1, None, "until_done", 60, wait=5, item="i", meta=True),
         b"GETBE * EXPIRE 60 IS i META COUNT 1 WITHIN 5\r\n"),
        (jobs.done(5, last=True), b"DONE 5 LAST\r\n"),
        (jobs.later(5, delay=1, priority=-3), b"LATER 5 DELAY 1 PRI -3\r\n"),
        (jobs.later(5, at=0, yielded=True), b"LATER 5 AT 0 YIELD\r\n"),
        (jobs.later(5, first=True), b"LATER 5 FIRST\r\n"),
        (jobs.touch(5), b"TOUCH 5\r\n"),
        (jobs.touch(5, 60, "dead"), b"TOUCH 5 EXPIRE 60 THEN DEAD\r\n"),
        (jobs.change(Key("q", "k"), priority=5, at=7, item="i"), b"CHANGE KEY q k PRI 5 AT 7 IS i\r\n"),
        (jobs.change(5, no_item=True, data=b"abc"), b"CHANGE 5 NOITEM DATA 3\r\nabc"),
        (jobs.move(5, "next", data=b"", priority=1, delay=2), b"MOVE 5 next PRI 1 DELAY 2 DATA 0\r\n"),
        (jobs.move(5, "next"), b"MOVE 5 next\r\n"),
        (jobs.delete(5), b"DELETE 5\r\n"),
        (jobs.delete(Key("q", "k")), b"DELETE KEY q k\r\n"),
        (jobs.bury(5), b"BURY 5\r\n"),
        (jobs.bury(5, "broken:1"), b"BURY 5 REASON broken:1\r\n"),
        (jobs.kick("q", 10), b"KICK q 10\r\n"),
        (jobs.peek(Key("q", "k")), b"PEEK KEY q k\r\n"),
        (jobs.peek(Place("q", 5)), b"PEEK SEQ q 5\r\n"),
        (jobs.delete(Place("q", 2**64 - 1)), b"DELETE SEQ q 18446744073709551615\r\n"),
        (jobs.change(Place("q", 5), priority=3), b"CHANGE SEQ q 5 PRI 3\r\n"),
        (jobs.peek_queue("q", "dead", 3, places=True), b"PEEK q DEAD COUNT 3 SEQ\r\n"),
        (jobs.peek_queue("q", "dead", 3), b"PEEK q DEAD COUNT 3\r\n"),
        (jobs.later(5, reason="slow"), b"LATER 5 REASON slow\r\n"),
        (jobs.touch_many([5, 6], 60, "done"), b"TOUCH 5 6 EXPIRE 60 THEN DONE\r\n"),
        (cluster.worker_beat("host:1@a", 8, 3), b"WORKER host:1@a 8 3\r\n"),
        (cluster.worker_set("pool", most=8, least=2, state="pause"), b"WORKER SET pool MAX 8 MIN 2 STATE PAUSE\r\n"),
        (jobs.put_to(["a", "b", "a"], b"x", key="k"), b"PUT a|b 0 1 KEY k\r\nx"),
        (jobs.put_to(["a"], b"x"), b"PUT a|a 0 1\r\nx"),
        (jobs.publish("news", b"x", 5, "it", route="a.b", ttl=1), b"PUT @news 5 1 IS it ROUTE a.b TTL 1\r\nx"),
        (jobs.publish("news", b"x", route=""), b"PUT @news 0 1\r\nx"),
        (queues.topic_bind("t", "q", "a.#"), b"TOPIC BIND t q PATTERN a.#\r\n"),
        (queues.topic_unbind("t", "q"), b"TOPIC UNBIND t q\r\n"),
        (queues.topic_list("t"), b"TOPIC LIST t*\r\n"),
        (queues.queue_create("q", {}), b"QUEUE CREATE q\r\n"),
        (queues.queue_create("q", {"limit": 2}, bound=True), b"QUEUE CREATE q LIMIT 2 BOUND\r\n"),
        (queues.queue_config("q", {
            "expire": 300, "then": "later", "order": "time", "tries": 5, "dead": "d", "weight": 3, "limit": 1,
            "item_limit": 2, "capacity": 4, "data_bytes_max": 5, "batch": 6, "portion": 7, "keep": 0.5, "ttl": 60,
            "idle": 0, "overflow": "drop_oldest",
        }).before[0],
         b"QUEUE CONFIG q EXPIRE 300 THEN LATER ORDER TIME TRIES 5 DEAD d WEIGHT 3 LIMIT 1 ITEMLIMIT 2 CAPACITY 4 "
         b"MAXDATA 5 BATCH 6 PORTION 7 KEEP 0.500 TTL 60 IDLE OFF OVERFLOW DROPOLDEST\r\n"),
        (queues.queue_config("q", {}).last, b"QUEUE CONFIG q\r\n"),
        (queues.queue_config("q", {
            "retain": 0.5, "retain_max": 10, "retain_bytes": 20, "numbered": True, "backoff": (0.5, 60),
            "error_bytes": 30, "dedup_max": 40,
        }).before[0],
         b"QUEUE CONFIG q RETAINMAX 10 RETAINBYTES 20 ERRORBYTES 30 DEDUPMAX 40 RETAIN 0.500 NUMBERED 1 "
         b"BACKOFF 0.500 60\r\n"),
        (queues.queue_create("q", {"numbered": False, "backoff": (0, 0)}),
         b"QUEUE CREATE q NUMBERED 0 BACKOFF OFF\r\n"),
        (queues.queue_delete("q", force=True), b"QUEUE DELETE q FORCE\r\n"),
        (queues.queue_delete("q", force=True, leave=True), b"QUEUE DELETE q FORCE LEAVE\r\n"),
        (queues.queue_purge("q", "running"), b"QUEUE PURGE q RUNNING\r\n"),
        (queues.queue_purge("q", "own"), b"QUEUE PURGE q OWN\r\n"),
        (queues.queue_move("q", "p"), b"QUEUE MOVE q p\r\n"),
        (queues.queue_move("q", "p", seq=17), b"QUEUE MOVE q p SEQ 17\r\n"),
        (queues.queue_move("q_dead", "p", 7, died="q"), b"QUEUE MOVE q_dead p COUNT 7 DIED q\r\n"),
        (queues.queue_purge("q", "all"), b"QUEUE PURGE q ALL\r\n"),
        (queues.queue_purge("q", "dead"), b"QUEUE PURGE q DEAD\r\n"),
        (queues.queue_pause("q", "in"), b"QUEUE PAUSE q IN\r\n"),
        (queues.queue_resume("q"), b"QUEUE RESUME q\r\n"),
        (queues.queue_stat("q"), b"QUEUE STAT q\r\n"),
    ],
)
def test_a_command_is_written_as_the_protocol_has_it(command: Command[Any], line: bytes) -> None:
    assert command.line + command.data == line


def test_the_cluster_is_configured_by_one_command_for_each_setting() -> None:
    made, look = queues.config({
        "expire_default": "done", "autocreate": False, "policy": "priority", "grace": 2, "session_ttl": 60,
        "fast_empty": True,
    })
    assert look.line == b"CONFIG\r\n"
    assert lines(*made) == [
        b"CONFIG EXPIREDEFAULT DONE\r\n", b"CONFIG AUTOCREATE OFF\r\n", b"CONFIG POLICY PRIORITY\r\n",
        b"CONFIG GRACE 2\r\n", b"CONFIG SESSIONTTL 60\r\n", b"CONFIG FASTEMPTY ON\r\n",
    ]


def test_jobs_are_put_by_thousands() -> None:
    parts = batches.puts_batch(batches.puts("q", [b"%d" % number for number in range(4097)], 5, key="k"), counted=False)
    assert [part.members for part in parts] == [4096, 1]
    first = parts[0].command
    assert (first.line + first.data).startswith(b"PUTS 4096\r\nq 5 1 KEY k\r\n0q 5 1 KEY k\r\n1q 5")
    assert lines(parts[1].command) == [b"PUTS 1\r\nq 5 4 KEY k\r\n4096"]


def test_a_batch_is_no_larger_than_a_server_takes() -> None:
    mib = 1 << 20
    parts = batches.puts_batch(batches.puts("q", [bytes(6 * mib)] * 3 + [bytes(17 * mib)] + [b""]), counted=False)
    assert [part.members for part in parts] == [2, 1, 1, 1]
    assert all(len(part.command.data) <= 16 * mib for part in parts if part.command.line.startswith(b"PUTS"))
    assert parts[2].command.line == b"PUT q 0 17825792\r\n"


def test_many_ids_fit_into_lines() -> None:
    parts = batches.ends("DONE", range(5000))
    assert [part.members for part in parts] == [4096, 904]
    parts = batches.ends("LATER", [2**64 - 1] * 4096)
    assert [part.members for part in parts] == [3119, 977]
    assert all(len(part.command.line) <= 65_536 - 25 for part in parts)
    assert lines(*(part.command for part in batches.ends("DONE", [7]))) == [b"DONE 7\r\n"]


def test_what_would_be_taken_for_commands_is_not_sent_to_a_server_that_does_not_know_it() -> None:
    """A body behind a line that is refused is read as the next lines."""
    assert batches.puts_batch(batches.puts("q", [b""]), counted=False)[0].command.needs
    assert jobs.change(1, data=b"QUIT\r\n").needs
    assert jobs.move(1, "q", data=b"QUIT\r\n").needs
    assert batches.transaction([jobs.done(1)]).opening


@pytest.mark.parametrize(
    "build",
    [
        lambda: jobs.put("q", b"", delay=1, at=1),
        lambda: jobs.put("q", b"", delay=-1),
        lambda: jobs.put("q", b"", delay=math.nan),
        lambda: jobs.put("q", b"", at=-1),
        lambda: jobs.put("q", b"", at=math.inf),
        lambda: jobs.put("q", b"", ttl=-1),
        lambda: jobs.put("q", b"", every=0),
        lambda: jobs.put("q", b"", tries=0),
        lambda: jobs.put("q", b"", after=[]),
        lambda: jobs.put("q", b"", after="a b"),
        lambda: jobs.put("q", b"", key=""),
        lambda: jobs.put("q", b"", key="a" * 129),
        lambda: jobs.put("q", b"", key="a\r\nQUIT"),
        lambda: jobs.put("q", b"", key="a@b"),
        lambda: jobs.put("q", b"", on_duplicate="ignore"),
        lambda: jobs.put("q", b"", key="a", on_duplicate="IGNORE"),     # type: ignore[arg-type]
        lambda: jobs.get("q", policy="lottery"),                        # type: ignore[arg-type]
        lambda: jobs.get("q", item="a b"),
        lambda: jobs.publish("news", b"", route="a.*"),
        lambda: jobs.publish("news", b"", route="a" * 256),
        lambda: queues.topic_bind("t", "q", ""),
        lambda: jobs.get("q", True, wait=0),
        lambda: jobs.later(5, first=True, delay=1),
        lambda: jobs.touch(5, None, "later"),
        lambda: jobs.change(5),
        lambda: jobs.change(5, item="a", no_item=True),
        lambda: jobs.change(Key("q", "a b"), priority=1),
        lambda: jobs.bury(5, "two words"),
        lambda: jobs.kick("q", 0),
        lambda: jobs.peek_queue("q", "all"),                        # type: ignore[arg-type]
        lambda: jobs.peek_queue("q", "ready", 0),
        lambda: jobs.peek(Place("q", -1)),
        lambda: jobs.delete(Place("no name", 1)),
        lambda: batches.transaction([jobs.done(1)] * 1001),
        lambda: queues.queue_create("q", {"order": "lifo"}),              # type: ignore[typeddict-item]
        lambda: queues.queue_create("q", {"dead": "d"}),
        lambda: cluster.worker_beat("LIST", 1, 1),
        lambda: cluster.worker_beat("pool", 1, -1),
        lambda: cluster.worker_set("pool"),
        lambda: cluster.worker_set("pool", most=1, least=2),
        lambda: queues.queue_create("q", {"limit": -1}),
        lambda: queues.queue_create("q", {"idle": 0.5}),
        lambda: queues.queue_create("q", {"overflow": "drop"}),           # type: ignore[typeddict-item]
        lambda: queues.queue_purge("q", "taken"),                         # type: ignore[arg-type]
        lambda: queues.queue_delete("q", leave=True),
        lambda: queues.queue_move("q", "q"),
        lambda: queues.queue_move("q", "p", 0),
        lambda: queues.queue_pause("q", "both"),                          # type: ignore[arg-type]
        lambda: queues.config({"policy": "lottery"}),    # type: ignore[typeddict-item]
    ],
)
def test_a_value_out_of_range_is_refused(build: Any) -> None:
    with pytest.raises(BadArguments):
        build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: jobs.put("q", b"", dely=1),                             # type: ignore[call-arg]
        lambda: jobs.put("q", b"", key=5),                              # type: ignore[arg-type]
        lambda: jobs.put("q", b"", delay="5"),                          # type: ignore[arg-type]
        lambda: jobs.get("q", meta=1),                                  # type: ignore[arg-type]
        lambda: jobs.later(5, yielded="yes"),                       # type: ignore[arg-type]
        lambda: queues.queue_create("q", {"limits": 1}),                  # type: ignore[typeddict-unknown-key]
        lambda: queues.queue_create("q", {"limit": "1"}),                 # type: ignore[typeddict-item]
        lambda: queues.config({"autocreate": 1}),        # type: ignore[typeddict-item]
        lambda: queues.config({"nonsense": 1}),          # type: ignore[typeddict-unknown-key]
    ],
)
def test_a_wrong_type_is_a_type_error(build: Any) -> None:
    with pytest.raises(TypeError):
        build()


def test_only_commands_whose_repetition_does_no_harm_are_marked_so() -> None:
    assert jobs.put("q", b"", key="k", on_duplicate="ignore").repeat is Repeat.IF_ASKED     # it may be done by then
    assert jobs.delete(5).repeat is Repeat.HARMLESS
    assert jobs.delete(Key("q", "k")).repeat is Repeat.IF_ASKED
    assert jobs.move(5, "q").repeat is Repeat.HARMLESS
    assert jobs.kick("q", 5).repeat is Repeat.IF_ASKED
    assert batches.get_batch(5, "q", expire=5).repeat is Repeat.HARMLESS
    assert batches.get_batch(5, "q").repeat is Repeat.IF_ASKED
