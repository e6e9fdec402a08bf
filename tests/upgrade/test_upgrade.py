"""The present program goes on with the data directories that its predecessors left behind.

`data/` has one directory for each format that was or will be released: NAME.tar.xz, and NAME.json that says what must
be in it. All of them must stay readable; a test here runs for each. When the format of the journal, of snapshots, of
core's state or of log entries is changed after a release, first keep what the old program writes:

    git worktree add ../before <the last commit with the old format>
    PYTHONPATH=../before:../before/client/src .venv/bin/python tests/upgrade/directories.py entry4

and commit the two files. No test needs to be changed for that. What is left of 1.0.0rc1, before the formats were
final, is in `data/candidate` (test_candidate.py).
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
import sockpq

from devcluster.cluster import LocalCluster, say
from sockpqd.cluster import ClusterListener, ClusterNode, Member, NodeSettings
from tests.upgrade.at_once import applied_at_once
from tests.upgrade.directories import DATA, LEASE_MAX_S, stopped_node, unpack

NAMES = sorted(path.stem for path in DATA.glob("*.json"))


def description(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    return found


def test_there_is_something_to_upgrade() -> None:
    assert "entry3" in NAMES
    for name in NAMES:
        expected = description(name)
        assert sum(len(jobs) for jobs in expected["waiting"].values()) > 100
        assert {bool(job["lease_s"]) for job in expected["running"]} == {True, False}
        assert len(expected["snapshots"]) == 2
        assert len(expected["journal"]) > 2


def check_all_is_there(client: sockpq.Client, expected: dict[str, Any]) -> None:
    """Check the state of the cluster with calls that only read."""
    jobs = expected["waiting"]
    priorities = sum(len({job[0] for job in jobs[queue]}) for queue in jobs)
    queues = {job["queue"] for job in expected["running"]} | set(jobs)
    assert client.total() == (
        len(queues), priorities, sum(map(len, jobs.values())), len(expected["running"]),
    )
    running = client.running(data=True)
    assert [(job.id, job.queue, job.priority, job.data) for job in running] == [
        (job["id"], job["queue"], job["priority"], job["data"].encode()) for job in expected["running"]
    ]
    for found, job in zip(running, expected["running"], strict=True):
        assert (found.expires_at is None) == (job["lease_s"] == 0)
        if job["lease_s"] == LEASE_MAX_S:
            assert found.expires_at is not None
            assert found.expires_at > time.time() + 50 * 365 * 86400


def check_it_can_be_used(client: sockpq.Client, expected: dict[str, Any]) -> None:
    """Check by taking everything out, and putting something in."""
    assert client.put("mail", b"new", priority=-100, new_item=True).item not in items_of(expected)
    last = max(job["id"] for job in expected["running"])
    for queue, jobs in expected["waiting"].items():
        for priority, item, data in [*jobs, *[[-100, None, "new"]] * (queue == "mail")]:
            job = client.get(queue, expire=600)
            assert job is not None
            assert (job.priority, job.data) == (priority, data.encode())
            assert data == "new" or job.item == item
            assert job.id > last
            last = job.id
            job.done()
    for job in expected["running"][1:]:
        client.done(job["id"])
    client.later(expected["running"][0]["id"])
    back = client.get(expected["running"][0]["queue"], expire=600)
    assert back is not None
    assert back.data == expected["running"][0]["data"].encode()
    assert back.done().queue_done
    assert client.total() == (0, 0, 0, 0)


def items_of(expected: dict[str, Any]) -> set[str | None]:
    waiting = {job[1] for jobs in expected["waiting"].values() for job in jobs}
    return waiting | {job["item"] for job in expected["running"]}


def restart(cluster: LocalCluster) -> None:
    cluster.restart("n1")
    cluster.wait_for_leader()


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_node_of_an_older_program_goes_on_with_everything(name: str) -> None:
    expected = description(name)
    with stopped_node(name) as cluster, sockpq.Client(cluster.servers) as client:
        restart(cluster)
        check_all_is_there(client, expected)
        assert cluster.terminate("n1") == 0             # now there is a tail of the present format
        restart(cluster)
        check_all_is_there(client, expected)
        answer = say(cluster.server("n1"), "CLUSTER SNAPSHOT", 20.0)
        assert answer is not None
        assert answer.startswith("200 OK "), answer
        cluster.kill("n1")                              # and now a snapshot as well
        restart(cluster)
        check_all_is_there(client, expected)
        check_it_can_be_used(client, expected)
        assert "Traceback" not in cluster.logs("n1")


class Deaf(ClusterListener):
    """A listener that does nothing."""


@pytest.mark.parametrize("name", NAMES)
def test_the_log_of_an_older_program_has_the_results_that_it_had(name: str, tmp_path: Path) -> None:
    """Otherwise replicas of two versions would differ while a cluster is upgraded node by node."""
    expected = description(name)
    unpack(DATA / f"{name}.tar.xz", tmp_path / "n1")

    async def recovered() -> tuple[int, bytes]:
        members = (Member("n1", "127.0.0.1:1", "127.0.0.1:2"),)
        settings = NodeSettings("n1", tmp_path / "n1", "127.0.0.1:0", members, "test")
        node = ClusterNode(settings, Deaf())
        with applied_at_once():
            await node.start()
        found = node.state_hash()       # no turn was taken yet: nothing but what the directory holds
        await node.stop()
        return found

    index, value = asyncio.run(recovered())
    assert (index, value.hex()) == (expected["applied"], expected["hash"])
