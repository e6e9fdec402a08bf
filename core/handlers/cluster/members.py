"""Handlers of the operations on members (spec/cluster 7).

A change of the voters names the configuration that it is based on. It is refused if another change came first, in the
same entry or before, so that two administrators cannot remove one node too many.
"""

from __future__ import annotations

from sockpqd.core.handlers.cost import BASE_BYTES, JOB, Cost, of_names
from sockpqd.core.ops.cluster import AddLearner, Address, PromoteLearner, RemoveMember
from sockpqd.core.ops.replies import ACCEPTED, ChangeInProgress, Joined, LastNode, NodeExists, Reply, UnknownNode
from sockpqd.core.state import State

CHANGE_IN_PROGRESS = ChangeInProgress()


def add_learner(state: State, operation: AddLearner, seed: int) -> Reply:
    """Add a node as the learner, with the next server id."""
    membership = state.membership
    if operation.node in membership.addresses:
        return NodeExists()
    if membership.learner is not None or not membership.addresses:      # nothing to join before the first Lead
        return CHANGE_IN_PROGRESS
    state.membership = membership.joined(Address(operation.node, operation.peer, operation.client))
    return Joined(state.servers.renew(operation.node))


def add_cost(operation: AddLearner) -> Cost:
    """Return the bytes and work of an AddLearner."""
    return BASE_BYTES + of_names(operation.node, operation.peer, operation.client), JOB


def promote_learner(state: State, operation: PromoteLearner, seed: int) -> Reply:
    """Make the learner a voter."""
    membership = state.membership
    if operation.node != membership.learner or operation.configuration != membership.configuration:
        return CHANGE_IN_PROGRESS
    state.membership = membership.promoted()
    return ACCEPTED


def remove_member(state: State, operation: RemoveMember, seed: int) -> Reply:
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
