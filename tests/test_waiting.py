"""Limits of time: a hang is found, and what the machine holds up is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import at_most

PROGRAM = """
import time
from tests.waiting import at_most
with at_most(1):
    print("in it", flush=True)
    time.sleep(0.3)
"""


def test_a_hang_is_found() -> None:
    for _ in range(20):         # a machine that holds up everything cannot be told from one
        try:
            with at_most(0.1):
                time.sleep(0.5)
        except AssertionError:
            return
    pytest.fail("half a second is within a tenth of one")


def test_what_the_machine_holds_up_does_not_count() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "in it\n"
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(process.pid, signal.SIGCONT)
    assert process.returncode == 0
