"""Which handler executes which operation; handlers.py says what a handler is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.effects import Effects
from core.handlers import clone_begin, clone_chunk, clone_end, done, get, later, lead, put, return_, tick
from core.member_handlers import add_learner, promote_learner, remove_member, switch_service
from core.operations import (
    AddLearner,
    AttachSession,
    CloneBegin,
    CloneChunk,
    CloneEnd,
    CloseSession,
    DeleteUser,
    Done,
    Get,
    Later,
    Lead,
    OpenSession,
    Operation,
    PromoteLearner,
    Put,
    RemoveMember,
    Request,
    Return,
    SetUser,
    SwitchService,
    Tick,
    TouchSession,
)
from core.replies import Reply
from core.session_handlers import attach_session, close_session, open_session, request, touch_session
from core.state import State
from core.user_handlers import delete_user, set_user

Handler = Callable[[State, Any, int, Effects], Reply]

HANDLERS: dict[type[Operation], Handler] = {
    Put: put,
    Get: get,
    Done: done,
    Later: later,
    Return: return_,
    Tick: tick,
    Lead: lead,
    CloneBegin: clone_begin,
    CloneChunk: clone_chunk,
    CloneEnd: clone_end,
    AddLearner: add_learner,
    PromoteLearner: promote_learner,
    RemoveMember: remove_member,
    SwitchService: switch_service,
    OpenSession: open_session,
    AttachSession: attach_session,
    CloseSession: close_session,
    TouchSession: touch_session,
    Request: request,
    SetUser: set_user,
    DeleteUser: delete_user,
}
