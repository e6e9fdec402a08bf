"""Batches, time, keys, transactions, queue settings and dead letters on three real nodes: examples byte for
byte, and what is left of them when the leader is killed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster, say
from tests.waiting import until
from tests.wire import Wire

PATIENCE_S = 60.0
NEAR_S = 20         # so far a time in an answer may be from the one that is expected


class Speaker:
    """A plain connection to one server; expected answers are given as bytes."""

    def __init__(self, server: str) -> None:
        self._wire = Wire(server, PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._wire.close()

    def send(self, data: bytes) -> None:
        self._wire.send_bytes(data)

    def expect(self, answer: bytes, at: float | None = None) -> None:
        """Check the next bytes; a time in them, ten digits, may be a little later than `at` or now."""
        got = self._wire.exactly(len(answer))
        expected = re.sub(rb"\b\d{10}\b", lambda match: _near(match[0], got[match.start():match.end()], at), answer)
        assert got == expected

    def say(self, request: bytes, answer: bytes, at: float | None = None) -> None:
        """Send this, and expect that answer."""
        self.send(request)
        self.expect(answer, at)

    def line(self) -> bytes:
        """Return the next line, with CR LF."""
        return self._wire.line().encode("latin-1") + b"\r\n"

    def read(self, count: int) -> bytes:
        """Return this many bytes."""
        return self._wire.exactly(count)


def _near(expected: bytes, got: bytes, at: float | None) -> bytes:
    """Return `got` if it is near the expected time: 1 and nine digits stand for this many seconds from `at`."""
    if not expected.startswith(b"1") or not got.isdigit():
        return expected
    wanted = (time.time() if at is None else at) + int(expected[1:])
    return got if wanted - NEAR_S <= int(got) <= wanted + NEAR_S else expected


def after(seconds: int) -> bytes:
    """Stand in an expected answer for the time in this many seconds."""
    return b"1%09d" % seconds


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Three nodes that the tests of this file share; each test leaves them all running, and its queues are its own."""
    with LocalCluster(3) as running:
        yield running


def test_the_examples_of_batches(cluster: LocalCluster) -> None:
    with Speaker(cluster.server(cluster.wait_for_leader())) as client:
        client.say(b"PUT mail 5 3\r\nabcPUT mail 0 4 IS order_17\r\ndefg", b"200 OK\r\n" * 2)
        client.send(b"GETB mail EXPIRE 60 THEN LATER COUNT 1000\r\n")
        assert client.line() == b"200 OK 2\r\n"
        first, second = client.line(), client.line()
        match = re.fullmatch(rb"mail (\d+) 5 3\r\n", first)
        assert match
        id_ = int(match[1])
        assert second == b"mail %d 0 4 IS order_17\r\n" % (id_ + 1)
        assert client.read(7) == b"abcdefg"
        client.say(b"DONE %d %d 999999\r\n" % (id_, id_ + 1),
                   b"200 OK 3\r\n200 OK\r\n200 OK FINQ FINI\r\n404 Job Not Found\r\n")
        client.say(b"PUTS 2\r\nmail 0 3 KEY a1\r\nabcmail 5 4 DELAY 10\r\ndefg", b"200 OK 2\r\n200 OK\r\n200 OK\r\n")
        # META, TOUCH, CHANGE and PEEK go on with the job that has the key.
        client.say(b"GET mail EXPIRE 60 META\r\n", b"200 OK mail %d 0 3 KEY a1 TRY 1 EXPIRE %s\r\nabc" % (
            id_ + 2, after(60)))
        client.say(b"TOUCH %d EXPIRE 120\r\n" % (id_ + 2), b"200 OK EXPIRE %s\r\n" % after(120))
        client.say(b"LATER %d\r\n" % (id_ + 2), b"200 OK\r\n")
        client.say(b"CHANGE KEY mail a1 AT 4000000000 PRI 9\r\n", b"200 OK\r\n")
        client.send(b"PEEK KEY mail a1\r\n")
        assert client.line() == b"200 OK mail - 9 3 DELAYED KEY a1 TRY 1 AT 4000000000\r\n"
        assert client.read(3) == b"abc"
        client.say(b"QUEUE PURGE mail ALL\r\n", b"200 OK 2\r\n")


