"""Processes of a round: a producer, a relay or a worker, which ends when there is nothing to do for it."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple
from uuid import uuid4

from sockpq import Client, JobNotFound
from sockpq_outbox import Relay
from sockpq_outbox.databases.sqlite import SqliteDatabase

from tests.outbox.crash.shops import QUEUE, SHOPS, Direct, Shop
from tests.outbox.crash.trap import Trap

LEASE_S = 1.0
ROWS_MAX = 3                # of a batch, so that there are several
PATIENCE_S = 120.0          # of a role, far more than it takes
POLL_S = 0.05


class World(NamedTuple):
    """The addresses as the roles know them, through the proxies, and the judge's own; `library`: of the shop."""

    database: str
    direct: str
    servers: str
    library: str
    trap: Trap
    exact: bool = False
    relay: Callable[[World], None] | None = None        # instead of the real ones, to see the test fail
    work: Callable[[World, Shop, object], None] | None = None


def start(role: Callable[[World], None], world: World, *, quiet: bool = False) -> int:
    """Run a role in a process; returns its id. `quiet`: its errors mean nothing."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        logging.disable(logging.CRITICAL)
        signal.alarm(int(PATIENCE_S * 2))       # so that no sleeper is left
        watch_sqlite(world.trap)
        role(world)
        code = 0
    except BaseException:
        if not quiet:
            traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def produce(world: World) -> None:
    """Write some orders; of some the transaction is rolled back."""
    shop: Shop = SHOPS[world.library](world.database)
    for number in range(4):
        shop.order(uuid4().hex, rolls_back=number == 2)


def relay(world: World) -> None:
    """Relay until no row waits."""
    if world.relay:
        world.relay(world)
        return
    moving = Relay(
        world.database, world.servers, lease=LEASE_S, poll=POLL_S, rows_max=ROWS_MAX, timeout=5.0, server_timeout=2.0)
    with Direct(world.direct) as direct, moving:
        until(lambda: not direct.execute("SELECT 1 FROM sockpq_outbox LIMIT 1"))


def work(world: World) -> None:
    """Work on jobs until there is none, not even one that another process has."""
    shop: Shop = SHOPS[world.library](world.database)
    end = time.monotonic() + PATIENCE_S
    with Client(world.servers) as client:
        while time.monotonic() < end:
            job = client.get(QUEUE, expire=LEASE_S, wait=0.3, meta=True, headers=True)
            if job is None:
                total = client.total(QUEUE)
                if not total.jobs and not total.running:
                    return
                continue
            try:
                if world.work:
                    world.work(world, shop, job)
                else:
                    shop.work(job, exact=world.exact)
            except JobNotFound:         # it is another worker's by now
                continue


def watch_sqlite(trap: Trap) -> None:
    """Let each statement and commit of SQLite be a point of the trap: it has no network."""
    execute, commit = SqliteDatabase.execute, SqliteDatabase.commit

    async def watched_execute(self: SqliteDatabase, sql: str, parameters: object) -> object:
        trap.before(f"> {sql.split(' ')[0]}")
        rows = await execute(self, sql, parameters)     # type: ignore[arg-type]
        trap.after(f"> {sql.split(' ')[0]}")
        return rows

    async def watched_commit(self: SqliteDatabase) -> None:
        trap.before("> COMMIT")
        await commit(self)
        trap.after("> COMMIT")

    SqliteDatabase.execute = watched_execute            # type: ignore[assignment, method-assign]
    SqliteDatabase.commit = watched_commit              # type: ignore[method-assign]


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition; raises TimeoutError."""
    end = time.monotonic() + PATIENCE_S
    while True:
        with suppress(Exception):           # a lock of SQLite
            if condition():
                return
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(POLL_S)
