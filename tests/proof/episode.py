"""One episode: a cluster drawn by its seed, clients of all kinds, the mixture of faults, and the judges."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from tests.chaos.beanstalkd.deeds import Deeds
from tests.chaos.runner import Result, run_in_turn
from tests.chaos.scenarios import Scenario
from tests.chaos.variants import VARIANTS
from tests.chaos.workload.beside import Beside
from tests.chaos.workload.history import History
from tests.chaos.workload.load import Load
from tests.proof.clients.awaiting import Awaiting
from tests.proof.clients.celery_tasks import CeleryTasks
from tests.proof.cluster import NamespacedCluster
from tests.proof.mixture import Mixture
from tests.proof.results import FAILED, PASSED, VOID, Episode, Evidence, count, lines_of, save

LOAD = Load(producers=1, workers=1, waiters=1, callers=1, planners=1, handlers=1, turns=8, pools=1, consumers=(1, 10),
            pause_s=0.01)
CONFIG = {"node": {"rejoins_per_hour": 0}}      # without a limit: disks are damaged more often than that
SHARES = {                                      # of the episodes that have it
    "clocks": 0.4, "beanstalkd": 0.4, "listeners": 0.4, "five": 0.2, "paged": 0.3, "fragments": 0.25, "sessions": 0.2,
    "fast empty": 0.3, "awaiting": 0.6, "celery": 0.25,
}
OF_CHAOS = ("paged", "fragments", "sessions", "fast empty", "five")


def draw(number: int, seed: int, without: Sequence[str] = ()) -> Episode:
    """Draw an episode by its seed, with no variant that is in `without`."""
    chance = random.Random(f"episode {seed}")
    drawn = {word: chance.random() < share for word, share in SHARES.items()}
    if drawn["celery"]:
        without = (*without, "listeners")       # which take each message for one of theirs
    variants = tuple(word for word, is_on in drawn.items() if is_on and word not in without)
    return Episode(number, seed, 5 if "five" in variants else 3, variants)


def play(
    episode: Episode, lasts_s: float, publish: Path | None, keep: Path, only: str = "", load: Load = LOAD,
) -> None:
    """Play it, and note in it how it went.

    `publish`: the folder of histories, None when only the digest is wanted; `keep`: where the logs of one that did not
    pass are left; `only`: nothing but this kind of fault; `load`: the native clients.
    """
    mixture = Mixture(episode.seed, clocks="clocks" in episode.variants, only=only)
    scenario = Scenario(
        f"proof {episode.number}", lambda seed: [mixture], lasts_s=lasts_s, after_s=2.0, load=load, config=CONFIG,
        faulty_disks=True, fake_clocks="clocks" in episode.variants, beanstalkd="beanstalkd" in episode.variants,
        listeners="listeners" in episode.variants,
    )
    for word in OF_CHAOS:
        if word in episode.variants:
            scenario = VARIANTS[word][1](scenario)
    history, deeds, began = History(), Deeds(), time.monotonic()
    scenario = replace(scenario, variants=episode.variants)
    celery, awaiting = CeleryTasks(), Awaiting()
    besides: list[Beside] = [
        *([awaiting] if "awaiting" in episode.variants else []), *([celery] if "celery" in episode.variants else [])]
    (result,) = run_in_turn([scenario], episode.seed, keep, NamespacedCluster, history, deeds, besides)
    episode.seconds = round(time.monotonic() - began, 1)
    _note(episode, result)
    episode.awaited, episode.celery = len(awaiting.tasks), celery.found.sent if celery.found else 0
    evidence = Evidence(history, deeds, mixture.rounds, result.facts)
    count(episode, evidence)
    name = f"{episode.number:03}-{episode.seed}.xz"
    episode.digest = save((publish or keep) / name, lines_of(evidence), publish=publish is not None)
    episode.history = name if publish is not None else ""
    for one in mixture.rounds:
        print(f"    {one.began_s:6.1f} s, {one.lasted_s:5.1f} s: {one.evidence}", flush=True)


def _note(episode: Episode, result: Result) -> None:
    episode.verdict = FAILED if result.violations else VOID if result.void else PASSED
    episode.reason, episode.violations = result.void, result.violations
    episode.gap_s = round(result.gap_s, 2)
