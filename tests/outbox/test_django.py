"""The outbox and the inbox over a database of Django's settings, which a process has once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sockpq.testing import Server

ROOT = Path(__file__).parents[2]


def test_an_alias_is_a_session(own_server: Server, sqlite_file: Path) -> None:
    own_server.empty()
    done = subprocess.run(
        [sys.executable, "-m", "tests.outbox.django_shop", sqlite_file, own_server.address], cwd=ROOT, timeout=200,
        capture_output=True, text=True, check=False,
    )
    assert done.stdout == "fine\n", done.stderr
