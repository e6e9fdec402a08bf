"""A backup that a release made is read by every later program, and restored by it into a cluster."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sockpq

from devcluster.cluster import LocalCluster
from tests.upgrade.backups import BACKUPS, pqctl, state_of

NAMES = sorted(path.stem for path in BACKUPS.glob("*.json"))
ITEM, KEY, DATA = 1, 2, 3           # of a job in a description
COUNTS_OF_RC1 = 6                   # of what a job with a number counts, 1.0.0rc1 knew so many
LINES_SINCE_RC1 = ("RETAINED", "RETAINED_BYTES")
# The parts of a state that a restore sets, and that do not change while leases and delays end.
LASTING = ("topics", "users", "online")


def recorded(name: str) -> tuple[bytes, dict[str, Any]]:
    """Return the file and its contents."""
    description: dict[str, Any] = json.loads((BACKUPS / f"{name}.json").read_text("utf-8"))
    return lzma.decompress((BACKUPS / f"{name}.snapshot.xz").read_bytes()), description


def test_those_of_the_candidate_and_of_the_first_level_are_there() -> None:
    assert {"rc1", "level1"} <= set(NAMES)


def as_rc1_says(state: dict[str, Any]) -> dict[str, Any]:
    """Leave out what 1.0.0rc1 did not count."""
    return {
        **state,
        "jobs with a number": [
            [*job[:3], job[3][:COUNTS_OF_RC1], *job[4:]] for job in state["jobs with a number"]
        ],
        "more lines": {
            queue: [line for line in lines if line[0] not in LINES_SINCE_RC1]
            for queue, lines in state["more lines"].items()
        },
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_state_is_read(name: str) -> None:
    data, expected = recorded(name)
    found = state_of(data)
    assert (as_rc1_says(found) if name == "rc1" else found) == expected["state"]


def jobs(state: dict[str, Any]) -> Counter[tuple[str | None, str | None, str]]:
    """Return item, key and data of all jobs, wherever they are by now."""
    return Counter(
        (job[ITEM], job[KEY], job[DATA])
        for queue in state["queues"].values() for found in queue["jobs"].values() for job in found
    )


@pytest.mark.parametrize("name", NAMES)
def test_it_is_restored_with_its_users(name: str, tmp_path: Path) -> None:
    data, expected = recorded(name)
    file = tmp_path / "old.snapshot"
    file.write_bytes(data)
    with LocalCluster(1) as cluster, sockpq.Client(cluster.servers) as client:
        server = cluster.server("n1")
        verified = pqctl(server, "verify", str(file))
        assert (verified["level"], verified["users"]) == (expected["level"], expected["users"])
        client.put("replaced", b"x")
        done = pqctl(server, "restore", str(file), "--with-users", "--yes")
        assert done["restored"]
        assert done["replaced"]["waiting"] == 1
        again = state_of(Path(pqctl(server, "backup", str(tmp_path), "--with-users")["file"]).read_bytes())
        state = expected["state"]
        assert {word: again[word] for word in LASTING} == {word: state[word] for word in LASTING}
        assert {queue: one["settings"] for queue, one in again["queues"].items()} == {
            queue: one["settings"] for queue, one in state["queues"].items()}
        assert jobs(again) == jobs(state)
        client.put("a.scratch", b"y", priority=1000)
        job = client.get("a.scratch")
        assert job is not None
        assert job.data == b"y"
