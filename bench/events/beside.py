"""Other operations during a measurement, from a process of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context

import uvloop

from bench.load_generator.figures import LoadFigures
from bench.load_generator.jobs import Jobs
from bench.load_generator.open_loop import Pacer
from bench.load_generator.wire import open_wires

CONNECTIONS = 20
QUEUE = "load"


@contextmanager
def beside(leader: str, rate: float) -> Iterator[None]:
    """Put jobs at this rate to the leader ("host:port") while the block runs."""
    process = get_context("spawn").Process(target=_run, args=(leader, rate), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _run(leader: str, rate: float) -> None:
    async def put() -> None:
        await Pacer(await open_wires(leader, CONNECTIONS), Jobs([QUEUE], 100), rate, LoadFigures()).run(None)
    uvloop.run(put())
