"""`pqctl top`: the queues once a second, with what events tell of their rates."""

from __future__ import annotations

import json
import select
import sys
import termios
import threading
import time
import tty
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sockpq import ClientClosed, EventsLost, EventType, QueueTotals, SockpqError

from sockpqd.pqctl.connect import reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE

if TYPE_CHECKING:
    from rich.table import Table
    from sockpq import Client, Events

INTERVAL_S = 1.0
MOVES: tuple[EventType, ...] = ("PUT", "TAKE", "DONE")


class Rates:
    """Counts events in a thread of its own, so that a slow picture holds up none."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._since = time.monotonic()
        threading.Thread(target=self._listen, daemon=True).start()

    def take(self) -> dict[tuple[str, str], float]:
        """How many of each type in each queue in a second, since this was asked last."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
            now = time.monotonic()
            seconds, self._since = max(now - self._since, 0.001), now
        return {place: count / seconds for place, count in counts.items()}

    def _listen(self) -> None:
        while True:
            try:
                for event in self._events:
                    with self._lock:
                        self._counts[event.name, event.type] += 1
            except EventsLost:
                continue
            except (ClientClosed, SockpqError):
                return          # the table goes on without rates


def show(call: Call, prefix: str, count: int | None) -> int:
    """Show the queues until q is pressed, or `count` times."""
    with reading(call) as (client, server):
        rates = Rates(client.events(MOVES, f"{prefix}*", timeout=call.timeout))     # ends with the client
        if call.as_json or not (sys.stdout.isatty() and sys.stdin.isatty()):
            shown = 0
            while True:
                time.sleep(INTERVAL_S)
                _print(call, _queues(client, server, prefix), rates.take())
                shown += 1
                if shown == count:
                    return DONE
        return _live(client, server, prefix, rates, count)


def _live(client: Client, server: str, prefix: str, rates: Rates, count: int | None) -> int:
    from rich.live import Live

    from sockpqd.pqctl.output.table import console

    with _keys(), Live(console=console(), auto_refresh=False, screen=True) as live:
        shown = 0
        while shown != count:
            live.update(picture(_queues(client, server, prefix), rates.take()), refresh=True)
            shown += 1
            if _left(INTERVAL_S):
                break
    return DONE


def _queues(client: Client, server: str, prefix: str) -> list[QueueTotals]:
    """The queues, those with the most jobs first; of any server, if this one is gone."""
    try:
        found = client.queues(prefix, server=server)
    except SockpqError:
        found = client.queues(prefix)
    return sorted(found, key=lambda queue: (-(queue.ready + queue.delayed + queue.running), queue.name))


def _print(call: Call, queues: list[QueueTotals], rates: dict[tuple[str, str], float]) -> None:
    if call.as_json:
        call.print(json.dumps({"queues": [
            {"name": queue.name, "ready": queue.ready, "delayed": queue.delayed, "running": queue.running,
             "dead": queue.dead, "buried": queue.buried,
             **{f"{kind.lower()}_per_s": round(rates.get((queue.name, kind), 0.0), 1) for kind in MOVES}}
            for queue in queues
        ]}))
    else:
        call.print_rich(picture(queues, rates))
        call.print("")


def picture(queues: list[QueueTotals], rates: dict[tuple[str, str], float]) -> Table:
    """The table."""
    from sockpqd.pqctl.output.table import Column, table

    columns = [Column("queue", folds=True)]
    columns += [Column(title, figures=True)
                for title in ("ready", "delayed", "running", "dead", "buried", "put/s", "take/s", "done/s")]
    return table(columns, (
        ((queue.name, f"{queue.ready:,}", f"{queue.delayed:,}", f"{queue.running:,}", f"{queue.dead:,}",
          f"{queue.buried:,}", *(f"{rates.get((queue.name, kind), 0.0):,.1f}" for kind in MOVES)), "")
        for queue in queues
    ))


@contextmanager
def _keys() -> Iterator[None]:
    """Within the block keys arrive one by one and are not shown."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _left(seconds: float) -> bool:
    """Wait this long; returns at once, and True, when q is pressed."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left)[0] and sys.stdin.read(1) in ("q", "Q", ""):
            return True
    return False
