"""Handlers of the operations on users."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, USERS, Cost, of_names
from sockpqd.core.ops import replies
from sockpqd.core.ops import users as ops
from sockpqd.core.ops.replies import Reply
from sockpqd.core.state import State


def set_user(state: State, operation: ops.SetUser, seed: int) -> Reply:
    """Add a user, replace the key and the rights of an existing one, or remove it."""
    others = {name: user for name, user in state.users.items() if name != operation.name}
    if operation.user is None:
        if len(others) == len(state.users):
            return replies.UserNotFound()
    elif len(others) >= limits.USERS_MAX:
        return replies.TooManyUsers()
    else:
        others[operation.name] = operation.user
    state.users = others
    return replies.ACCEPTED


def set_cost(operation: ops.SetUser) -> Cost:
    """Return the bytes and work of a SetUser."""
    user = operation.user
    size = 0 if user is None else of_names(user.rights) + len(user.key)
    return BASE_BYTES + of_names(operation.name) + size, USERS
