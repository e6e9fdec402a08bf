"""The tests that have to do with databases, on PostgreSQL: `make test-frameworks`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.django.conftest import ALL
from tests.outbox.servers import Postgres, has_postgres

ROOT = Path(__file__).parents[2]
TESTS = ("test_outbox.py", "test_once.py", "test_admin.py")


@pytest.mark.skipif(not ALL, reason="Django on PostgreSQL: in `make test-frameworks`")
@pytest.mark.skipif(not has_postgres(), reason="there is no PostgreSQL: apt install postgresql")
def test_databases_of_postgresql() -> None:
    with Postgres() as server:
        for alias in ("default", "other"):
            server.create(f'"{alias}"')
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n0", *(Path(__file__).parent / test for test in TESTS)], cwd=ROOT,
            env={**os.environ, "SHOP_POSTGRES_PORT": str(server.port)}, capture_output=True, text=True, check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
