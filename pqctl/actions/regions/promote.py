"""`pqctl region promote`: a replica becomes the service, after its origin was fenced."""

from __future__ import annotations

import time
from collections.abc import Mapping

from sockpq import Client, OutcomeUnknown, Refused, ReplicaStatus, SockpqError

from sockpqd.pqctl.actions.hashes import Comparison
from sockpqd.pqctl.actions.regions.compare import hashes
from sockpqd.pqctl.actions.regions.origin import OriginAccess, origin_of
from sockpqd.pqctl.actions.regions.standing import mismatch, must_be_copy
from sockpqd.pqctl.connect import Servers, cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.confirm import confirm, must_be_able_to_ask
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNKNOWN, UNREACHED, Failure
from sockpqd.pqctl.replicas import FOLLOWING, follower_of, in_words, is_stopped

PAUSE_S = 0.05
FENCED = (
    "the origin is fenced, and nothing was promoted: {why}. `pqctl region status` says whether the copy follows "
    "(`pqctl region follow` lets one that was stopped follow again). Once it does, repeat the command; without --fence "
    "the rest is lost, and with a longer --timeout it waits longer"
)


def promote(call: Call, grace: float | None, fence: OriginAccess | None, yes: bool) -> int:
    """Promote the replica. `fence`: its origin, which is switched off for good first."""
    cost = ("What the origin has acknowledged and not sent is lost" if fence is None
            else "The origin is switched off for good")
    must_be_able_to_ask(yes)
    with cluster_of(call, leading=True) as (client, servers):
        found = must_be_copy(call, client, servers, "; nothing was fenced or promoted")
    if fence is not None:
        _must_not_be_stopped(found)
    confirm(f"Let this copy take the place of its origin? {cost}, and the copy no longer follows it.", yes)
    with cluster_of(call, leading=True) as (client, servers):
        if fence is not None:
            replica = client.cluster_id().id
            if replica is None:
                raise Failure(UNREACHED, "the replica does not know its own id yet, try again")
            last = _fence(call, origin_of(call, fence), replica)
            behind = _behind(call, last)
            if behind:
                raise Failure(UNREACHED, FENCED.format(
                    why=f"the copy lacks {behind} entries of its origin, up to position {last}"))
        try:
            index = client.cluster_promote(grace)
        except Refused as error:
            if any(status.position for status in found.values()):
                raise
            raise Failure(REFUSED, f"this copy has nothing of its origin yet, and was not promoted ({error}): "
                          f"{in_words(found)}") from error
        name = servers.leader.name if servers.leader is not None else "its leader"
    call.answer(f"promoted: {name} serves with all that the origin had at position {index}", {
        "index": index, "fenced": fence is not None,
    })
    return DONE


def _fence(call: Call, origin: Call, replica: str) -> int:
    """Switch the origin off if the copy follows it; returns its position, up to which the copy can come.

    Raises Failure.
    """
    try:
        with cluster_of(origin, leading=True) as (client, servers):
            _must_follow(call, origin, client, servers)
            client.cluster_fence(replica)
    except Refused as error:
        raise Failure(REFUSED, f"the origin refuses to be fenced, and nothing was promoted: {error}; the files of "
                      f'all its nodes must have `[feed]` with `replica = "{replica}"`, and each node must have been '
                      "restarted since, one after the other") from error
    except OutcomeUnknown as error:
        raise Failure(UNKNOWN, f"it is unknown whether the origin was fenced, and nothing was promoted: {error}. "
                      "Repeat the command") from error
    except SockpqError as error:
        raise Failure(UNREACHED, f"the origin was not fenced, and nothing was promoted: {error}. Without --fence the "
                      "replica is promoted although the origin may come back and serve") from error
    return _last(origin)


def _must_follow(call: Call, origin: Call, client: Client, servers: Servers) -> None:
    """Raise Failure unless the copy comes to the current position of its origin within the timeout.

    A copy that is far behind, or that has nothing yet, would leave nobody to serve once the origin is fenced.
    """
    _must_read(call, servers)
    comparison, now = Comparison(), 0
    for name, applied, value in hashes(origin, client, servers):
        comparison.add(f"{name} (origin)", applied, value)
        now = max(now, applied)
    if not now:
        raise Failure(UNREACHED, "no node of the origin says its position: it was not fenced, and nothing was promoted")
    behind = _behind(call, now, comparison)
    if comparison.different is not None:
        raise Failure(REFUSED, f"the copy differs from its origin at position {comparison.different}: this command has "
                      "fenced and promoted nothing")
    if behind:
        raise Failure(UNREACHED, f"the copy is {behind} entries behind its origin, and does not come to its position "
                      f"within {call.timeout:g} s: this command has fenced and promoted nothing. Wait until it follows "
                      "(`pqctl region status`), or give a longer --timeout")


def _must_not_be_stopped(found: Mapping[str, ReplicaStatus]) -> None:
    if is_stopped(found):
        raise Failure(REFUSED, "this copy was stopped, so it would not get the rest of its origin's log: this command "
                      "has fenced and promoted nothing. `pqctl region follow` lets it follow; without --fence it is "
                      "promoted with what it has")


def _must_read(call: Call, origin: Servers) -> None:
    """Raise Failure unless the copy reads the log of this origin within the timeout.

    An idle origin has nothing that a copy without a connection lacks, until it is fenced.
    """
    until = time.monotonic() + call.timeout
    while True:
        with cluster_of(call) as (client, servers):
            found = must_be_copy(call, client, servers, "; this command has fenced and promoted nothing")
        _must_not_be_stopped(found)
        if problem := mismatch(found, servers.views, origin.views):
            raise Failure(REFUSED, f"{problem}. This command has fenced and promoted nothing")
        follower = follower_of(found)
        if follower is not None and follower[1].phase == FOLLOWING:
            return
        if time.monotonic() > until:
            raise Failure(UNREACHED, f"{in_words(found)}: this command has fenced and promoted nothing. Wait until it "
                          "follows; `pqctl region follow ORIGIN` looks for the cause")
        time.sleep(PAUSE_S)


def _last(origin: Call) -> int:
    """Return the position of the fenced origin. Raises Failure if its leader does not report it."""
    until = time.monotonic() + origin.timeout
    while True:
        try:
            with cluster_of(origin, leading=True) as (client, servers):
                told = {name: applied for name, applied, _ in hashes(origin, client, servers)}
                if servers.leader is not None and servers.leader.name in told:
                    return max(told.values())
                why = "its leader does not say its position"
        except SockpqError as error:
            why = str(error)
        if time.monotonic() > until:
            raise Failure(UNREACHED, FENCED.format(why=why))
        time.sleep(PAUSE_S)


def _behind(call: Call, index: int, comparison: Comparison | None = None) -> int:
    """Wait until the copy has this position, at most as long as the timeout; returns how many entries it lacks then."""
    until = time.monotonic() + call.timeout
    with cluster_of(call) as (client, servers):
        while True:
            most = 0
            for name, applied, value in hashes(call, client, servers):
                most = max(most, applied)
                if comparison is not None:
                    comparison.add(f"{name} (replica)", applied, value)
            if most >= index or time.monotonic() > until:
                return max(0, index - most)
            time.sleep(PAUSE_S)
