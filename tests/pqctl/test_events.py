"""`pqctl events` against real nodes, one of which is killed."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest
from sockpq import Client, Event

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.live.events import sentence
from sockpqd.pqctl.output.exit_codes import DONE, INTERRUPTED, USAGE_ERROR
from tests.pqctl.running import PATIENCE_S, execute, start


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(3) as started:
        started.wait_for_leader()
        started.wait_until_level()
        yield started


def finish(client: Client, queue: str, item: str) -> None:
    """Put and finish a job."""
    client.put(queue, b"", item=item)
    job = client.get(queue, expire=60)
    assert job is not None
    job.done()


def test_a_message_is_shown_in_one_line() -> None:
    shown_as = {b"hello": "hello", "grün".encode(): "grün", b"a\nb\x1b[0m": r"a\nb\x1b[0m", b"\xff": r"\xff"}
    for data, shown in shown_as.items():
        event = Event(7, "MSG", "news", None, None, ("news", str(len(data))), data)
        assert sentence(event) == f"7 MSG news {len(data)} {shown}"


def test_events_are_followed_through_a_killed_leader(cluster: LocalCluster) -> None:
    servers = ",".join(cluster.servers)
    with Client(cluster.servers) as client:
        known = client.events(["FINQ", "FINI"], wait=1.0)
        assert list(known) == []        # by now all servers record these
        program = start(
            "--servers", servers, "events", "--type", "FINQ", "--type", "FINI", "--queue", "order_*", "--json",
            "--after", str(known.position),
        )
        assert program.stdout is not None
        finish(client, "other", "order_1")
        first = json.loads(program.stdout.readline())
        assert (first["type"], first["name"], first["words"]) == ("FINI", "order_1", ["order_1"])
        killed = cluster.wait_for_leader()
        cluster.kill(killed)
        finish(client, "order_q", "other")
        second = json.loads(program.stdout.readline())
        assert (second["type"], second["name"]) == ("FINQ", "order_q")
        assert second["seq"] > first["seq"]
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=PATIENCE_S)
    assert program.returncode == INTERRUPTED
    cluster.restart(killed)
    cluster.wait_until_level()


def test_events_end_after_a_wait_and_say_what_is_lost(cluster: LocalCluster) -> None:
    with Client(cluster.servers) as client:
        finish(client, "q", "i")
    ended = execute(cluster.servers, "events", "--type", "TTL", "--after", "1", "--wait", "0.5")
    assert ended.returncode == DONE
    assert ended.stdout == b""
    assert b"may be lost" in ended.stderr
    nothing = execute(cluster.servers, "events", "--type", "NOTHING")
    assert nothing.returncode == USAGE_ERROR
    assert b"there is no type of events 'NOTHING'; there are FINQ, FINI" in nothing.stderr
    quiet = execute(cluster.servers, "events", "--type", "TTL", "--wait", "0.5")
    assert b"no such event within 0.5 s\n" in quiet.stderr
