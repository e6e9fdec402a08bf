"""Which handler executes which operation; basic.py says what a handler is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.handlers.basic import clone_begin, clone_chunk, lead, resume, return_, tick
from core.handlers.members import add_learner, promote_learner, remove_member, switch_service
from core.handlers.sessions import REQUESTED, attach_session, close_session, open_session, request, touch_session
from core.handlers.users import delete_user, set_user
from core.ops.cluster import (
    AddLearner,
    AttachSession,
    CloneBegin,
    CloneChunk,
    CloseSession,
    DeleteUser,
    Lead,
    OpenSession,
    PromoteLearner,
    RemoveMember,
    Request,
    Resume,
    SetUser,
    SwitchService,
    Tick,
    TouchSession,
)
from core.ops.jobs import Return
from core.ops.replies import Reply
from core.state import State

Handler = Callable[[State, Any, int], Reply]

HANDLERS: dict[type[Any], Handler] = {
    **REQUESTED,
    Return: return_,
    Tick: tick,
    Lead: lead,
    CloneBegin: clone_begin,
    CloneChunk: clone_chunk,
    AddLearner: add_learner,
    PromoteLearner: promote_learner,
    RemoveMember: remove_member,
    SwitchService: switch_service,
    Resume: resume,
    OpenSession: open_session,
    AttachSession: attach_session,
    CloseSession: close_session,
    TouchSession: touch_session,
    Request: request,
    SetUser: set_user,
    DeleteUser: delete_user,
}
