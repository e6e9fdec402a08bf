"""The crash test in its short form, on one node; `make frameworks-faults` is the long one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.outbox.crash.trap import Trap
from tests.outbox.servers import has_postgres

ROOT = Path(__file__).parents[2]
PATIENCE_S = 280


def campaign(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.outbox.crash", "--nodes", "1", *words], cwd=ROOT, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )


@pytest.mark.timeout(300)
def test_each_committed_order_has_one_effect() -> None:
    database = "postgresql" if has_postgres() else "sqlite"
    done = campaign("--rounds", "10", "--seed", "3", "--database", database)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "each has one effect" in done.stdout


def test_a_trap_acts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr("os.kill", lambda *killed: sent.append(killed))
    trap = Trap()
    assert trap.before("> x")                       # it is not armed
    trap.arm(7, 2, after=False, stops=False)
    assert trap.before("> x")
    trap.after("> x")
    assert (trap.fired, sent) == (None, [])
    assert not trap.before("> y")
    assert trap.before("> z")
    assert (trap.fired, trap.count, sent) == ("before > y", 2, [(7, 9)])
    trap.arm(8, 1, after=True, stops=True)
    assert trap.fired is None
    assert trap.before("< a")
    trap.after("< a")
    trap.after("< a")
    assert (trap.fired, sent[1:]) == ("after < a", [(8, 19)])
