"""No crash loses or copies a message: with `make test-frameworks` only."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.dramatiq.crashes import marks_after_crashes

MESSAGES, KILLS = 2000, 12


@pytest.mark.skipif(not os.environ.get("FRAMEWORKS"), reason="killed workers: make test-frameworks")
@pytest.mark.timeout(1800)
def test_each_message_is_done_once_however_often_a_worker_is_killed(tmp_path: Path) -> None:
    assert marks_after_crashes(tmp_path, MESSAGES, KILLS, seed=1) == Counter(range(MESSAGES))
