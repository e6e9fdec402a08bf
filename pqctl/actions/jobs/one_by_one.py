"""Ends running jobs one after the other, and reports for each whether it was still running."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sockpq import Client, JobNotFound, SockpqError

from sockpqd.pqctl.actions.existence import NOT_RUNNING
from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNKNOWN, Failure


def end_each(
    call: Call, ids: Sequence[int], end: Callable[[Client, int], object], *, key: str, one: str, many: str,
) -> int:
    """Call `end` for each id. `one`, `many`: words for the result, of one job or several; `key`: its name in JSON.

    If an error occurs after some jobs have been ended, raises a Failure with the certain results.
    """
    found: list[bool] = []
    with cluster_of(call, serving=True) as (client, _):
        for number in ids:
            try:
                end(client, number)
                found.append(True)
            except JobNotFound:
                found.append(False)
            except SockpqError as error:
                if not any(found):
                    raise
                ended = ", ".join(str(number) for number, ok in zip(ids, found, strict=False) if ok)
                raise Failure(UNKNOWN, f"only these are certainly {many}: {ended}; then: {error}") from error
    each = list(zip(ids, found, strict=True))
    lines = [f"job {number} is {one}" if ok else f"job {number} {NOT_RUNNING}" for number, ok in each]
    call.answer("\n".join(lines), {"jobs": [{"id": number, key: ok} for number, ok in each]})
    return DONE if all(found) else REFUSED
