"""The promise of a pulse, judged by what its clients saw (spec/pulse 2.1, 2.2, 3.3).

A grant was written at some time between two known ones. So only those count as written in a window whose whole interval
lies in it: an accusation is always right. A session that asks again under the same number gets the same grant again,
which counts once, from its last answer on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from tests.chaos.checker.evidence.moments import SECOND, is_ok
from tests.chaos.workload.history import Cut, Record
from tests.chaos.workload.turns import Grant


def written(grants: Iterable[Grant], late: Sequence[Cut], names: Mapping[str, str]) -> list[Grant]:
    """The grants with the times at which they were surely written: what was read while packets of its server were lost,
    or had to be sent again, may have been written since that began. `names`: of the servers, by address."""
    def surely(grant: Grant) -> Grant:
        began_s = [cut.start_ns / SECOND for cut in late if names.get(grant.server) == cut.node
                   and cut.start_ns <= int(grant.before * SECOND) <= cut.end_ns]
        return replace(grant, after=min([grant.after, *began_s]))

    return [surely(grant) for grant in grants]


def too_many(grants: Iterable[Grant], rate: int, length_s: float) -> list[list[Grant]]:
    """Return the groups of more than `rate` grants that were certainly written within less than `length_s`."""
    found: list[list[Grant]] = []
    by_end = sorted(grants, key=lambda grant: grant.before)
    last = {_identity(grant): grant for grant in by_end if grant.session is not None}
    by_end = [grant for grant in by_end if last.get(_identity(grant), grant) is grant]
    for first in by_end:                # a window that begins with its interval
        inside = [one for one in by_end if one.after >= first.after and one.before < first.after + length_s]
        if len(inside) > rate:
            found.append(inside)
    return found


def given_twice(grants: Iterable[Grant]) -> list[tuple[Grant, Grant]]:
    """Pairs of answers with one ticket, or to one request of a session, except a grant that is repeated.

    A request that comes late, from a connection that its client has given up, is executed again when the ticket is
    closed (spec/pulse 3.3): so it may have another ticket once its client has reported the end of the first turn.
    """
    found: list[tuple[Grant, Grant]] = []
    seen: dict[object, Grant] = {}
    for grant in grants:
        whats: list[object] = [grant.ticket]
        if grant.session is not None:
            whats.append((grant.session, grant.request))
        for what in whats:
            first = seen.setdefault(what, grant)
            again = grant.session is not None and _identity(first) == _identity(grant)
            late = what != grant.ticket and first.told and grant.before > first.before
            if first is not grant and not again and not late:
                found.append((first, grant))
    return found


def after_another(
    grants: Sequence[Grant], records: Sequence[Record], cuts: Iterable[Cut], names: Mapping[str, str],
) -> Iterator[tuple[Grant, Cut]]:
    """Return grants of a cut-off node that were written after another node had answered. `names`: by address."""
    for cut in cuts:
        served = [record.end_ns for record in records
                  if is_ok(record) and record.end_ns is not None and record.start_ns >= cut.start_ns
                  and record.server not in (None, cut.node)]
        served += [int(grant.before * SECOND) for grant in grants
                   if int(grant.after * SECOND) >= cut.start_ns and names.get(grant.server, cut.node) != cut.node]
        first_ns = min(served, default=cut.end_ns)
        for grant in grants:
            if names.get(grant.server) == cut.node and first_ns < int(grant.after * SECOND) < cut.end_ns:
                yield grant, cut


def _identity(grant: Grant) -> tuple[object, ...]:
    return grant.ticket, grant.session, grant.request