def test_the_examples_of_waiting(cluster: LocalCluster) -> None:
    leader = cluster.server(cluster.wait_for_leader())
    with Speaker(leader) as client, Speaker(leader) as other:
        client.send(b"GETB answers IS i77 EXPIRE 30 WITHIN 20\r\n")
        other.say(b"PUT answers 0 2 IS i78\r\nnoPUT answers 0 2 IS i77\r\nok", b"200 OK\r\n" * 2)
        match = re.fullmatch(rb"200 OK answers (\d+) 0 2 IS i77\r\n", client.line())
        assert match
        assert client.read(2) == b"ok"
        begun = time.monotonic()
        client.say(b"GETB nothing WITHIN 0.3\r\n", b"404 Queue Empty\r\n")
        client.say(b"PUT work 0 1 IS x WAIT nothing WITHIN 0.3\r\nx", b"206 Wait for output\r\n408 Wait Timeout\r\n")
        assert time.monotonic() - begun > 0.59         # uvloop's timers count whole milliseconds, from the last turn on
        client.say(b"QUEUE DELETE work FORCE\r\nQUEUE DELETE answers FORCE\r\n", b"200 OK\r\n" * 2)


def test_the_examples_of_time(cluster: LocalCluster) -> None:
    leader = cluster.server(cluster.wait_for_leader())
    with Speaker(leader) as client, Speaker(leader) as worker:
        client.say(b"PUT timed 0 3 AT 4000000000\r\nabc", b"200 OK\r\n")
        worker.send(b"GETB timed\r\n")
        begun = time.monotonic()
        client.say(b"PUT timed 0 3 DELAY 0.7\r\ndef", b"200 OK\r\n")
        match = re.fullmatch(rb"200 OK timed (\d+) 0 3\r\n", worker.line())
        assert match
        assert worker.read(3) == b"def"
        assert time.monotonic() - begun >= 0.7
        worker.say(b"LATER %s DELAY 0.2\r\nGETB timed META\r\n" % match[1], b"200 OK\r\n")
        assert b" TRY 2 AT " in worker.line()
        assert worker.read(3) == b"def"
        client.say(b"PUT tick 0 1 EVERY 60 KEY t\r\nxGET tick\r\n", b"200 OK\r\n")
        match = re.fullmatch(rb"200 OK tick (\d+) 0 1\r\n", client.line())
        assert match
        client.say(b"", b"x")
        client.say(b"DONE %s\r\n" % match[1], b"200 OK NEXT %s\r\n" % after(60))
        # A job that waits for an item comes as soon as the item has ended, without anybody's help.
        client.say(b"PUT step 0 1 IS one\r\n1PUT step 0 1 AFTER one\r\n2GET step\r\n", b"200 OK\r\n" * 2)
        match = re.fullmatch(rb"200 OK step (\d+) 0 1 IS one\r\n", client.line())
        assert match
        worker.send(b"GETB step\r\n")
        client.say(b"", b"1")
        client.say(b"DONE %s\r\n" % match[1], b"200 OK FINI\r\n")
        assert worker.line().startswith(b"200 OK step ")
        assert worker.read(1) == b"2"
        for queue in (b"timed", b"tick", b"step"):
            client.say(b"QUEUE DELETE %s FORCE\r\n" % queue, b"200 OK\r\n")


def test_the_examples_of_transactions_and_settings(cluster: LocalCluster) -> None:
    with Speaker(cluster.server(cluster.wait_for_leader())) as client:
        client.say(b"PUT first 0 1 IS it\r\nxGET first\r\n", b"200 OK\r\n")
        id_ = int(client.line().split()[3])
        client.say(b"", b"x")
        client.say(b"MOVE %d second DATA 5\r\nhello" % id_, b"200 OK FINQ\r\n")
        client.say(b"GET second\r\n", b"200 OK second %d 0 5 IS it\r\nhello" % (id_ + 1))
        client.say(b"BEGIN\r\n", b"200 OK\r\n")
        client.say(b"DONE %d\r\n" % (id_ + 1), b"202 Queued\r\n")
        client.say(b"PUT next 0 2\r\nok", b"202 Queued\r\n")
        client.say(b"COMMIT\r\n", b"200 OK 2\r\n200 OK FINQ FINI\r\n200 OK\r\n")
        client.say(b"BEGIN\r\nPUT next 0 2\r\nokDONE 999999\r\nCOMMIT\r\n",
                   b"200 OK\r\n202 Queued\r\n202 Queued\r\n409 Aborted 2 404 Job Not Found\r\n")
        client.say(b"QUEUE CREATE post EXPIRE 300 THEN LATER TRIES 1 DEAD post_dead WEIGHT 3\r\n", b"200 OK\r\n")
        client.say(b"PUT post 0 1\r\nxGET post\r\n", b"200 OK\r\n200 OK post %d 0 1\r\nx" % (id_ + 2))
        client.say(b"LATER %d\r\n" % (id_ + 2), b"200 OK\r\n")
        client.say(b"QUEUE LIST post*\r\n", b"200 OK 2\r\n")
        assert sorted((client.line(), client.line())) == [b"post 0 0 0 1 0\r\n", b"post_dead 1 0 0 0 0\r\n"]
        client.say(b"KICK post 5\r\n", b"200 OK 1\r\n")
        client.say(b"QUEUE DELETE post FORCE\r\nQUEUE DELETE next FORCE\r\n", b"200 OK\r\n" * 2)


