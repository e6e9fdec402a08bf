"""What the operations on the cluster itself do; basic.py says what a handler is.

A change of the voters names the configuration it was made for. When another change came first, in the same entry or
before, it is refused: two administrators cannot take away one node too many.
"""

from __future__ import annotations

from core.ops.cluster import AddLearner, Address, Lead, PromoteLearner, RemoveMember, SwitchService
from core.ops.replies import ChangeInProgress, Joined, LastNode, NodeExists, Reply, UnknownNode
from core.rules.admit import ACCEPTED
from core.state import State
from core.store.membership import seeded

CHANGE_IN_PROGRESS = ChangeInProgress()


def follow(state: State, lead: Lead) -> None:
    """The part of a Lead that concerns the members: the first one names them, later ones only tell addresses.

    Who leads first is a member whatever `members` says.
    """
    if not state.membership.addresses:
        state.membership = seeded((*lead.members, lead.node))
    state.membership = state.membership.filled(lead.addresses)
    state.servers.lead(lead.node, list(state.membership.addresses))


def add_learner(state: State, operation: AddLearner, seed: int) -> Reply:
    """A new node, with the next server id."""
    membership = state.membership
    if operation.node in membership.addresses:
        return NodeExists()
    if membership.learner is not None or not membership.addresses:      # nothing to join before the first Lead
        return CHANGE_IN_PROGRESS
    state.membership = membership.joined(Address(operation.node, operation.peer, operation.client))
    return Joined(state.servers.renew(operation.node))


def promote_learner(state: State, operation: PromoteLearner, seed: int) -> Reply:
    """The learner votes from now on."""
    membership = state.membership
    if operation.node != membership.learner or operation.configuration != membership.configuration:
        return CHANGE_IN_PROGRESS
    state.membership = membership.promoted()
    return ACCEPTED


def remove_member(state: State, operation: RemoveMember, seed: int) -> Reply:
    """The node is no member any more, and its server id is never given again."""
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


def switch_service(state: State, operation: SwitchService, seed: int) -> Reply:
    """The whole service goes offline or online."""
    if operation.online and not state.online:
        state.grant_grace(operation.grace_ms)
    state.online = operation.online
    return ACCEPTED
