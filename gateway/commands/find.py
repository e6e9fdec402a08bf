"""FIND: a search for jobs, in slices that take turns like the pieces of long answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from heapq import merge
from itertools import groupby, islice

from sockpqd.core import FindPlace, Search, Section, Wanted
from sockpqd.gateway.commands.context.client import Client, Services
from sockpqd.gateway.commands.context.places import owner_of
from sockpqd.gateway.limits import (
    FIND_BYTES_MAX,
    FIND_JOBS_MAX,
    FIND_REST_MAX_S,
    FIND_REST_S,
    FIND_REST_SLICES,
    FIND_SLICE,
    FIND_SLICE_BYTES,
    FIND_SLICE_NAMES,
    FOUND_COST,
    STEP_COST,
)
from sockpqd.gateway.protocol import listings, responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.grammar.find import cursor


def find(client: Client, command: Command) -> None:
    """FIND: show the jobs with the given properties."""
    if not client.hub.searches.free(owner_of(client.guard.user, client.link.peer)):     # here it costs no task
        client.say(responses.BUSY)
        return
    client.run(_find(client, *command.arguments))


async def _find(
    client: Client, queues: tuple[str, ...] | None, wanted: Wanted, count: int, begin: FindPlace | None,
) -> None:
    hub = client.hub
    owner = owner_of(client.guard.user, client.link.peer)
    if not hub.searches.take(owner):
        client.say(responses.BUSY)
        return
    try:
        lines, place = await _search(client, queues, wanted, count, begin)
    finally:
        hub.searches.leave(owner)
    await client.stream(responses.found(len(lines), None if place is None else cursor(place)))
    await client.stream("".join(lines).encode())


async def _search(
    client: Client, queues: tuple[str, ...] | None, wanted: Wanted, count: int, begin: FindPlace | None,
) -> tuple[list[str], FindPlace | None]:
    """Search the queues in name order; return the lines, and the place where to continue, None at the end."""
    hub, search, lines = client.hub, Search(wanted), list[str]()
    jobs_left, bytes_left = FIND_JOBS_MAX, FIND_BYTES_MAX
    slices = Slices(hub)
    names = await _names(client, slices, queues, "" if begin is None else begin.queue)
    await slices.begin()
    slice_left = FIND_SLICE
    for name in names:
        place = begin if begin is not None and begin.queue == name else FindPlace(name)
        jobs_left -= 1
        while place.section is not Section.OVER:
            if slice_left <= 0:
                await slices.begin()
                slice_left = FIND_SLICE
            found_max = min(count - len(lines), max(1, slice_left // FOUND_COST))
            found = hub.cluster.machine.find(
                search, place, found_max, min(slice_left, max(1, jobs_left)), min(FIND_SLICE_BYTES, bytes_left))
            place = found.place
            lines += [listings.seen(job, places=True) for job in found.jobs]
            jobs_left -= found.looked
            bytes_left -= found.looked_bytes
            slice_left -= (
                STEP_COST + found.looked + FOUND_COST * len(found.jobs)
                + FIND_SLICE * found.looked_bytes // FIND_SLICE_BYTES)
            if len(lines) >= count or jobs_left <= 0 or bytes_left <= 0:
                return lines, place
        if jobs_left <= 0:
            return lines, place
    return lines, None


class Slices:
    """The slices of one search. The slices of all searches are separated by pauses in proportion to their length."""

    def __init__(self, hub: Services) -> None:
        self._hub = hub
        self._began_s: float | None = None

    async def begin(self) -> None:
        """Wait for the turn of the next slice."""
        took_s = 0.0 if self._began_s is None else time.perf_counter() - self._began_s
        async with self._hub.search_line:
            await asyncio.sleep(min(max(FIND_REST_S, took_s * FIND_REST_SLICES), FIND_REST_MAX_S))
            await self._hub.turn()
        self._began_s = time.perf_counter()


async def _names(client: Client, slices: Slices, queues: tuple[str, ...] | None, first: str) -> Iterator[str]:
    """Yield the names from `first` on, each once and in order: sorted in pieces, and merged lazily."""
    left = iter(client.hub.cluster.machine.all_queue_names() if queues is None else queues)
    runs: list[list[str]] = []
    while piece := list(islice(left, FIND_SLICE_NAMES)):
        if runs:
            await slices.begin()
        runs.append(sorted([name for name in client.guard.administered(piece) if name >= first]))
    return (name for name, _ in groupby(merge(*runs)))
