"""`pqctl item`, and jobs that wait for the outcome of an item, against real nodes."""

from __future__ import annotations

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE
from tests.pqctl.running import ask, run
from tests.waiting import until


def test_an_item_is_shown_and_retried(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    servers = nodes.servers

    def told(*arguments: str) -> str:
        code, out, err = run(capsys, "--servers", ",".join(servers), *arguments)
        assert (code, err) == (DONE, "")
        return out
    with Client(servers) as client:
        client.put_many("parts", [b"a", b"b"], item="album_7")
        told("job", "put", "bill", "x", "--after", "album_7", "--item", "order_1")
        told("job", "put", "sorry", "x", "--after", "album_7", "--when", "failed", "--item", "order_1")
        for _ in range(2):
            (job,) = client.get_many(1, "parts", expire=60)
            job.bury() if job.data == b"b" else job.done()
        assert told("item", "show", "album_7") == (
            "album_7: 1 unfinished job (1 dead); 1 done; 1 job waits for it\n")
        assert ask(capsys, servers, "item", "show", "album_7")[1] == {
            "item": "album_7", "ready": 0, "delayed": 0, "running": 0, "dead": 1, "buried": 0, "done": 1, "waiters": 1,
            "cancelled": 0, "held": False, "cancelling": False,
        }
        assert [line.split() for line in told("item", "list").splitlines()] == [
            ["item", "unfinished", "dead", "held", "cancelled"], ["album_7", "1", "1", "-", "-"],
            ["order_1", "2", "0", "-", "-"],
        ]
        assert ask(capsys, servers, "item", "list", "order") == (DONE, {"items": [
            {"name": "order_1", "unfinished": 2, "dead": 0, "held": False, "cancelling": False}]})
        assert told("item", "list", "nosuch") == "there is no item whose name begins with nosuch\n"
        assert told("item", "retry", "album_7") == "1 job of album_7 put back\n"
        (job,) = client.get_many(1, "parts", expire=60)
        job.done()
        assert "not queued" in told("job", "put", "sorry", "x", "--after", "album_7", "--when", "failed")
        code, put = ask(capsys, servers, "job", "put", "sorry", "x", "--after", "album_7", "--when", "failed")
        assert (code, put["dropped"]) == (DONE, True)
        client.queue_delete("bill", force=True)
        client.queue_delete("sorry", force=True)
        assert told("item", "list") == "there is no item\n"
        assert told("item", "hold", "album_8", "--expire", "60") == (
            "album_8 is held until `pqctl item release album_8`; without that it is cancelled after 60 s\n")
        assert told("item", "show", "album_8") == "album_8: 0 unfinished jobs; 0 done; held\n"
        new = ask(capsys, servers, "item", "hold", "--expire", "60", "--then", "release")[1]["item"]
        assert [line.split()[::3] for line in told("item", "list", "--held").splitlines()[1:]] == sorted(
            [["album_8", "yes"], [new, "yes"]])
        assert told("item", "release", "album_8") == "album_8 is no longer held, and has ended\n"
        assert ask(capsys, servers, "item", "release", new) == (DONE, {"item": new, "ended": True})
        assert told("item", "list", "--held") == "there is no held item\n"
        client.put_many("parts", [b"a", b"b"], item="album_9")
        (job,) = client.get_many(1, "parts", expire=60)
        assert told("item", "cancel", "album_9", "--yes", "--reason", "late") == "album_9 is cancelled, with 2 jobs\n"
        until(lambda: client.item_stat("album_9").cancelled)        # it is removed behind the answer
        assert told("item", "show", "album_9") == (
            "album_9: 1 unfinished job (1 running); 0 done, 1 cancelled; it is cancelled, and ends with its running "
            "jobs\n")
        job.done()
