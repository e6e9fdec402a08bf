"""`pqctl region promote`: a replica becomes the service, after its origin was fenced."""

from __future__ import annotations

import time

from sockpq import Refused, SockpqError

from sockpqd.pqctl.actions.regions.compare import hashes, origin_of
from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.confirm import confirm
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNREACHED, Failure
from sockpqd.pqctl.output.stdio import say

PAUSE_S = 0.05


def promote(call: Call, grace: float | None, fence: str | None, yes: bool) -> int:
    """Promote the replica. `fence`: servers of its origin, which is switched off for good first."""
    confirm("Does this copy take the place of its origin? What the origin has acknowledged and not sent is lost, and "
            "the copy follows it no longer.", yes)
    with cluster_of(call, leading=True) as (client, servers):
        if fence is not None:
            replica = client.cluster_id().id
            if replica is None:
                raise Failure(UNREACHED, "the replica does not know its own id yet, try again")
            last = _fence(origin_of(call, fence), replica)
            if not _comes_to(call, last):
                say(f"the copy does not come to position {last} of its origin; it is promoted as it is")
        index = client.cluster_promote(grace)
        name = servers.leader.name if servers.leader is not None else "its leader"
    call.answer(f"promoted: {name} serves with all that the origin had at position {index}", {
        "index": index, "fenced": fence is not None,
    })
    return DONE


def _fence(origin: Call, replica: str) -> int:
    """Switch the origin off; returns its position, up to which the copy can come. Raises Failure."""
    try:
        with cluster_of(origin, leading=True) as (client, servers):
            client.cluster_fence(replica)
            return max((applied for _, applied, _ in hashes(origin, client, servers)), default=0)
    except Refused as error:
        raise Failure(REFUSED, f"the origin refuses to be fenced, and nothing was promoted: {error}; its files must "
                      f'have `[feed]` with `replica = "{replica}"`') from error
    except SockpqError as error:
        raise Failure(UNREACHED, f"the origin was not fenced, and nothing was promoted: {error}. Without --fence the "
                      "replica is promoted although the origin may come back and serve") from error


def _comes_to(call: Call, index: int) -> bool:
    """Wait until the copy has this position; returns False if it does not come to it within the timeout."""
    until = time.monotonic() + call.timeout
    with cluster_of(call) as (client, servers):
        while True:
            if any(applied >= index for _, applied, _ in hashes(call, client, servers)):
                return True
            if time.monotonic() > until:
                return False
            time.sleep(PAUSE_S)
