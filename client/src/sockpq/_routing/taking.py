"""Takes jobs from several clusters: asks each in turn for available jobs and, if there are none, waits in all of them.

Tracks which of them did not answer recently, so that calls that can do without these do not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sockpq._backends.base import Network
from sockpq._engine.call_runner import Call, PutBack
from sockpq._engine.executor import Executor
from sockpq._protocol.command import Blocks, Command
from sockpq._protocol.commands.jobs import untaken
from sockpq.errors import NotExecuted, SockpqError, Unavailable

LOOK_S = 1.0            # between two looks whether the map has changed, while it waits in several clusters
LEAVE_S = 3.0           # what it may take to end the waits that are no longer needed
SILENT_S = 5.0          # a cluster that did not answer is left out for this long by those who do not wait
TRY_S = 1.0             # what one that may not answer has to answer a GET that does not wait


class Taken(NamedTuple):
    """The jobs taken, None or [] for none, and the index of the cluster that had them.

    `again`: retry, as the wait has ended early: the map has changed, or a cluster did not answer.
    """

    value: Any
    cluster: int
    again: bool = False


class Taking:
    """Takes jobs for one client from several clusters."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._silent: dict[Executor, float] = {}        # clusters that did not answer, and until when

    def answers(self, executor: Executor) -> bool:
        """Return whether this cluster answered when last asked."""
        return self._silent.get(executor, 0) <= self._network.now()

    async def look(self, clusters: Sequence[Executor]) -> None:
        """Find out which of the clusters answer, if that is unknown."""
        for executor in clusters:
            if executor.leader is None and self.answers(executor):
                try:
                    await executor.connect(timeout=TRY_S)
                except Unavailable:
                    self._silent[executor] = self._network.now() + SILENT_S

    async def at_once(
        self, command: Command[Any], clusters: Sequence[Executor], first: int, timeout: float,
        put_back: PutBack[Any] | None,
    ) -> Taken:
        """Take available jobs from the first cluster that has any, beginning with number `first`.

        Clusters that do not answer are left out, unless none does.
        """
        failure: NotExecuted | None = None
        order = [(first + step) % len(clusters) for step in range(len(clusters))]
        answering = [at for at in order if self.answers(clusters[at])]
        nothing: Any = None
        answered = False
        for at in answering or order:
            executor = clusters[at]
            known = executor.leader is not None
            try:
                value = await executor.run(
                    command.unblocked or command, timeout=timeout if known else min(timeout, TRY_S), put_back=put_back,
                )
            except Unavailable as error:
                self._silent[executor] = self._network.now() + SILENT_S
                failure = error
                continue
            answered, nothing = True, value
            if value:
                return Taken(value, at)
        if failure and not answered:
            raise failure
        return Taken(nothing, order[0])

    async def waiting(
        self, commands: Sequence[Command[Any]], clusters: Sequence[Executor], wait: float | None, timeout: float,
        changed: Callable[[], bool], put_back: PutBack[Any] | None, last: int | None = None,
    ) -> Taken:
        """Wait in all of these clusters, for up to `wait` seconds if given; the first job wins.

        `commands`: the GET for each. Another job that arrives at the same moment goes back to its place. The wait ends
        early without a job when `changed()` returns true, when a cluster has not answered for `timeout` seconds and
        must be asked again, and when cluster `last` reports that there will be no job.
        """
        calls = [
            executor.calls.call(command, timeout=timeout, wait=wait)
            for executor, command in zip(clusters, commands, strict=True)
        ]
        put_back = put_back or untaken
        race = self._network.race([
            _ended(executor, call, put_back) for executor, call in zip(clusters, calls, strict=True)
        ])
        left = set(range(len(clusters)))
        winner: Taken | None = None
        failures: list[SockpqError] = []
        withdrawn = early = finished = False
        nothing: Any = None
        try:
            while left:
                early = early or changed() or bool(failures)
                if (winner or early or finished) and not withdrawn:
                    withdrawn = True
                    _withdraw(clusters, calls, left)
                ended = await race.next(LOOK_S)
                if ended is None:
                    continue
                at, (value, error) = ended
                left.discard(at)
                if error:
                    failures.append(error)
                elif value and winner:
                    await _give_back(clusters[at], value, put_back)
                elif value:
                    winner = Taken(value, at)
                else:
                    nothing, finished = value, finished or at == last
        except BaseException:
            _withdraw(clusters, calls, left)
            if winner:
                await _give_back(clusters[winner.cluster], winner.value, put_back)
            await self._collect(race, clusters, left, put_back)
            raise
        if winner:
            return winner
        for failure in failures:
            if len(failures) == len(clusters) or not isinstance(failure, Unavailable):
                raise failure
        return Taken(nothing, 0, again=early)

    async def _collect(
        self, race: Any, clusters: Sequence[Executor], left: set[int], put_back: PutBack[Any]
    ) -> None:
        """Put back jobs that still arrive after the caller was interrupted."""
        until = self._network.now() + LEAVE_S
        while left and self._network.now() < until:
            ended = await race.next(until - self._network.now())
            if ended:
                at, (value, _) = ended
                left.discard(at)
                if value:
                    await _give_back(clusters[at], value, put_back)
        race.stop()


async def _ended(executor: Executor, call: Call[Any], put_back: PutBack[Any]) -> tuple[Any, SockpqError | None]:
    try:
        return await executor.run_call(call, put_back), None
    except SockpqError as error:
        return None, error


def _withdraw(clusters: Sequence[Executor], calls: Sequence[Call[Any]], left: set[int]) -> None:
    for at in left:
        clusters[at].calls.withdraw(calls[at])


async def _give_back(executor: Executor, value: Any, put_back: PutBack[Any]) -> None:
    """Put back jobs that arrived too late; if that fails, their leases end."""
    with suppress(SockpqError):
        await executor.run_batch(list(put_back(value)), timeout=LEAVE_S)


def waits(command: Command[Any]) -> bool:
    """Return whether a GET waits for a job."""
    return command.blocks is not Blocks.NEVER
