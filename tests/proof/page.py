"""Writes the tables of docs/PROOF.md from the pieces and runs in proof/: `python -m tests.proof.page`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import shorten

from tests.proof.mixture import KINDS
from tests.proof.peers import results as peers
from tests.proof.results import FAILED, HISTORIES, PASSED, VOID, Piece, read

ROOT = Path(__file__).parents[2]
PAGE, RESULTS = ROOT / "docs" / "PROOF.md", ROOT / "proof"
COLUMNS = ("date", "system", "commit", "seed", "minutes", "episodes", "passed", "failed", "void", "commands",
           "acknowledged", "faults")
WHYS = 3        # of an episode, at most; its history has all,
WHY_CHARACTERS = 100    # and each of them whole
BEGIN, END = "<!-- made by tests/proof/page.py: begin -->", "<!-- made by tests/proof/page.py: end -->"
PEERS_BEGIN, PEERS_END = BEGIN.replace("begin", "peers begin"), END.replace("end", "peers end")


def tables(pieces: Sequence[Piece]) -> str:
    """Return what stands between BEGIN and END: sums, faults, pieces, and each episode that did not pass."""
    lines = [*_sums(pieces), "", *_faults(pieces), "", *_pieces(pieces)]
    told = list(_not_passed(pieces))
    return "\n".join([*lines, "", *(told or ["No episode failed, and none was void."])])


def write(page: Path, results: Path) -> bool:
    """Put the tables into the page; returns whether that changed it."""
    before = page.read_text("utf-8")
    after = _between(before, BEGIN, END, tables(read(results)))
    after = _between(after, PEERS_BEGIN, PEERS_END, "\n".join(peers.table(peers.read(results))).rstrip())
    page.write_text(after, "utf-8")
    return after != before


def _between(text: str, begin: str, end: str, inner: str) -> str:
    if begin not in text:
        return text
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}\n\n{inner}\n\n{end}{tail}"


def _sums(pieces: Sequence[Piece]) -> Iterator[str]:
    episodes = [episode for piece in pieces for episode in piece.episodes]
    hours = sum(episode.seconds for episode in episodes) / 3600
    yield (f"So far: {_counted(len(pieces), 'piece')}, {_counted(len(episodes), 'episode')}, {hours:.1f} hours, "
           f"{sum(episode.commands for episode in episodes):,} commands of native clients and "
           f"{sum(episode.beanstalkd for episode in episodes):,} of clients of beanstalkd, "
           f"{sum(sum(episode.faults.values()) for episode in episodes):,} faults; "
           f"failed: {_counted(_verdicts(pieces, FAILED), 'episode')}; void: {_verdicts(pieces, VOID)}.")


def _faults(pieces: Sequence[Piece]) -> Iterator[str]:
    yield "| fault | times |"
    yield "|---|---|"
    for kind in KINDS:
        if times := sum(piece.faults[kind] for piece in pieces):
            yield f"| {kind} | {times} |"


def _pieces(pieces: Sequence[Piece]) -> Iterator[str]:
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---" * len(COLUMNS) + "|"
    for piece in pieces:
        episodes = piece.episodes
        yield (f"| {piece.date} | {piece.system} | {piece.commit[:12]}{', changed' * piece.commit.endswith('changed')} "
               f"| {piece.seed} | {piece.minutes:g} | {len(episodes)} | {piece.verdicts(PASSED)} "
               f"| {piece.verdicts(FAILED)} | {piece.verdicts(VOID)} | {sum(one.commands for one in episodes):,} "
               f"| {sum(one.acknowledged for one in episodes):,} | {sum(piece.faults.values())} |")


def _not_passed(pieces: Sequence[Piece]) -> Iterator[str]:
    for piece in pieces:
        for episode in piece.episodes:
            if episode.verdict != PASSED:
                lines = [shorten(line.splitlines()[0], WHY_CHARACTERS, placeholder=" ..")
                         for line in (*episode.violations, episode.reason) if line]
                why = "; ".join(lines[:WHYS]) + (f"; and {len(lines) - WHYS} more" if len(lines) > WHYS else "")
                yield f"* seed {piece.seed}, episode {episode.number} ({episode.seed}): {episode.verdict}: {why}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _verdicts(pieces: Sequence[Piece], verdict: str) -> int:
    return sum(piece.verdicts(verdict) for piece in pieces)


if __name__ == "__main__":
    print(f"{PAGE.name}: {'changed' if write(PAGE, RESULTS) else 'as it was'}; histories: {RESULTS / HISTORIES}")