def test_every_node_shows_what_there_is(cluster: LocalCluster) -> None:
    with Speaker(cluster.server(cluster.wait_for_leader())) as client:
        client.say(b"QUEUE CREATE shown LIMIT 7\r\nPUT shown 3 2 KEY k DELAY 600\r\nhi", b"200 OK\r\n" * 2)
    cluster.wait_until_level()
    for name in cluster.names:
        with Speaker(cluster.server(name)) as client:
            deadline = time.monotonic() + PATIENCE_S
            while say(cluster.server(name), "TOTAL shown", 2.0) != "200 OK 1 1 1 0":
                assert time.monotonic() < deadline
                time.sleep(0.05)        # followers execute an entry a heartbeat later
            client.say(b"PEEK KEY shown k\r\n", b"200 OK shown - 3 2 DELAYED KEY k TRY 0 AT %s\r\nhi" % after(600))
            client.say(b"QUEUE LIST shown*\r\n", b"200 OK 1\r\nshown 0 1 0 0 0\r\n")
            client.send(b"QUEUE CONFIG shown\r\n")
            status, _, lines = client.line().rpartition(b" ")
            assert status == b"200 OK"
            assert b"LIMIT 7\r\n" in [client.line() for _ in range(int(lines))]
            client.say(b"QUEUE STAT nowhere\r\n", b"404 Queue Not Found\r\n")
            if name != cluster.leader():
                client.say(b"PUTS 2\r\nq 0 1\r\naq 0 1\r\nb", b"500 Offline Mode\r\n")
    with Speaker(cluster.server(cluster.wait_for_leader())) as client:
        client.say(b"QUEUE DELETE shown FORCE\r\n", b"200 OK\r\n")


def test_batches_of_the_largest_size_go_through(cluster: LocalCluster) -> None:
    with Speaker(cluster.server(cluster.wait_for_leader())) as client:
        block = bytes(1_600)
        client.send(b"PUTS 10000\r\n" + (b"large 0 1600\r\n" + block) * 10_000)
        client.expect(b"200 OK 10000\r\n" + b"200 OK\r\n" * 10_000)
        client.send(b"GET large COUNT 10000\r\n")
        assert client.line() == b"200 OK 10000\r\n"
        ids = [client.line().split()[1] for _ in range(10_000)]
        assert client.read(16_000_000) == bytes(16_000_000)
        client.send(b"DONE " + b" ".join(ids[:6000]) + b"\r\n" + b"LATER " + b" ".join(ids[6000:]) + b"\r\n")
        client.expect(b"200 OK 6000\r\n" + b"200 OK\r\n" * 6000 + b"200 OK 4000\r\n" + b"200 OK\r\n" * 4000)
        large = b"BEGIN\r\n" + (b"PUT large 0 1000000\r\n" + bytes(1_000_000)) * 16 + b"COMMIT\r\n"
        client.say(large, b"200 OK\r\n" + b"202 Queued\r\n" * 16 + b"200 OK 16\r\n" + b"200 OK\r\n" * 16)
        client.say(b"QUEUE PURGE large READY\r\n", b"200 OK 4016\r\n")
    cluster.wait_until_level()


