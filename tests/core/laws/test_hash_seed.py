"""The state does not depend on how Python hashes strings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from sockpqd.core import Machine
from tests.core.helpers.logs import play, random_log
from tests.core.helpers.session_logs import random_session_log
from tests.core.helpers.time_logs import random_time_log
sys.stdout.buffer.write(hash("queue").to_bytes(8, "big", signed=True))
for log in (random_log(11, 3000), random_session_log(11, 1500), random_time_log(11, 1500)):
    machine = Machine()
    for _ in play(machine, log):
        pass
    sys.stdout.buffer.write(b"".join(machine.snapshot()))
"""


def run(hash_seed: str) -> tuple[bytes, bytes]:
    """Print the hash of a string, and the snapshots after three long logs."""
    environment = dict(os.environ, PYTHONHASHSEED=hash_seed, PYTHONPATH=str(ROOT))
    output = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True).stdout
    return output[:8], output[8:]


def test_two_hash_seeds_give_equal_snapshots() -> None:
    one, two = run("1"), run("2")
    assert one[0] != two[0], "the seeds made no difference, the test shows nothing"
    assert len(one[1]) > 1000
    assert one[1] == two[1]
