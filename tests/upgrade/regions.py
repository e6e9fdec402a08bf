"""States of a cluster that played a part for another region, as a release writes them in its snapshots.

    .venv/bin/python -m tests.upgrade.regions level2        records data/regions/level2.json

Recorded again only until the release; from then on what is recorded stays, and test_regions.py holds every later
program to it. Of each state there are its bytes, and what must be found in it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sockpqd.core import (
    Accepted,
    Done,
    Fence,
    Get,
    Machine,
    MirrorChunk,
    MirrorEntries,
    MirrorFrame,
    Operation,
    Promote,
    Put,
    PutWith,
    SetUser,
    User,
    encode_entry,
)
from tests.core.helpers.logs import LogEntry, lead, snapshot_of
from tests.core.helpers.mirrors import Replica, begin_replica, frames_of
from tests.upgrade.scenario import described

REGIONS = Path(__file__).parent / "data" / "regions"
FENCED_FOR = "00112233445566ff"
CHAIN = b"hash of the chain"[:16]
GRACE_MS = 60_000
NOW_MS = 1_000_000


def log_of_origin() -> list[LogEntry]:
    """Some of what a log may have, and as its last entry what a copy has begun to take in."""
    steps: list[list[Operation]] = [
        [lead()],
        [Put("mail", 3, b"one"), Put("mail", -1, b"two"), PutWith(Put("mail", 0, b"three"), key="k", group="g")],
        [Put("scan", 0, b"of an item", "order"), Get(("mail",)), Get(("scan",), 9_000)],
        [Done(1), SetUser("ann", User("put:mail*", b"key of ann......"))],
        [Put("mail", 7, b"large" * 200)],
    ]
    return [LogEntry(NOW_MS + number, number, operations) for number, operations in enumerate(steps)]


def states() -> dict[str, Machine]:
    """Return a machine in each of the states, by name."""
    log = log_of_origin()
    *frames, last = frames_of(log)
    return {
        "copy": _copy(frames), "copy with a part": _copy_with_part(frames, last),
        "copy with a part of a snapshot": _copy_with_snapshot(log, frames), "promoted": _promoted(frames),
        "fenced": _fenced(log),
    }


def _copy(frames: list[MirrorFrame]) -> Machine:
    replica = Replica(Machine(), NOW_MS)
    replica.take(*frames)
    return replica.machine


def _copy_with_part(frames: list[MirrorFrame], last: MirrorFrame) -> Machine:
    replica = Replica(Machine(), NOW_MS)
    replica.take(*frames)
    part = MirrorFrame(last.index, last.data[:len(last.data) // 2])
    replica.log(MirrorEntries(replica.reached, (part,), last=False))
    return replica.machine


def _copy_with_snapshot(log: list[LogEntry], frames: list[MirrorFrame]) -> Machine:
    origin = Machine()
    for entry in log:
        origin.apply(origin.index + 1, *entry)
    data = b"".join(origin.export(users=True))
    replica = Replica(Machine(), NOW_MS)
    replica.take(*frames[:2])
    half = len(data) // 2
    replica.log(MirrorChunk(origin.index, 0, b"", len(data), CHAIN), MirrorChunk(origin.index, 0, data[:half]))
    return replica.machine


def _promoted(frames: list[MirrorFrame]) -> Machine:
    machine = _copy(frames)
    machine.apply(machine.index + 1, NOW_MS, 0, [Promote(GRACE_MS)])
    return machine


def _fenced(log: list[LogEntry]) -> Machine:
    machine = Machine()
    begin_replica(machine, NOW_MS)
    for entry in log[1:]:
        machine.apply(machine.index + 1, *entry)
    (reply,) = machine.apply(machine.index + 1, NOW_MS, 0, [Fence(FENCED_FOR)]).replies
    assert isinstance(reply, Accepted)
    return machine


def rest_of(name: str) -> list[Operation]:
    """Return what brings each copy to the end of the origin's log: the rest of what had come in part, or entries."""
    log = log_of_origin()
    *frames, last = frames_of(log)
    half = len(last.data) // 2
    if name == "copy with a part":
        return [MirrorEntries(frames[-1].index, (MirrorFrame(last.index, last.data[half:]),), half)]
    if name == "copy with a part of a snapshot":
        origin = Machine()
        for entry in log:
            origin.apply(origin.index + 1, *entry)
        data = b"".join(origin.export(users=True))
        return [MirrorChunk(origin.index, len(data) // 2, data[len(data) // 2:])]
    return [MirrorEntries(frames[-1].index, (last,))]


def found(machine: Machine) -> dict[str, Any]:
    """Describe what there is; of a copy that is its mirror."""
    return {
        "state": json.loads(json.dumps(described(machine))), "level": machine.level, "fenced": machine.fenced,
        "mirrored": machine.mirrored, "origin": machine.origin_id.hex() if machine.origin_id else None,
    }


def ended(name: str, machine: Machine) -> dict[str, Any]:
    """Bring a copy to the end of the log, and describe it."""
    machine.apply(machine.index + 1, NOW_MS, 0, rest_of(name))
    return found(machine)


def main(name: str) -> None:
    """Record data/regions/NAME.json."""
    REGIONS.mkdir(exist_ok=True)
    recorded = {}
    for state, machine in states().items():
        recorded[state] = {"snapshot": snapshot_of(machine).hex(), **found(machine)}
        if machine.mirrored is not None:
            recorded[state]["rest"] = encode_entry(NOW_MS, 0, rest_of(state)).hex()
            recorded[state]["with the rest"] = ended(state, machine)
    (REGIONS / f"{name}.json").write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
