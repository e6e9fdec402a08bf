"""Dramatiq's own tests, from its sources on the package index: with `make test-frameworks` only."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.dramatiq.upstream.__main__ import NO_SOURCES, ROOT

SUITE_MAX_S = 1200          # a safety limit


@pytest.mark.skipif(not os.environ.get("FRAMEWORKS"), reason="Dramatiq's own tests: make test-frameworks")
@pytest.mark.timeout(2 * SUITE_MAX_S)
def test_all_pass() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.dramatiq.upstream"], cwd=ROOT, capture_output=True, text=True,
        timeout=SUITE_MAX_S, check=False,
    )
    if done.returncode == NO_SOURCES:
        pytest.skip("no sources of Dramatiq on this machine, and no package index")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