def test_what_was_promised_is_kept_when_the_leader_is_killed(cluster: LocalCluster) -> None:
    victim = cluster.wait_for_leader()
    begun = time.time()
    with Speaker(cluster.server(victim)) as client:
        client.send(b"SESSION\r\n")
        session = client.line().split()[3]
        client.say(b"QUEUE CREATE kept TRIES 1 LIMIT 1 KEEP 600\r\nPUT kept 0 1 KEY dead\r\nxGET kept\r\n",
                   b"200 OK\r\n" * 2)
        id_ = int(client.line().split()[3])
        client.say(b"", b"x")
        client.say(b"BURY %d\r\n" % id_, b"200 OK FINQ\r\n")
        client.say(b"PUT kept 0 1 KEY later DELAY 3\r\ny", b"200 OK\r\n")
        client.say(b"PUT held 0 1\r\nzGET held EXPIRE 5\r\n", b"200 OK\r\n200 OK held %d 0 1\r\nz" % (id_ + 1))
        client.say(b"TOUCH %d EXPIRE 600\r\n" % (id_ + 1), b"200 OK EXPIRE %s\r\n" % after(600))
        client.say(b"BEGIN\r\nPUT once 0 1 NEW\r\naPUT once 0 1\r\nb", b"200 OK\r\n202 Queued\r\n202 Queued\r\n")
        client.send(b"REQ 1 COMMIT\r\n")
        assert client.line() == b"200 OK 2\r\n"
        item, last = client.line(), client.line()
        assert last == b"200 OK\r\n"
        client.say(b"BEGIN\r\nPUT never 0 1\r\na", b"200 OK\r\n202 Queued\r\n")      # and no COMMIT
        cluster.kill(victim)
    with Speaker(cluster.server(cluster.wait_for_leader())) as client:
        client.send(b"SESSION " + session + b"\r\n")
        assert client.line().endswith(b" LAST 1\r\n")
        client.say(b"BEGIN\r\nPUT once 0 1 NEW\r\naPUT once 0 1\r\nbREQ 1 COMMIT\r\n",
                   b"200 OK\r\n202 Queued\r\n202 Queued\r\n200 OK 2\r\n" + item + b"200 OK\r\n")
        client.say(b"TOTAL once\r\nTOTAL never\r\n", b"200 OK 1 1 2 0\r\n200 OK 0 0 0 0\r\n")
        client.send(b"GETB kept EXPIRE 60 WITHIN 20 META\r\n")
        assert client.line().startswith(b"200 OK kept %d 0 1 KEY later TRY 1 AT " % (id_ + 2))
        client.say(b"", b"y")
        assert time.time() >= begun + 3
        client.say(b"DONE %d\r\nPUT kept 0 1 KEY later\r\ny" % (id_ + 2), b"200 OK FINQ\r\n409 Job Exists\r\n")
        client.say(b"PEEK kept DEAD\r\n", b"200 OK 1\r\nkept_dead - 0 1 DEAD KEY dead TRY 1\r\nx")
        client.say(b"PEEK %d\r\n" % (id_ + 1), b"200 OK held %d 0 1 RUNNING TRY 1 EXPIRE %s\r\nz" % (
            id_ + 1, after(600)), begun)
        client.say(b"DONE %d\r\n" % (id_ + 1), b"200 OK FINQ\r\n")
    cluster.restart(victim)
    cluster.wait_until_level()
    until(lambda: len({say(cluster.server(name), "CLUSTER HASH", 2.0) for name in cluster.names}) == 1)


