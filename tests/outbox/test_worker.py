"""Outbox and inbox in tasks of pqworker's: from COMMIT to effect."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sockpq import Client
from sockpq.testing import Server
from sockpq_outbox import Relay, outbox

from tests.waiting import until

ROOT = Path(__file__).parents[2]


def test_from_commit_to_effect(own_server: Server, sqlite_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_server.empty()
    monkeypatch.setenv("SHOP", str(sqlite_file))
    monkeypatch.setenv("SOCKPQ_SERVERS", own_server.address)
    from tests.outbox.worker_app import effect

    shop = sqlite3.connect(sqlite_file, timeout=60)
    for number in range(3):
        outbox.put(shop, effect, f"task {number}")
        outbox.put(shop, "raw", f"raw {number}")
    shop.commit()

    def effects() -> list[str]:
        return sorted(text for (text,) in shop.execute("SELECT text FROM effects"))

    command = [str(Path(sys.executable).with_name("pqworker")), "tests.outbox.worker_app:app", "-c", "1"]
    with subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stderr=subprocess.PIPE, text=True) as worker:
        try:
            with Relay(f"sqlite:///{sqlite_file}", own_server.address), Client(own_server.address) as client:
                until(lambda: len(effects()) == 6)
                until(lambda: not any(client.total(queue).jobs + client.total(queue).running
                                      for queue in ("tasks", "raw")))
                until(lambda: shop.execute("SELECT COUNT(*) FROM sockpq_inbox").fetchone() == (3,))
            worker.send_signal(signal.SIGTERM)
            _, log = worker.communicate(timeout=120)
        finally:
            worker.kill()
    assert effects() == [f"raw {number}" for number in range(3)] + [f"task {number}" for number in range(3)], log
    shop.close()
