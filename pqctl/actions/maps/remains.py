"""The remaining jobs of names that move, in a cluster that no longer owns them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from sockpq import Client, QueueTotals
from sockpq.names import DEAD_SUFFIX

from sockpqd.pqctl.output.text import counted


class Remains(NamedTuple):
    """The queues of a cluster that have unfinished jobs, dead and buried ones among them."""

    queues: list[QueueTotals]

    @property
    def jobs(self) -> int:
        """The number of jobs; a dead one is counted as ready in its dead-letter queue."""
        return sum(one.ready + one.delayed + one.running + one.buried for one in self.queues)

    def __str__(self) -> str:
        states = ("ready", "delayed", "running", "buried")
        counts = ", ".join(f"{count:,} {state}" for state in states
                           if (count := sum(getattr(one, state) for one in self.queues)))
        return f"{counted(self.jobs, 'job')} ({counts})"


def remains(client: Client, prefix: str, belongs: Callable[[str], bool]) -> Remains:
    """Find the jobs of queues whose names begin with `prefix` and for which `belongs` returns true."""
    found = [one for one in client.queues(prefix) if belongs(one.name)]
    return Remains(sorted(one for one in found if one.ready + one.delayed + one.running + one.buried))


def unending(left: Remains, servers: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each kind of jobs that workers do not end, with the command that does.

    `servers`: the servers of the cluster that has these jobs.
    """
    at = f"--servers {','.join(servers)}"
    for one in left.queues:
        if one.name.endswith(DEAD_SUFFIX) and one.ready:
            origin = one.name.removesuffix(DEAD_SUFFIX)
            yield (f"{one.name} has {counted(one.ready, 'dead job')}: `pqctl job kick {origin} {one.ready} {at}` has "
                   f"them tried again, `pqctl queue purge {one.name} ready {at}` removes them")
        if one.delayed:
            yield (f"{one.name} has {counted(one.delayed, 'delayed job')}, of which those of EVERY never end: "
                   f"`pqctl job find {one.name} --state delayed {at}` shows them, "
                   f"`pqctl queue purge {one.name} delayed {at}` removes them")
        if one.buried:
            yield (f"{one.name} has {counted(one.buried, 'buried job')}: `pqctl job kick {one.name} {one.buried} "
                   f"--here {at}` has them tried again, `pqctl queue purge {one.name} buried {at}` removes them")
