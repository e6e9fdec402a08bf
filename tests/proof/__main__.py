"""The proof: episodes with all faults for some minutes, and a row for docs/PROOF.md. Needs root.

    make proof MINUTES=30 SEED=7            # from wheels that it builds and installs in an environment of their own
    python -m tests.proof --minutes 2       # the same, of the packages of this environment
    python -m tests.proof --again 4711      # one episode again, by its seed
"""

from __future__ import annotations

import datetime
import logging
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import click
import msgspec
from sockpq._version import __version__

import sockpqd
from tests.chaos.machines import clocks, faulty_disk
from tests.proof import power
from tests.proof.episode import draw, play
from tests.proof.mixture import KINDS
from tests.proof.network import OWN, alone
from tests.proof.place import machine, memory
from tests.proof.results import (
    FAILED,
    HISTORIES,
    PASSED,
    PUBLISH_BYTES_MAX,
    VOID,
    Episode,
    Piece,
    note,
    published_bytes,
)
from tests.proof.what import What

SEEDS = 2**31
EPISODE_S = 60.0            # of faults


@click.command()
@click.option("--minutes", type=float, default=30.0, show_default=True)
@click.option("--seed", type=int, help="Of the seeds of all episodes; drawn and printed when left out.")
@click.option("--again", type=int, help="Play one episode only: its seed.")
@click.option("--only", type=click.Choice(KINDS), help="Only this kind of fault.")
@click.option("--what", type=Path, help="A file that says what was installed.")
@click.option("--into", type=Path, help="The folder that gets a row; none is written without it.")
@click.option("--publish", is_flag=True, help="Write the histories there, too, as long as they are few.")
@click.option("--keep", type=Path, default=Path("proof-failed"), show_default=True,
              help="Where histories and logs are left of episodes that did not pass.")
def main(
    minutes: float, seed: int | None, again: int | None, only: str | None, what: Path | None, into: Path | None,
    publish: bool, keep: Path,
) -> None:
    """Prove it for a while."""
    if os.geteuid() != 0:
        raise click.UsageError("root is needed: for network namespaces and disks")
    if not alone():
        os.execvp(OWN[0], [*OWN, sys.executable, "-m", "tests.proof", *sys.argv[1:]])
    logging.getLogger("sockpq").setLevel(logging.ERROR)     # that no server answers is no news here
    tempfile.tempdir = str(memory())
    left_out = _left_out()
    without = ["clocks"] if left_out else []
    seed = random.SystemRandom().randrange(SEEDS) if seed is None else seed
    known = msgspec.json.decode(what.read_bytes(), type=What) if what else What()
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    piece = Piece(
        now, f"sockpqd {__version__}", known.commit, known.wheels, machine(), seed, minutes, left_out=left_out)
    print(f"{piece.system} of {Path(sockpqd.__file__).parent}, commit {piece.commit}, seed {seed}", flush=True)
    for word in left_out:
        print(f"left out: {word}", flush=True)
    chance, end, number = random.Random(seed), time.monotonic() + 60 * minutes, 0
    while not piece.episodes or (again is None and time.monotonic() < end):
        number += 1
        episode = draw(number, chance.randrange(SEEDS) if again is None else again, without)
        publishes = into is not None and publish and published_bytes(into) < PUBLISH_BYTES_MAX
        histories = into / HISTORIES / f"seed-{seed}" if into and publishes else None
        left_s = end - time.monotonic()
        play(episode, min(EPISODE_S, max(left_s / 2, 5.0)), histories, keep, only or "")
        piece.episodes.append(episode)
        _tell(episode)
        if into:
            note(into, piece)                   # also if no caller waits for the end
    _finish(piece)


def _left_out() -> tuple[str, ...]:
    """The faults that this machine cannot have. Raises UsageError when it cannot have most of them."""
    if not power.can_lose():
        raise click.UsageError("this kernel has no ext4 on loop devices, or mkfs.ext4 is not installed")
    if not faulty_disk.can_build():
        raise click.UsageError("there is no C compiler (cc), which builds the library that lets disks fail")
    return () if clocks.library() else ("clocks: libfaketime is not installed",)


def _tell(episode: Episode) -> None:
    variants = "".join(f", {word}" for word in episode.variants)
    print(f"{episode.verdict:6} {episode.number}, seed {episode.seed}, {episode.nodes} nodes{variants}, "
          f"{episode.seconds:.0f} s: {episode.commands:,} commands, {episode.acknowledged:,} acknowledged, "
          f"{episode.unknown:,} unknown, gap {episode.gap_s:.1f} s", flush=True)
    for line in (episode.reason and f"void: {episode.reason}", *episode.violations):
        if line:
            print(f"       {line}", flush=True)


def _finish(piece: Piece) -> None:
    print(", ".join(f"{word} {count}" for word, count in sorted(piece.faults.items())))
    verdicts = (f"{piece.verdicts(word)} {word}" for word in (PASSED, FAILED, VOID))
    print(f"{len(piece.episodes)} episodes: {', '.join(verdicts)}")
    sys.exit(1 if piece.verdicts(FAILED) else 2 if piece.verdicts(VOID) else 0)


if __name__ == "__main__":
    main()
