"""`pqctl map assign`, `move`, and the end of `spread`: names get another owner.

No jobs are transferred: the old cluster drains them, as programs take jobs there first while the map says MOVING. The
remaining steps follow from the map and the jobs alone, so a command that was interrupted at any point can be run again.
"""

from __future__ import annotations

from time import monotonic, sleep

from sockpq.names import alive

from sockpqd.pqctl.actions.maps.changes import moving_to, owned_by, owner_of_prefix, rule_of, spreading
from sockpqd.pqctl.actions.maps.clusters import Clusters, changing
from sockpqd.pqctl.actions.maps.remains import Remains, remains, unending
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.stdio import say

LOOK_S = 0.5            # between two looks at what is left
SAY_S = 10.0            # between two messages about that


def assign(call: Call, prefix: str, to: str) -> int:
    """Give the names with this prefix to a cluster, at once. Raises Failure if another one has jobs with such names."""
    with changing(call) as found:
        found.must_have(to)
        left = _elsewhere(found, prefix, to)
        if left:
            raise Failure(REFUSED, f"{_told(left)}: `pqctl map move {prefix} {to}` has them worked off; nothing was "
                                   "changed")
        _give(found, prefix, to)
        left = _elsewhere(found, prefix, to)
        if left:
            raise Failure(REFUSED, f"{_told(left)} by now: `pqctl map move {prefix} {to}` has them worked off")
        found.change(owned_by(found.map, prefix, to))
    return _owned(call, found, prefix, to)


def move(call: Call, prefix: str, to: str, wait: float | None) -> int:
    """Give the names with this prefix to a cluster, and wait until the jobs of such names elsewhere have ended.

    `wait`: for this many seconds at most; None: without limit.
    """
    with changing(call) as found:
        found.must_have(to)
        _give(found, prefix, to)
        work_off(found, prefix, to, wait)
        found.change(owned_by(found.map, prefix, to))
    return _owned(call, found, prefix, to)


def spread(call: Call, queue: str, on: bool, wait: float | None) -> int:
    """Have every cluster accept a queue, or only its owner again: then wait for the jobs in the others."""
    with changing(call) as found:
        owner = found.map.owner(queue)
        found.change(spreading(found.map, queue, on))
        if not on:
            if owner is None:
                raise Failure(REFUSED, f"no cluster owns {queue}: `pqctl map move {rule_of(found.map, queue)} CLUSTER` "
                                       "gives it to one")
            work_off(found, queue, owner, wait)
            found.change(owned_by(found.map, queue, owner))
    sentence = "is accepted by every cluster" if on else f"is accepted by {owner} only"
    call.answer(f"{queue} {sentence}, by version {found.map.version} of the map", {
        "queue": queue, "spread": on, "version": found.map.version,
    })
    return DONE


def work_off(found: Clusters, prefix: str, to: str, wait: float | None) -> None:
    """Wait until no cluster but `to` has jobs with such names; until then programs take jobs from the others first.

    Reports the jobs that no worker ends. Raises Failure when the time is up, or another operator has changed the owner.
    """
    until = None if wait is None else monotonic() + wait
    said = -SAY_S
    while left := _elsewhere(found, prefix, to):
        source = next(iter(left))
        moving = found.map.moving.get(prefix)
        if moving is None or moving.source not in left:
            found.change(moving_to(found.map, prefix, source, to))
        else:
            source = moving.source
        if monotonic() >= said + SAY_S:
            said = monotonic()
            say(f"waiting: {_told(left)}")
            for sentence in unending(left[source], found.map.clusters[source].servers):
                say(f"  {sentence}")
        if until is not None and monotonic() >= until:
            raise Failure(REFUSED, f"{_told(left)} after {wait:g} s: run this again to wait on")
        sleep(LOOK_S)
        found.must_go_on_with(prefix)


def _give(found: Clusters, prefix: str, to: str) -> None:
    """Make a cluster the owner of the names; the previous owner continues to hand out its jobs, which come first."""
    source = owner_of_prefix(found.map, prefix)
    if source == to:
        return
    if source is None:          # an earlier run ended here
        source = next(iter(_elsewhere(found, prefix, to)), None)
    after = owned_by(found.map, prefix, to) if source is None else moving_to(found.map, prefix, source, to)
    found.change(after)


def _elsewhere(found: Clusters, prefix: str, to: str) -> dict[str, Remains]:
    """Return the jobs that clusters other than `to` have under names without a longer rule."""
    def belongs(name: str) -> bool:
        rule = rule_of(found.map, alive(name))
        return (rule is None or len(rule) <= len(prefix)) and not found.map.is_spread(name)

    looked = {name: remains(found.client(name), prefix, belongs) for name in found.names if name != to}
    return {name: left for name, left in looked.items() if left.jobs}


def _told(left: dict[str, Remains]) -> str:
    return "; ".join(f"{name} has {one}" for name, one in left.items())


def _owned(call: Call, found: Clusters, prefix: str, to: str) -> int:
    call.answer(f"{to} owns {prefix}*, by version {found.map.version} of the map", {
        "prefix": prefix, "cluster": to, "version": found.map.version,
    })
    return DONE
