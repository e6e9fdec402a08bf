"""Handlers of the operations on members (spec/cluster 7).

A change of the voters names the configuration that it is based on. It is refused if another change came first, in the
same entry or before, so that two administrators cannot remove one node too many.
"""

from __future__ import annotations

from sockpqd.core.handlers.cost import BASE_BYTES, JOB, Cost, of_names
from sockpqd.core.ops.cluster import Address, ChangeMember, MemberChange
from sockpqd.core.ops.replies import ACCEPTED, ChangeInProgress, Joined, LastNode, NodeExists, Reply, UnknownNode
from sockpqd.core.state import State

CHANGE_IN_PROGRESS = ChangeInProgress()


def change_member(state: State, operation: ChangeMember, seed: int) -> Reply:
    """Make one step of a change of the members."""
    match operation.change:
        case MemberChange.JOIN:
            return _join(state, operation)
        case MemberChange.PROMOTE:
            return _promote(state, operation)
        case MemberChange.REMOVE:
            return _remove(state, operation)


def change_cost(operation: ChangeMember) -> Cost:
    """Return the bytes and work of a ChangeMember."""
    return BASE_BYTES + of_names(operation.node, operation.peer, operation.client), JOB


def _join(state: State, operation: ChangeMember) -> Reply:
    """Add a node as the learner, with the next server id."""
    membership = state.membership
    if operation.node in membership.addresses:
        return NodeExists()
    if membership.learner is not None or not membership.addresses:      # nothing to join before the first Lead
        return CHANGE_IN_PROGRESS
    state.membership = membership.joined(Address(operation.node, operation.peer, operation.client))
    return Joined(state.servers.renew(operation.node))


def _promote(state: State, operation: ChangeMember) -> Reply:
    """Make the learner a voter."""
    membership = state.membership
    if operation.node != membership.learner or operation.configuration != membership.configuration:
        return CHANGE_IN_PROGRESS
    state.membership = membership.promoted()
    return ACCEPTED


def _remove(state: State, operation: ChangeMember) -> Reply:
    """Remove a node, whose server id is never assigned again."""
    membership = state.membership
    if operation.node not in membership.addresses:
        return UnknownNode()
    if operation.node != membership.learner:
        if membership.learner is not None or operation.configuration != membership.configuration:
            return CHANGE_IN_PROGRESS
        if len(membership.addresses) == 1:
            return LastNode()
    state.membership = membership.without(operation.node)
    state.servers.forget(operation.node)
    return ACCEPTED