def test_fan_out_topics_workers_and_queues_that_go_by_themselves_when_the_leader_is_killed(
    cluster: LocalCluster,
) -> None:
    victim = cluster.wait_for_leader()
    other = next(name for name in cluster.names if name != victim)
    fan_out = b"REQ 1 PUT fan_a|fan_b|fan_c 0 1\r\nxREQ 2 PUT @fan 0 1 ROUTE a.b\r\ny"
    with Speaker(cluster.server(victim)) as client, Speaker(cluster.server(other)) as listener:
        listener.send(b"SUBSCRIBE IDLE idle_*\r\n")
        assert listener.line().startswith(b"200 OK ")
        client.send(b"SESSION\r\n")
        session = client.line().split()[3]
        client.say(b"QUEUE CREATE bound_q BOUND\r\nQUEUE CREATE idle_q IDLE 2\r\nPUT idle_q 0 1\r\nz"
                   b"TOPIC BIND fan fan_a PATTERN a.*\r\nTOPIC BIND fan bound_q\r\n", b"200 OK\r\n" * 5)
        client.say(fan_out, b"200 OK 3\r\n200 OK 2\r\n")
        client.say(b"WORKER pool@host 8 5\r\nWORKER SET pool@host MAX 4 STATE PAUSE\r\n", b"200 OK\r\n" * 2)
        begun = time.monotonic()
        cluster.kill(victim)
        with Speaker(cluster.server(cluster.wait_for_leader())) as next_client:
            next_client.send(b"WORKER LIST\r\n")
            assert next_client.line() == b"200 OK 1\r\n"
            name, _, slots, busy, _, state = next_client.line().split()
            assert (name, slots, busy, state) == (b"pool@host", b"8", b"5", b"PAUSE")
            next_client.send(b"SESSION " + session + b"\r\n")
            assert next_client.line().endswith(b" LAST 2\r\n")
            next_client.say(b"WORKER pool@host 8 0\r\n", b"200 OK MAX 4 STATE PAUSE\r\n")
            next_client.say(fan_out, b"200 OK 3\r\n200 OK 2\r\n")       # again, and not done again
            next_client.say(b"TOTAL fan_a\r\nTOTAL fan_b\r\nTOTAL fan_c\r\nTOTAL bound_q\r\n",
                            b"200 OK 1 1 2 0\r\n" + b"200 OK 1 1 1 0\r\n" * 3)
            for queue in (b"fan_b", b"fan_c"):
                next_client.send(b"GET " + queue + b"\r\n")
                id_ = int(next_client.line().split()[3])
                next_client.say(b"DONE %d\r\n" % id_, b"x200 OK FINQ\r\n")
            assert listener.line().endswith(b" IDLE idle_q\r\n")
            assert time.monotonic() >= begun + 2                # the next leader counts from its beginning
            next_client.say(b"TOTAL idle_q\r\nSESSION CLOSE\r\n", b"200 OK 0 0 0 0\r\n200 OK\r\n")
            next_client.say(b"WORKER LIST\r\nTOTAL bound_q\r\n", b"200 OK 0\r\n200 OK 0 0 0 0\r\n")
            next_client.say(b"PUT @fan 0 1 ROUTE a.b\r\ny", b"200 OK 1\r\n")      # its binding went with it
            next_client.say(b"QUEUE DELETE fan_a FORCE\r\nTOPIC LIST\r\n", b"200 OK\r\n200 OK 0\r\n")
        listener.say(b"PING\r\n", b"200 OK\r\n")                # and nothing was said twice
    cluster.restart(victim)


def test_a_purge_that_a_dead_leader_left_is_ended_by_its_repetition(cluster: LocalCluster) -> None:
    jobs = 30_000
    with Client(cluster.servers, timeout=PATIENCE_S) as producer:       # a busy node may not lead to its end
        producer.put_many("vast", [b"x"] * jobs)
    victim = cluster.wait_for_leader()
    with Speaker(cluster.server(victim)) as client:
        client.send(b"SESSION\r\n")
        session = client.line().split()[3]
        client.send(b"REQ 1 QUEUE PURGE vast ALL\r\n")
        deadline = time.monotonic() + PATIENCE_S
        with Speaker(cluster.server(victim)) as watcher:
            while True:
                watcher.send(b"TOTAL vast\r\n")
                if watcher.line() != b"200 OK 1 1 %d 0\r\n" % jobs:
                    break
                assert time.monotonic() < deadline
        cluster.kill(victim)
    with Speaker(cluster.server(cluster.wait_for_leader())) as client:
        client.send(b"SESSION " + session + b"\r\n")
        client.line()
        for _ in range(2):
            client.say(b"REQ 1 QUEUE PURGE vast ALL\r\n", b"200 OK %d\r\n" % jobs)
        client.say(b"TOTAL vast\r\n", b"200 OK 0 0 0 0\r\n")
    cluster.restart(victim)


def test_who_waits_is_told_when_the_leader_goes(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    lines = [b"GETB none WITHIN 600", b"GETB * IS none", b"GETB none COUNT 5", b"PUT w 0 0 NEW WAIT none WITHIN 600"]
    speakers = [Speaker(cluster.server(leader)) for _ in lines]
    for speaker, line in zip(speakers, lines, strict=True):
        speaker.send(line + b"\r\n")
    assert speakers[-1].line().startswith(b"206 Wait for output IS ")
    assert cluster.terminate(leader) == 0
    for speaker in speakers:
        with speaker:
            assert speaker.line() == b"500 Offline Mode\r\n"
    cluster.restart(leader)
    for name in cluster.names:
        assert "Traceback" not in cluster.logs(name), cluster.logs(name)
