"""Handlers of the operations on users."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, USERS, Cost, of_names
from sockpqd.core.ops import replies
from sockpqd.core.ops import users as ops
from sockpqd.core.ops.replies import Reply
from sockpqd.core.state import State


def set_user(state: State, operation: ops.SetUser, seed: int) -> Reply:
    """Add a user, or replace the key and the rights of an existing one."""
    if operation.name not in state.users and len(state.users) >= limits.USERS_MAX:
        return replies.TooManyUsers()
    state.users = {**state.users, operation.name: ops.User(operation.rights, operation.key)}
    return replies.ACCEPTED


def set_cost(operation: ops.SetUser) -> Cost:
    """Return the bytes and work of a SetUser."""
    return BASE_BYTES + of_names(operation.name, operation.rights) + len(operation.key), USERS


def delete_user(state: State, operation: ops.DeleteUser, seed: int) -> Reply:
    """Remove the user; the reply is UserNotFound if there is none."""
    if operation.name not in state.users:
        return replies.UserNotFound()
    state.users = {name: user for name, user in state.users.items() if name != operation.name}
    return replies.ACCEPTED


def delete_cost(operation: ops.DeleteUser) -> Cost:
    """Return the bytes and work of a DeleteUser."""
    return BASE_BYTES + of_names(operation.name), USERS
