"""`pqctl region status` and `region diff`: compares a replica with its origin."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from sockpq import Client, ForbiddenError, ReplicaStatus, SockpqError

from sockpqd.pqctl.actions.hashes import ANSWER_S, PAUSE_S, Comparison
from sockpqd.pqctl.actions.regions.origin import OriginAccess, origin_of
from sockpqd.pqctl.actions.regions.standing import mismatch, must_be_copy
from sockpqd.pqctl.connect import Servers, cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, NOT_ALLOWED, REFUSED, UNREACHED, Failure
from sockpqd.pqctl.replicas import STOPPED, follower_of, follows, in_words, is_stopped

NOT_SAID = "the nodes do not say to this user how they follow"
NOTHING = ". There is nothing to compare: each cluster has a log of its own"


def hashes(call: Call, client: Client, servers: Servers) -> Iterator[tuple[str, int, str]]:
    """Yield name, position and hash of each node that answers; a node of a replica reports its copy."""
    for name, address in servers.named():
        with suppress(SockpqError):
            yield name, *client.cluster_hash(address, timeout=min(ANSWER_S, call.timeout))


def status(call: Call, origin: OriginAccess | None) -> int:
    """Show how far the copy is on each node of the replica, and how far its origin is if that is given."""
    executed = None
    with cluster_of(call) as (client, servers):
        found = _found(call, client, servers)
        copies = list(hashes(call, client, servers))
        if origin is not None:
            with cluster_of(origin_of(call, origin)) as (there, originals):
                if problem := mismatch(found or {}, servers.views, originals.views):
                    raise Failure(REFUSED, problem)
                executed = max((applied for _, applied, _ in hashes(call, there, originals)), default=None)
    lines, nodes = [NOT_SAID if found is None else in_words(found)], []
    for name, applied, _ in copies:
        behind = None if executed is None else max(0, executed - applied)
        lines.append(f"{name}  {applied}" + ("" if behind is None else f"  {behind} entries behind"))
        nodes.append({"name": name, "applied": applied, "behind": behind})
    follower = None if found is None else follower_of(found)
    status = None if follower is None else follower[1]
    stopped = found is not None and is_stopped(found)
    call.answer("\n".join(lines), {
        "origin": executed, "nodes": nodes, "phase": STOPPED if stopped else None if status is None else status.phase,
        "server": None if status is None else status.server, "lag": None if status is None else status.lag,
        "problem": None if found is None else next((one.problem for one in found.values() if one.problem), None),
    })
    if not copies or (origin is not None and executed is None):
        return UNREACHED
    if found is None:
        return NOT_ALLOWED
    return DONE if follows(found) else REFUSED


def _found(call: Call, client: Client, servers: Servers) -> dict[str, ReplicaStatus] | None:
    """Return how the nodes follow, None if they hide it from this user. Raises Failure if this is not a copy."""
    try:
        return must_be_copy(call, client, servers, NOTHING)
    except ForbiddenError:
        return None


def diff(call: Call, origin: OriginAccess) -> int:
    """Ask until a node of each has answered at the same position; prints whether they are equal there."""
    until = time.monotonic() + call.timeout
    comparison = Comparison()
    with cluster_of(call) as (replica, copies), cluster_of(origin_of(call, origin)) as (there, originals):
        try:
            found = _found(call, replica, copies) or {}
            problem = mismatch(found, copies.views, originals.views)
        except Failure as failure:
            problem = str(failure)
        if problem is not None:
            raise Failure(UNREACHED, problem)       # 1 is for a copy that differs
        while True:
            for name, applied, value in hashes(call, replica, copies):
                comparison.add(f"{name} (replica)", applied, value)
            for name, applied, value in hashes(call, there, originals):
                comparison.add(f"{name} (origin)", applied, value)
            together = met(comparison)
            if comparison.different is not None or together is not None or time.monotonic() > until:
                break
            time.sleep(PAUSE_S)
    different = comparison.different
    if different is not None:
        equal, position, sentence, code = False, different, f"DIFFERENT at position {different}", REFUSED
    elif together is not None:
        equal, position, sentence, code = True, together, f"equal at position {together}", DONE
    else:
        why = in_words(found) if found and not follows(found) else "try again"
        sentence = f"not compared: never seen at the same position; {why}"
        call.answer(sentence, {"equal": None, "position": None})
        return UNREACHED
    rows = [row for row in comparison.rows(position) if row[1] == position]
    lines = [sentence, *(f"  {name}  {value}" for name, _, value in rows)]
    call.answer("\n".join(lines), {"equal": equal, "position": position})
    return code


def met(comparison: Comparison) -> int | None:
    """Return the newest position at which a node of each has answered, None if there is none."""
    positions: dict[str, set[int]] = {}
    for name, answers in comparison.told.items():
        positions.setdefault(name.partition(" ")[2], set()).update(answers)
    return max(set.intersection(*positions.values()), default=None) if len(positions) > 1 else None
