"""One receipt for each committed order, while worker, relay and their children are killed again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sockpq.testing import Server

from tests.django.conftest import ALL
from tests.outbox.servers import Postgres, has_postgres
from tests.waiting import until
from tests.worker.program.running import children_of

ROOT = Path(__file__).parents[2]
SEED = 1
KILLS = 12
PAUSE_S = 0.3, 2.5          # from the start of the programs to the next kill
ORDERS = 4000
# Places orders until it is told to end; every third one is rolled back.
PRODUCER = f"""
import os, time
import django
django.setup()
from django.db import transaction
from tests.django.shop import tasks
from tests.django.shop.models import Order
for number in range({ORDERS}):
    with transaction.atomic():
        order = Order.objects.create(name=str(number))
        tasks.effect.enqueue(order.name)
        transaction.set_rollback(number % 3 == 1)
    time.sleep(0.005)
"""
COUNTS = """
SELECT (SELECT COUNT(*) FROM shop_order), (SELECT COUNT(DISTINCT name) FROM shop_effect),
       (SELECT COUNT(*) FROM shop_effect), (SELECT COUNT(*) FROM sockpq_outbox)
"""

pytestmark = [
    pytest.mark.skipif(not ALL, reason="killed workers and relays of Django: in `make test-frameworks`"),
    pytest.mark.skipif(not has_postgres(), reason="there is no PostgreSQL: apt install postgresql"),
]


class Supervised:
    """`manage.py sockpq_worker --relay`, which is started again whenever it has ended."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self._environment = environment
        self._log = log.open("wb")
        self.starts = 0
        self._program = self._start()

    def kill_one(self, chance: random.Random) -> None:
        """Kill the worker, the relay, a child of the worker, or all at once; then see to it that they run again."""
        below = descendants(self._program.pid)
        for pid in below if below and chance.random() < 0.25 else [chance.choice(below)] if below else []:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):       # it goes on if the pool alone has lost a child
            self._program.wait(1)
            self._program = self._start()

    def end(self) -> None:
        """End it as an operator does."""
        self._program.send_signal(signal.SIGTERM)
        self._program.wait()
        self._log.close()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        line = [sys.executable, "-m", "django", "sockpq_worker", "--relay", "-c", "2"]
        return subprocess.Popen(line, cwd=ROOT, env=self._environment, stdout=self._log, stderr=self._log)


def descendants(pid: int) -> list[int]:
    """Return the processes below this one."""
    return [one for child in children_of(pid) for one in (child, *descendants(child))]


@pytest.mark.timeout(1200)
def test_each_committed_order_has_one_receipt_whatever_is_killed(node: Server, tmp_path: Path) -> None:
    node.empty()
    chance = random.Random(SEED)
    with Postgres() as postgres:
        for alias in ("default", "other"):
            postgres.create(f'"{alias}"')
        environment = {
            **os.environ, "DJANGO_SETTINGS_MODULE": "tests.django.shop.settings", "SHOP_SERVERS": node.address,
            "SHOP_POSTGRES_PORT": str(postgres.port), "SHOP_OUTBOX": "default",
        }
        migrate = [sys.executable, "-m", "django", "migrate", "--run-syncdb", "-v", "0"]
        subprocess.run(migrate, cwd=ROOT, env=environment, check=True)
        producer = subprocess.Popen([sys.executable, "-c", PRODUCER], cwd=ROOT, env=environment)
        programs = Supervised(environment, tmp_path / "log")
        try:
            for _ in range(KILLS):
                threading.Event().wait(chance.uniform(*PAUSE_S))
                programs.kill_one(chance)
            assert producer.wait() == 0
            with psycopg.connect(postgres.url("default"), autocommit=True) as database:
                def counts() -> tuple[Any, ...]:
                    found = database.execute(COUNTS).fetchone()
                    assert found is not None
                    return found

                until(lambda: counts()[1] == counts()[0] and counts()[3] == 0, lambda: f"{counts()}", 300)
                orders, distinct, effects, rows = counts()
        finally:
            producer.kill()
            programs.end()
    assert (distinct, effects, rows) == (orders, orders, 0)
    assert programs.starts > KILLS / 3
    assert orders == sum(number % 3 != 1 for number in range(ORDERS))
