"""Handlers of the leader's own operations: the start of a leadership, ticks, interruptions of the service."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core.handlers.cost import BASE_BYTES, JOB, Cost, of_names
from sockpqd.core.members.membership import seeded
from sockpqd.core.ops.cluster import Lead, RaiseLevel, Resume, SwitchService, Tick
from sockpqd.core.ops.jobs import Then
from sockpqd.core.ops.replies import ACCEPTED, ChangeInProgress, Reply, ServiceFenced
from sockpqd.core.state import State

_MEMBERS_CHANGED = ChangeInProgress()


def lead(state: State, operation: Lead, seed: int) -> Reply:
    """Begin a leadership: record it, grant the failover grace, drop an unfinished CLONE or fragmented operation."""
    if state.cluster_id is None:
        state.cluster_id = operation.cluster_id
        then = Then.DONE if operation.expire_default is Then.DONE else Then.LATER
        state.settings = replace(state.settings, expire_default=then)
    state.term = operation.term
    state.leader = operation.node
    _update_members(state, operation)
    grace_ms = state.settings.grace_ms
    state.grant_failover_grace(operation.grace_ms if grace_ms is None else grace_ms, operation.silence_ms)
    state.drop_clone()
    state.fragments = None
    state.pulses.lead(state.before_ms, state.clock_ms)
    client = state.membership.addresses[operation.node].client if operation.node in state.membership.addresses else ""
    state.events.tell("LEADER", "", state.servers.ids.get(operation.node, 0), operation.node, client)
    return ACCEPTED


def _update_members(state: State, operation: Lead) -> None:
    """Take the members from the first Lead; later ones only add addresses. The first leader is always a member."""
    if not state.membership.addresses:
        state.membership = seeded((*operation.members, operation.node))
    state.membership = state.membership.filled(operation.addresses)
    state.servers.lead(operation.node, list(state.membership.addresses))


def lead_cost(operation: Lead) -> Cost:
    """Return the bytes and work of a Lead."""
    size = 2 * BASE_BYTES + of_names(operation.node, *operation.members)
    return size + sum(1 + of_names(one.name, one.peer, one.client) for one in operation.addresses), JOB


def tick(state: State, operation: Tick, seed: int) -> Reply:
    """Do nothing: the entry itself carries the clock forward."""
    return ACCEPTED


def resume(state: State, operation: Resume, seed: int) -> Reply:
    """Grant grace for the time in which no entries could be logged."""
    grace_ms = state.settings.grace_ms
    state.grant_grace(operation.grace_ms if grace_ms is None else grace_ms, once=False)
    return ACCEPTED


def raise_level(state: State, operation: RaiseLevel, seed: int) -> Reply:
    """Raise the feature level of the cluster, unless a node joined or left since the members were counted."""
    if operation.members != tuple(state.membership.addresses):
        return _MEMBERS_CHANGED
    state.level = max(state.level, operation.level)
    return ACCEPTED


def raise_level_cost(operation: RaiseLevel) -> Cost:
    """Return the bytes and work of a RaiseLevel."""
    return BASE_BYTES + of_names(*operation.members), JOB


def switch_service(state: State, operation: SwitchService, seed: int) -> Reply:
    """Switch the whole service offline or online; a fenced one stays offline."""
    if state.fenced is not None:
        return ServiceFenced(state.fenced) if operation.online else ACCEPTED
    if operation.online and not state.online:
        state.grant_grace(operation.grace_ms)
    state.online = operation.online
    return ACCEPTED
