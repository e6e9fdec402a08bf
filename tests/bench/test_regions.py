"""A copy on a line with delays, loss and a cut: small figures of `python -m bench.regions`, which judges the copy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.regions.line import OWN

ROOT = Path(__file__).parents[2]
LIMIT_S = 600.0
ROUND_TRIP_S = 0.2
SMALL = ("--rate", "50", "--lossy-rate", "20", "--seconds", "2", "--entries", "20", "--jobs", "500")


@pytest.mark.timeout(LIMIT_S + 60)
def test_a_copy_on_a_bad_line_is_equal_and_has_all_when_it_is_promoted(tmp_path: Path) -> None:
    if os.geteuid() or not Path("/dev/net/tun").exists() or subprocess.run([*OWN, "true"], check=False).returncode:
        pytest.skip("needs root, network namespaces and /dev/net/tun")
    done = subprocess.run(
        [sys.executable, "-m", "bench.regions", *SMALL, "--folder", tmp_path], cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["what"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert list(rows) == ["put one at a time", "put together", "catching up", "200 ms", "200 ms, 5% lost", "a cut",
                          "equal", "promotion"]
    assert rows["catching up"]["position"] >= rows["put together"]["position"] > 20
    for line in ("200 ms", "200 ms, 5% lost"):
        assert rows[line]["visible_after_s"]["max"] > ROUND_TRIP_S / 2      # no packet is faster than the line
    assert rows["equal"]["position"] > rows["catching up"]["position"]
