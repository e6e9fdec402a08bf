"""What the operations on users do; basic.py says what a handler is."""

from __future__ import annotations

from core import limits
from core.ops.cluster import DeleteUser, SetUser
from core.ops.replies import Reply, TooManyUsers, UserNotFound
from core.ops.users import User
from core.rules.admit import ACCEPTED
from core.state import State


def set_user(state: State, operation: SetUser, seed: int) -> Reply:
    """A new user, or another key and other rights of one."""
    if operation.name not in state.users and len(state.users) >= limits.USERS_MAX:
        return TooManyUsers()
    state.users = {**state.users, operation.name: User(operation.rights, operation.key)}
    return ACCEPTED


def delete_user(state: State, operation: DeleteUser, seed: int) -> Reply:
    """The user is gone."""
    if operation.name not in state.users:
        return UserNotFound()
    state.users = {name: user for name, user in state.users.items() if name != operation.name}
    return ACCEPTED
