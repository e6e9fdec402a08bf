"""Everything that a node can remember is read from disk as it was written, and written again as the same bytes.

`data/scenario/` has a data directory for each format: NAME.tar.xz, and NAME.json that says what is in it. They are
recorded by scenario.py. When a format is changed, record one of the new format beside those that are there:

    .venv/bin/python -m tests.upgrade.scenario NAME

A directory whose formats are those of this program (the newest) is held to more: the same bytes. Of directories whose
log no program reads any more there are the snapshots alone, SNAPSHOTS.tar.xz and what they hold.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.cluster import LocalCluster
from sockpqd.core import Machine
from tests.upgrade.directories import unpack
from tests.upgrade.scenario import SCENARIO, Connection, described, hashed, read, streams

NAMES = sorted(path.stem for path in SCENARIO.glob("format*.json"))
SNAPSHOTS = sorted(path.stem for path in SCENARIO.glob("snapshot*.json"))
NEWEST = "format6"
NUMBERED = {"format6": 12}          # sessions whose numbered commands are repeated, of both parts

# The kinds of frames of a snapshot, and of answers that sessions keep, by their names on disk.
FRAMES = (
    "head", "settings", "queues", "waiting", "delayed", "running", "released", "counted", "kept", "sessions", "session",
    "users", "clone", "chunk", "end", "pulses", "pulse", "fair", "groups", "used", "bindings", "workers",
    "oldest", "buried",
)
ANSWERS = (
    "stored", "handed", "handed many", "empty", "finished", "rearmed", "leased", "removed", "plain", "aborted",
    "results", "turn", "ticket not found", "pulse exists", "pulse not found", "pulse in use",
    "spread", "bounds", "topic not found", "binding not found", "worker not found", "bad setting",
    "accepted", "not found", "invalid", "job exists", "job ignored", "job replaced", "job running",
    "queue not found", "queue exists", "queue not empty", "queue full", "queue paused", "too large",
)


def description(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCENARIO / f"{name}.json").read_text("utf-8"))
    return found


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Unpack the newest recorded data directory, and return it."""
    unpack(SCENARIO / f"{NEWEST}.tar.xz", tmp_path / "n1")
    return tmp_path / "n1"


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_state_is_read_from_snapshot_and_journal(name: str, tmp_path: Path) -> None:
    unpack(SCENARIO / f"{name}.tar.xz", tmp_path / "n1")
    expected, found = description(name), read(tmp_path / "n1")
    assert json.loads(json.dumps(found.state)) == expected["state"]
    assert found.chain == expected["hash"]          # of all entries, and what each was answered


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_whole_state_is_read_from_an_older_snapshot(name: str, tmp_path: Path) -> None:
    unpack(SCENARIO / f"{name}.tar.xz", tmp_path / "n1")
    (stream,) = streams(tmp_path / "n1")
    machine = Machine()
    machine.restore([stream])
    assert json.loads(json.dumps(described(machine))) == description(name)["state"]


def test_the_state_is_written_as_the_same_bytes(data_dir: Path) -> None:
    assert read(data_dir).snapshot == description(NEWEST)["snapshot"]


def test_a_snapshot_that_was_read_is_written_as_the_same_bytes(data_dir: Path) -> None:
    (stream,) = streams(data_dir)
    machine = Machine()
    machine.restore([stream])
    assert hashed(b"".join(machine.snapshot())) == hashed(stream)
    assert described(machine)["total"] != description(NEWEST)["state"]["total"]        # much is in the journal only


def test_entries_that_were_read_are_written_as_the_same_bytes(data_dir: Path) -> None:
    journal = b"".join(path.read_bytes() for path in sorted((data_dir / "journal").glob("journal-*")))
    entries = read(data_dir).entries
    assert len(entries) > 100
    assert [entry for entry in entries if entry not in journal] == []


def test_there_is_some_of_everything_in_the_snapshot(data_dir: Path) -> None:
    (stream,) = streams(data_dir)
    words = {word: bytes([0xa0 + len(word)]) + word.encode() for word in (*FRAMES, *ANSWERS)}       # MessagePack
    assert [word for word, encoded in words.items() if encoded not in stream] == []


@pytest.fixture(params=NAMES)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, LocalCluster]]:
    """Yield the name of a directory, and a node that was started with it."""
    with LocalCluster(1) as cluster:
        cluster.kill("n1")
        cluster.wipe("n1")
        unpack(SCENARIO / f"{request.param}.tar.xz", cluster.data_dir("n1"))
        cluster.restart("n1")
        until = time.monotonic() + 60
        while cluster.say("n1", "CLUSTER ONLINE", 5.0) != "200 OK Switched to Online Mode":
            assert time.monotonic() < until
        yield request.param, cluster


def test_numbered_commands_and_finished_keys_are_still_known(served: tuple[str, LocalCluster]) -> None:
    name, cluster = served
    expected = description(name)
    sessions: dict[str, Connection] = {}
    for asked in expected["asked"]:
        session = sessions.get(asked["session"])
        if session is None:
            session = sessions[asked["session"]] = Connection(cluster.server("n1"))
            assert session.ask(f"SESSION {asked['session']}").startswith("200 OK SESSION")
        answer = session.ask(asked["line"], asked["data"])
        assert answer.split(":")[0] == asked["answer"].split(":")[0], asked["line"]     # what is behind it is a reason
    assert len(sessions) == NUMBERED[name]
    with Connection(cluster.server("n1")) as connection:
        for queue, key in expected["kept keys"]:
            assert connection.ask(f"PUT {queue} 0 1 KEY {key}", "x") == "409 Job Exists"
            assert connection.ask(f"PUT {queue} 0 1 KEY {key}{key}", "x") == "200 OK"
    for session in sessions.values():
        session.close()
