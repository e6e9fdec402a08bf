"""Results of the proof: pieces, each a run of some minutes with one seed, made of episodes with a cluster each."""

from __future__ import annotations

import hashlib
import lzma
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from tests.chaos.beanstalkd.deeds import Deed, Deeds
from tests.chaos.checker import Facts
from tests.chaos.workload.history import Cut, History, Outcome, Record
from tests.proof.mixture import Round

PIECES = "pieces.jsonl"
HISTORIES = "histories"
PUBLISH_BYTES_MAX = 4 << 20      # of all pieces: then histories have a digest only
PASSED, FAILED, VOID = "passed", "failed", "void"


class Episode(Struct):
    """One cluster and its history."""

    number: int
    seed: int
    nodes: int
    variants: tuple[str, ...]
    verdict: str = PASSED
    reason: str = ""                        # why it is void
    violations: tuple[str, ...] = ()
    seconds: float = 0.0                    # of load and faults
    gap_s: float = 0.0                      # the longest time without an acknowledged command
    commands: int = 0                       # of native clients
    acknowledged: int = 0
    refused: int = 0
    unknown: int = 0
    beanstalkd: int = 0                     # commands of clients of beanstalkd
    awaited: int = 0                        # tasks whose results were waited for (AWAIT)
    celery: int = 0                         # tasks of Celery's
    faults: dict[str, int] = field(default_factory=dict)
    digest: str = ""                        # SHA-256 of the uncompressed history
    history: str = ""                       # the file that has it, if it is published


class Piece(Struct):
    """The results of one `make proof`."""

    date: str                               # and time of its beginning, UTC
    system: str                             # "sockpqd 1.0.0", or another one that the same faults befell
    commit: str
    wheels: dict[str, str]                  # SHA-256 of each
    machine: str                            # kernel, Python, processors
    seed: int
    minutes: float
    episodes: list[Episode] = field(default_factory=list)
    left_out: tuple[str, ...] = ()          # faults that this machine cannot have, and why

    @property
    def faults(self) -> Counter[str]:
        """Return how often each kind of fault struck."""
        total: Counter[str] = Counter()
        for episode in self.episodes:
            total.update(episode.faults)
        return total

    def verdicts(self, verdict: str) -> int:
        """Return how many episodes ended so."""
        return sum(episode.verdict == verdict for episode in self.episodes)


class Evidence(Struct):
    """All that is known of an episode."""

    history: History
    deeds: Deeds
    rounds: list[Round]
    facts: Facts | None                     # None when it ended before the checker was asked


def count(episode: Episode, evidence: Evidence) -> None:
    """Note what happened in it."""
    outcomes = Counter(record.outcome for record in evidence.history.records)
    episode.commands = len(evidence.history.records)
    episode.acknowledged = outcomes[Outcome.OK]
    episode.refused, episode.unknown = outcomes[Outcome.NOT_EXECUTED], outcomes[Outcome.UNKNOWN]
    episode.beanstalkd = len(evidence.deeds.deeds)
    seen = [one for one in evidence.rounds if one.evidence and not one.missing]
    kinds = Counter(word for one in seen for word in (one.struck, one.weather) if word)
    episode.faults = dict(sorted(kinds.items()))


def lines_of(evidence: Evidence) -> Iterator[bytes]:
    """The whole evidence as lines of JSON, whose first words say what they are."""
    parts: dict[str, Sequence[Struct]] = {
        "facts": [evidence.facts] if evidence.facts else [], "round": evidence.rounds,
        "command": evidence.history.records, "cut": evidence.history.cuts, "deed": evidence.deeds.deeds,
    }
    for word, structs in parts.items():
        for one in structs:
            yield word.encode() + b" " + msgspec.json.encode(one) + b"\n"
    if evidence.deeds.ended:
        yield b"ended " + msgspec.json.encode(evidence.deeds.ended) + b"\n"


def evidence_of(lines: Iterable[bytes]) -> Evidence:
    """Return the evidence in the lines that `lines_of` wrote."""
    facts, history, deeds = None, History(), Deeds()
    rounds: list[Round] = []
    for line in lines:
        word, _, data = line.partition(b" ")
        if word == b"facts":
            facts = msgspec.json.decode(data, type=Facts)
        elif word == b"round":
            rounds.append(msgspec.json.decode(data, type=Round))
        elif word == b"command":
            history.records.append(msgspec.json.decode(data, type=Record))
        elif word == b"cut":
            history.cuts.append(msgspec.json.decode(data, type=Cut))
        elif word == b"ended":
            deeds.ended = msgspec.json.decode(data, type=dict[int, int])
        else:
            deeds.deeds.append(msgspec.json.decode(data, type=Deed))
    return Evidence(history, deeds, rounds, facts)


def save(path: Path, lines: Iterator[bytes], *, publish: bool) -> str:
    """Compress the lines into this file, if it is to be published; returns their digest in any case."""
    digest, packer, parts = hashlib.sha256(), lzma.LZMACompressor(preset=9 | lzma.PRESET_EXTREME), []
    for line in lines:
        digest.update(line)
        if publish:
            parts.append(packer.compress(line))
    if publish:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join([*parts, packer.flush()]))
    return digest.hexdigest()


def published_bytes(folder: Path) -> int:
    """Return how much the histories in this folder take."""
    return sum(path.stat().st_size for path in (folder / HISTORIES).rglob("*.xz"))


def load(path: Path) -> Evidence:
    """Read what `save` has compressed."""
    return evidence_of(lzma.decompress(path.read_bytes()).splitlines())


def note(folder: Path, piece: Piece) -> None:
    """Add a piece to those in this folder, or put it in the place of what was noted of it before."""
    folder.mkdir(exist_ok=True)
    others = [one for one in read(folder) if (one.date, one.seed) != (piece.date, piece.seed)]
    new = folder / f"{PIECES}.new"
    new.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in (*others, piece)))
    new.replace(folder / PIECES)


def read(folder: Path) -> list[Piece]:
    """All pieces in this folder, in the order in which they were run."""
    path = folder / PIECES
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Piece) for line in lines]
