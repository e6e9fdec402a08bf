"""Statements of a queue's policy that AddPermission and RemovePermission manage. They are kept and have no effect."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from sockpq_sqs.model.actions import ACTIONS
from sockpq_sqs.model.errors import SqsError, missing, wrong

LABEL = re.compile(r"[A-Za-z0-9_-]{1,80}")
ACCOUNT = re.compile(r"\d{12}")
OF_OWNERS = frozenset({
    "AddPermission", "CancelMessageMoveTask", "CreateQueue", "DeleteQueue", "ListMessageMoveTasks", "ListQueueTags",
    "ListQueues", "RemovePermission", "SetQueueAttributes", "StartMessageMoveTask", "TagQueue", "UntagQueue",
})
STATEMENTS_MAX = 20
ACTIONS_MAX = 7


def with_statement(policy: str | None, arn: str, label: str, accounts: Sequence[str], actions: Sequence[str]) -> str:
    """Return the policy with one more statement. Raises SqsError."""
    _check(label, accounts, actions)
    document = _document(policy, arn)
    if any(_is_called(statement, label) for statement in document["Statement"]):
        raise wrong(label, "Label", "Already exists.")
    if len(document["Statement"]) >= STATEMENTS_MAX:
        raise SqsError("OverLimit", f"{STATEMENTS_MAX} statements were already added to the policy.", 403)
    principals = [f"arn:aws:iam::{account}:root" for account in accounts]
    names = [f"SQS:{action}" for action in actions]
    document["Statement"].append({
        "Sid": label, "Effect": "Allow",
        "Principal": {"AWS": principals[0] if len(principals) == 1 else principals},
        "Action": names[0] if len(names) == 1 else names, "Resource": arn,
    })
    return json.dumps(document, separators=(",", ":"))


def without_statement(policy: str | None, arn: str, label: str) -> str:
    """Return the policy without this statement, "" if it was the last one. Raises SqsError."""
    document = _document(policy, arn)
    left = [statement for statement in document["Statement"] if not _is_called(statement, label)]
    if len(left) == len(document["Statement"]):
        raise wrong(label, "Label", "can't find label.")
    return json.dumps({**document, "Statement": left}, separators=(",", ":")) if left else ""


def _is_called(statement: object, label: str) -> bool:
    """Return whether this is the statement with this label; policies that were set may have anything in its place."""
    return isinstance(statement, dict) and statement.get("Sid") == label


def _document(policy: str | None, arn: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(policy) if policy else {
        "Version": "2008-10-17", "Id": f"{arn}/SQSDefaultPolicy", "Statement": [],
    }
    statements = document.get("Statement", [])
    document["Statement"] = statements if isinstance(statements, list) else [statements]
    return document


def _check(label: str, accounts: Sequence[str], actions: Sequence[str]) -> None:
    if not LABEL.fullmatch(label):
        reason = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length."
        raise wrong(label, "Label", reason)
    if not accounts:
        raise wrong([], "PrincipalId", "Unable to verify.")
    if not actions:
        raise missing("Actions")
    for account in accounts:
        if not ACCOUNT.fullmatch(account):
            raise wrong(account, "PrincipalId", "Unable to verify.")
    if len(actions) > ACTIONS_MAX:
        raise SqsError("OverLimit", f"{len(actions)} Actions were found, maximum allowed is {ACTIONS_MAX}.", 403)
    for action in actions:
        if action in OF_OWNERS:
            reason = "Only the queue owner is allowed to invoke this action."
            raise wrong(f"SQS:{action}", "ActionName", reason)
        if action != "*" and action not in ACTIONS:
            raise wrong(action, "ActionName", "Please refer to the appropriate WSDL for a list of valid actions.")
