"""Calls for many jobs: split into commands, pipelined, and merged again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, count
from typing import Any, cast

from sockpq._protocol.command import Command
from sockpq._protocol.commands.batches import BATCH_JOBS_MAX, Part, TakeSource, Touches, puts_batch
from sockpq._protocol.commands.jobs import untaken
from sockpq._routing.router import Router
from sockpq.errors import (
    AuthError,
    BatchFailed,
    Elsewhere,
    ForbiddenError,
    JobNotFound,
    NotExecuted,
    NotSupported,
    SockpqError,
)
from sockpq.model import Handed, Stored


async def put_many(
    router: Router, puts: Sequence[Command[Stored]], timeout: float | None, retry_unknown: bool | None
) -> int:
    """Execute these PUTs; returns how many jobs exist because of them. Raises BatchFailed."""
    results = await _put_where_owned(router, puts, timeout, retry_unknown, counted=True)
    refused = {position: found for position, found in enumerate(results) if isinstance(found, SockpqError)}
    for error in refused.values():
        if len(refused) == len(puts) and isinstance(error, AuthError | ForbiddenError):
            raise error
        raise BatchFailed(f"{len(refused)} of {len(puts)} refused: {error}", (), tuple(refused)) from error
    return sum(found is not False for found in results)


async def put_each(
    router: Router, puts: Sequence[Command[Stored]], timeout: float | None, retry_unknown: bool | None
) -> list[Stored | SockpqError]:
    """Execute these PUTs; returns the outcome of each, or its refusal. Raises BatchFailed."""
    results = await _put_where_owned(router, puts, timeout, retry_unknown, counted=False)
    return cast(list[Stored | SockpqError], results)


async def _put_where_owned(
    router: Router, puts: Sequence[Command[Stored]], timeout: float | None, retry_unknown: bool | None, *,
    counted: bool,
) -> list[object]:
    """Execute these PUTs, those again whose queue has moved to another cluster. Raises BatchFailed."""
    until = router.network.now() + router.calls_timeout(timeout)
    results = await _put(router, puts, timeout, retry_unknown, counted=counted)
    for attempts in count(1):
        moved = [position for position, found in enumerate(results) if isinstance(found, Elsewhere)]
        if not moved or not await router.may_try_again(attempts, until):
            break
        again = await _put(router, [puts[position] for position in moved], timeout, retry_unknown, counted=counted)
        for position, result in zip(moved, again, strict=True):
            results[position] = result
    return results


async def _put(
    router: Router, puts: Sequence[Command[Stored]], timeout: float | None, retry_unknown: bool | None, *,
    counted: bool,
) -> list[object]:
    """Return the content of the answer to each of these PUTs, or its error. Raises BatchFailed, about all."""
    groups = router.by_cluster(puts)
    if len(groups) > 1:
        return await _put_apart(router, puts, groups, timeout, retry_unknown, counted=counted)
    try:
        return await _run_parts(router, puts_batch(puts, counted=counted), timeout, retry_unknown)
    except NotSupported:
        return await _run_parts(router, [Part(put.older or put, 1) for put in puts], timeout, retry_unknown)


async def _put_apart(
    router: Router, puts: Sequence[Command[Stored]], groups: Sequence[Sequence[int]], timeout: float | None,
    retry_unknown: bool | None, *, counted: bool,
) -> list[object]:
    """Execute the PUTs of each group separately, so that the results of a group are kept when another one fails."""
    results: list[object] = [None] * len(puts)
    unknown: list[int] = []
    not_executed: list[int] = []
    failure: SockpqError | None = None
    for group in groups:
        try:
            found = await _put(
                router, [puts[position] for position in group], timeout, retry_unknown, counted=counted)
        except BatchFailed as error:
            failure = error
            unknown += [group[at] for at in error.unknown]
            not_executed += [group[at] for at in error.not_executed]
        except NotExecuted as error:
            failure = error
            not_executed += group
        else:
            for position, result in zip(group, found, strict=True):
                results[position] = result
    if failure:
        if len(not_executed) == len(puts):
            raise failure
        raise BatchFailed(str(failure), tuple(sorted(unknown)), tuple(sorted(not_executed))) from failure
    return results


async def get_many(router: Router, count: int, taking: TakeSource, timeout: float | None) -> list[Handed]:
    """Take up to `count` jobs; only the first of them is waited for."""
    single = taking.one()
    if taking.headers == "if_known":        # asked for one by one, they would not be known
        single = taking._replace(headers=False).one()
    jobs: list[Handed] = []
    first = True
    while True:
        asked = min(count - len(jobs), BATCH_JOBS_MAX)
        command = taking.many(asked, first)
        try:
            handed = await router.run(
                command, timeout=timeout, wait=taking.wait if first else None, put_back=untaken,
            )
        except NotSupported:        # an original sockPQd, which knows no COUNT
            if taking.block or taking.wait is not None or jobs:
                raise
            return await _get_singly(router, single, count, timeout)
        jobs += handed or []        # None: taken back
        if len(handed or []) < asked or len(jobs) == count:
            return jobs
        first = False


async def _get_singly(
    router: Router, command: Command[Handed | None], count: int, timeout: float | None
) -> list[Handed]:
    answers = await router.run_batch([command] * count, timeout=timeout, partly=True)
    for answer in answers:
        if answer and answer.error:
            raise answer.error
    return [answer.value for answer in answers if answer and answer.value]


async def end_many(
    router: Router, parts: Sequence[Part], singles: Sequence[Command[Any]], timeout: float | None
) -> list[object]:
    """Return the value or JobNotFound for each job. Raises any other error."""
    try:
        found = await _run_parts(router, parts, timeout)
    except NotSupported:
        found = await _run_parts(router, [Part(single, 1) for single in singles], timeout)
    for one in found:
        if isinstance(one, SockpqError) and not isinstance(one, JobNotFound):
            raise one
    return found


async def touch_each(router: Router, touches: Sequence[Touches], timeout: float | None) -> list[bool]:
    """Execute these TOUCHes; returns for each of their jobs whether it is still running."""
    if not touches:
        return []
    answers = await router.run_batch([one.command for one in touches], timeout=timeout)
    results = [False] * sum(len(one.positions) for one in touches)
    for one, answer in zip(touches, answers, strict=True):
        assert answer is not None
        if answer.error:
            raise answer.error
        for position, runs in zip(one.positions, answer.value, strict=True):
            results[position] = runs
    return results


async def _run_parts(
    router: Router, parts: Sequence[Part], timeout: float | None, retry_unknown: bool | None = None
) -> list[object]:
    """Execute a batch in parts; returns the results of all members. Raises BatchFailed, about members."""
    starts = list(accumulate((part.members for part in parts), initial=0))

    def members(positions: Iterable[int]) -> tuple[int, ...]:
        return tuple(member for at in positions for member in range(starts[at], starts[at + 1]))

    try:
        answers = await router.run_batch(
            [part.command for part in parts], timeout=timeout, retry_unknown=retry_unknown
        )
    except BatchFailed as error:
        whole = BatchFailed(str(error), members(error.unknown), members(error.not_executed))
        raise whole from error.__cause__
    results: list[object] = []
    for part, answer in zip(parts, answers, strict=True):
        assert answer is not None
        if answer.error:
            results += [answer.error] * part.members
        else:
            results += answer.value if isinstance(answer.value, list) else [answer.value]
    return results
