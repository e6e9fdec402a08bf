"""Results of the faults with other systems, in proof/peers.jsonl, and their table in docs/PROOF.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from tests.proof.peers.episode import Episode

FILE = "peers.jsonl"
COLUMNS = ("date", "system", "seed", "minutes", "episodes", "void", "faults", "confirmed", "unknown", "lost",
           "doubled", "longest gap (s)")


class Run(Struct):
    """All episodes of one command."""

    date: str                               # and time of its beginning, UTC
    system: str                             # and version
    machine: str
    seed: int
    minutes: float
    episodes: list[Episode] = field(default_factory=list)


def note(folder: Path, run: Run) -> None:
    """Add a run to those in this folder, or put it in the place of what was noted of it before."""
    folder.mkdir(exist_ok=True)
    others = [one for one in read(folder) if (one.date, one.system, one.seed) != (run.date, run.system, run.seed)]
    new = folder / f"{FILE}.new"
    new.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in (*others, run)))
    new.replace(folder / FILE)


def read(folder: Path) -> list[Run]:
    """All runs in this folder, in their order."""
    path = folder / FILE
    return [msgspec.json.decode(line, type=Run) for line in path.read_bytes().splitlines()] if path.exists() else []


def table(runs: Sequence[Run]) -> Iterator[str]:
    """The lines of a table with a row for each run, and a line for each episode that is void or lost jobs."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---" * len(COLUMNS) + "|"
    for run in runs:
        episodes = run.episodes
        figures = (
            run.date, run.system, run.seed, f"{run.minutes:g}", len(episodes), sum(bool(one.void) for one in episodes),
            sum(len(one.strikes) for one in episodes), f"{sum(one.confirmed for one in episodes):,}",
            f"{sum(one.unknown for one in episodes):,}", f"{sum(len(one.lost) for one in episodes):,}",
            f"{sum(len(one.doubled) for one in episodes):,}", f"{max((one.gap_s for one in episodes), default=0):.1f}",
        )
        yield f"| {' | '.join(map(str, figures))} |"
    yield ""
    for run in runs:
        for one in run.episodes:
            if one.lost or one.invented or one.void:
                kinds = Counter(strike.kind for strike in one.strikes)
                what = [f"{len(one.lost):,} jobs lost"] * bool(one.lost)
                what += [f"{len(one.invented):,} invented"] * bool(one.invented)
                what += [f"void: {line}" for line in one.void.splitlines()[:1]]
                befell = ", ".join(f"{kind} ({times})" for kind, times in kinds.items()) or "none"
                yield f"* {run.system}, seed {run.seed}, episode {one.number}: {'; '.join(what)}. Faults: {befell}"
