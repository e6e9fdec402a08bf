"""Checks that each heartbeat of a worker pool is answered with the operator's latest setting.

The last MAX is a register: a heartbeat reads it, WORKER SET writes it, and each write has a value of its own. A write
of unknown outcome takes effect at any later time, at most once, and by the end of the first heartbeat that returns it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct

from tests.chaos.checker.evidence.moments import NEVER, is_ok, latest
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import Beat, Outcome, Record, Steer


class _Write(Struct):
    """A WORKER SET that took effect not before its start, and if at all not after `latest_ns`."""

    record: Record
    latest_ns: int


class _Pool(Struct):
    """The settings given to a pool, by value, and the heartbeats that were answered."""

    writes: dict[int, _Write]
    beats: list[Record]


def steering(records: Iterable[Record], teller: Teller) -> Iterator[Violation]:
    """Check that no heartbeat returns an invented setting, a certainly replaced one, or none although one was made."""
    pools: dict[str, _Pool] = defaultdict(lambda: _Pool({}, []))
    missing: list[tuple[str, Record]] = []
    for record in records:
        match record.command:
            case Steer(name, most) if record.missing:
                missing.append((name, record))
            case Steer(name, most) if record.outcome is not Outcome.NOT_EXECUTED:
                pools[name].writes[most] = _Write(record, latest(record))
            case Beat(name) if is_ok(record):
                pools[name].beats.append(record)
    for pool in pools.values():
        for beat in pool.beats:
            if beat.told in pool.writes:
                write = pool.writes[beat.told]
                write.latest_ns = min(write.latest_ns, latest(beat))
        for beat in pool.beats:
            wrong = _wrong(beat, pool, teller)
            if wrong:
                yield Violation("worker", f"{teller.record(beat)} was told MAX {beat.told}, {wrong}", (beat,))
    for name, record in missing:
        before = [beat for beat in pools[name].beats if latest(beat) < record.start_ns]
        if before:
            text = f"{teller.record(record)} found no such pool, in spite of {teller.record(before[0])}"
            yield Violation("worker", text, (before[0], record))


def _wrong(beat: Record, pool: _Pool, teller: Teller) -> str:
    """Return why this answer cannot be right; empty if it can."""
    since_ns = -NEVER
    if beat.told is not None:
        write = pool.writes.get(beat.told)
        if write is None or write.record.start_ns > latest(beat):
            return "which nobody had said"
        since_ns = write.latest_ns
    for other in pool.writes.values():
        if since_ns < other.record.start_ns and other.latest_ns < beat.start_ns:
            return f"in spite of {teller.record(other.record)}"
    return ""
