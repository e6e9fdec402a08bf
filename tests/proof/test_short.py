"""A short proof: one small episode, from the first command to the judges, in which all nodes lose their power."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.machines import faulty_disk
from tests.proof import power
from tests.proof.network import OWN
from tests.proof.test_machines import ROOT, namespaces

LIMIT_S = 800.0             # all of it needs 6 s of processor time

PROGRAM = """
import json, sys, tempfile
from pathlib import Path
from tests.chaos.workload.load import Load
from tests.proof.episode import play
from tests.proof.network import run
from tests.proof.results import Episode

load = Load(producers=1, workers=0, waiters=1, callers=0, planners=0, handlers=0, turns=0, pools=0, consumers=(),
            plain=False, pause_s=0.02)
episode = Episode(1, 5, 3, ())
folder = Path(sys.argv[1])
machines = folder / "machines"
machines.mkdir()
run(["mount", "-t", "tmpfs", "tmpfs", str(machines)])       # syncs of a busy disk take their time
tempfile.tempdir = str(machines)
play(episode, 1.0, folder, folder, "power loss", load)
print(json.dumps({"verdict": episode.verdict, "told": [*episode.violations, episode.reason],
                  "acknowledged": episode.acknowledged, "faults": episode.faults, "history": episode.history}))
"""


@pytest.mark.timeout(LIMIT_S + 60)
def test_a_small_episode_is_played_and_judged(tmp_path: Path) -> None:
    if not namespaces() or not power.can_lose() or not faulty_disk.can_build():
        pytest.skip("needs root, network namespaces, loop devices and cc")
    done = subprocess.run([*OWN, sys.executable, "-c", PROGRAM, tmp_path], cwd=ROOT, capture_output=True, text=True,
                          check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["verdict"] != "failed", done.stdout
    assert told["faults"]["power loss"] >= 1
    assert told["acknowledged"] > 0
    assert (tmp_path / told["history"]).stat().st_size > 0
